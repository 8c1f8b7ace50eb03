/* SPDX-License-Identifier: MIT */
/*
 * Hand-off of a message (cards MSG_L1 and MSG_P1 in src/ipc/msg_queue.c, MSG_B1 in
 * src/ipc/msg_block.c) at small size.
 *
 * Two send a message each, one receives both and may give up each time (TMO), having slept. K of
 * them die, the first sender or the receiver (2: both), at any step; who repairs and buries may die
 * once at any step, too, and another begins anew. A step is one access that others see, or that
 * repair can find done or not. There is always room; lists are what st says, as repair builds them.
 * Between its calls the receiver may wait for another object, for which it needs no lock of this
 * queue.
 *
 * Right: no message is received twice, or received and still there; what was sent is received or
 * still there, but for one in the hands of a receiver that died; each block has one place, so none
 * leaks and none is given back twice; nobody sleeps on who was told, or while there is a message.
 *
 * Each of these switches is a defect:
 *  BUG_FLYLATE   the message is named for the receiver after it was told
 *  BUG_REQUEST   repair takes another request of the receiver for the one that was granted
 *  BUG_VOID      repair leaves the name of a message that was not handed over (K 2)
 *  BUG_POCKET    repair leaves the sender the name of what it has sent
 *  BUG_TWONAMES  burial gives back both names of one block
 *  BUG_ZERO      burial takes two names that are 0 for two of one block
 *  BUG_NOREWAKE  neither repair nor burial wakes who was told
 *  BUG_NOOWED    the sender does not note before the unlock that it has somebody to wake
 *  BUG_OPLATE    the sender says what it is at only after it has done it
 *  BUG_LEAVES    who gives up does not look again, under the lock, whether it has been told
 */
#ifndef K
#define K 1
#endif
#ifndef RK
#define RK 1
#endif
#ifndef TMO
#define TMO 1
#endif
#define NP 4 /* 0 and 1 send, 2 receives, 3 repairs */
#define R  2
#define X  3

#define FREE    0
#define WAITING 1
#define ASLEEP  2
#define GRANTED 3

#define NONE    0
#define SEND    1
#define RECEIVE 2
#define WAIT    3

#define QUEUED  (st == WAITING || st == ASLEEP)
#define HERE    (QUEUED && !elsewhere)

byte lock;                             /* owner + 1 */
byte st, request;                      /* one word, of the receiver's slot */
bit elsewhere;                         /* its request is for another object */
bit sleeps;                            /* in the kernel */
bit listed;
bit chain[3];                          /* by block */
byte pocket[NP], fly[NP];
byte op[NP], op_block[NP], op_waiter[NP], op_request[NP];
bit owes[NP];
bit dead[NP], killme[NP], buried[NP];
byte got[3], freed[3];
bit sent[2];
bit xdies;

#define OWN(i) atomic { lock == 0 -> lock = i + 1 }

inline wake() { if :: sleeps -> sleeps = 0 :: else fi }

proctype Sender(byte i) {
	bit wakes;
	{
		OWN(i);
#ifndef BUG_OPLATE
		d_step { op_block[i] = pocket[i]; op_waiter[i] = 0; op[i] = SEND };
#else
		d_step { op_block[i] = pocket[i]; op_waiter[i] = 0 };
#endif
		if
		:: listed && dead[R] ->        /* the dead receive nothing */
			listed = 0;
			d_step { assert(HERE); st = GRANTED };
			chain[op_block[i]] = 1
		:: listed && !dead[R] ->
			d_step { op_request[i] = request; op_waiter[i] = R + 1 };
#ifndef BUG_FLYLATE
			fly[R] = op_block[i];
#endif
			listed = 0;
			d_step { assert(HERE); wakes = (st == ASLEEP); st = GRANTED };
#ifdef BUG_FLYLATE
			fly[R] = op_block[i]
#endif
		:: !listed ->
			chain[op_block[i]] = 1
		fi;
#ifdef BUG_OPLATE
		op[i] = SEND;
#endif
		if :: pocket[i] == op_block[i] -> pocket[i] = 0 :: else fi;
		op[i] = NONE;
		if
		:: wakes ->
#ifndef BUG_NOOWED
			owes[i] = 1
#endif
		:: else
		fi;
		lock = 0;
		if
		:: wakes -> wake(); owes[i] = 0
		:: else
		fi;
		sent[i] = 1
	} unless { killme[i]; dead[i] = 1 }
}

/* What is named FLY is the receiver's: read, then the pocket's, and at last given back. */
inline take() {
	d_step { assert(fly[R] != 0); got[fly[R]]++ };
	pocket[R] = fly[R];
	fly[R] = 0;
	d_step { freed[pocket[R]]++; pocket[R] = 0 }
}

proctype Receiver() {
	byte n, b;
	{
		do
		:: n < 2 ->
			n++;
			OWN(R);
			if
			:: chain[1] || chain[2] ->
				d_step {
					if :: chain[1] -> b = 1 :: else -> b = 2 fi;
					op_block[R] = b; op[R] = RECEIVE
				};
				fly[R] = b;
				chain[b] = 0;
				op[R] = NONE;
				lock = 0;
				take()
			:: else ->
				op[R] = WAIT;
				d_step { elsewhere = 0; request++; st = WAITING };
				listed = 1;
				op[R] = NONE;
				lock = 0;
				atomic {
					if
					:: st == WAITING -> st = ASLEEP; sleeps = 1
					:: else
					fi
				};
end_sleep:			if
				:: !sleeps
#if TMO
				:: sleeps && st == ASLEEP -> sleeps = 0
#endif
				fi;
				b = 0;
				if
				:: st == GRANTED
				:: else ->
					OWN(R);
					if
#ifdef BUG_LEAVES
					:: true ->
#else
					:: QUEUED ->
#endif
						b = 1;
						op[R] = WAIT;
						fly[R] = 0;
						st = FREE;
						listed = 0;
						op[R] = NONE
#ifndef BUG_LEAVES
					:: else
#endif
					fi;
					lock = 0
				fi;
				if
				:: b
				:: else -> st = FREE; take()
				fi
			fi;
			/* somebody else's lock, somebody else's grant */
			if
			:: n == 1 ->
				d_step { elsewhere = 1; request++; st = WAITING };
				st = FREE
			:: true
			fi
		:: else -> break
		od
	} unless { killme[R]; dead[R] = 1 }
}

/* In the name of the dead owner of the lock. */
inline repair(d) {
	if
	:: op[d] != NONE ->
		d_step { seen = chain[op_block[d]]; listed = HERE; handed = 0 };
		if
		:: op[d] == SEND ->
			if
			:: op_waiter[d] ->
				if
#ifdef BUG_REQUEST
				:: !QUEUED -> handed = 1
#else
				:: !HERE || request != op_request[d] -> handed = 1
#endif
				:: else ->
#ifndef BUG_VOID
					if
					:: fly[R] == op_block[d] -> fly[R] = 0
					:: else
					fi
#endif
				fi
			:: else
			fi;
			if
			:: seen || handed ->
#ifndef BUG_POCKET
				if
				:: pocket[d] == op_block[d] -> pocket[d] = 0
				:: else
				fi
#endif
			:: else
			fi
		:: op[d] == RECEIVE && seen -> fly[d] = 0
		:: else
		fi;
		op[d] = NONE
	:: else
	fi;
#ifndef BUG_NOREWAKE
	if :: st == GRANTED -> wake() :: else fi;
#endif
	lock = 0
}

inline give(name) {
	if
	:: name -> d_step { freed[name]++; name = 0 }
	:: else
	fi
}

inline bury(d) {
	if
#ifdef BUG_ZERO
	:: fly[d] == pocket[d] ->
#else
	:: fly[d] && fly[d] == pocket[d] ->
#endif
#ifndef BUG_TWONAMES
		fly[d] = 0
#endif
	:: else
	fi;
	if
	:: d == R && HERE ->
		if
		:: lock && dead[lock - 1] -> goto again
		:: atomic { lock == 0 -> lock = X + 1 }
		fi;
		if
		:: HERE ->
			op[X] = WAIT;
			fly[d] = 0;
			st = FREE;
			listed = 0;
			op[X] = NONE
		:: else
		fi;
		lock = 0
	:: else
	fi;
	if :: d == R -> st = FREE :: else fi;
	if
	:: owes[d] ->
#ifndef BUG_NOREWAKE
		if :: st == GRANTED -> wake() :: else fi;
#endif
		owes[d] = 0
	:: else
	fi;
	give(pocket[d]);
	give(fly[d]);
	buried[d] = 1
}

proctype Repairer() {
	byte d;
	bit seen, handed;
again:
	{
		if
		:: lock == X + 1 -> d = X; repair(X) /* the one before this one */
		:: else
		fi;
end:		do
		:: atomic {
			(dead[0] && !buried[0]) || (dead[R] && !buried[R]) ->
			if
			:: dead[0] && !buried[0] -> d = 0
			:: else -> d = R
			fi
		   }
			if :: lock == d + 1 -> repair(d) :: else fi;
			bury(d)
		od
	} unless { xdies; xdies = 0; goto again }
}

active proctype Killer() {
	if
	:: true
	:: K -> killme[0] = 1
	:: K -> killme[R] = 1
	:: K > 1 -> killme[0] = 1; killme[R] = 1
	fi;
	if
	:: true
	:: RK -> xdies = 1
	fi
}

init {
	byte b, lost;

	atomic {
		pocket[0] = 1;
		pocket[1] = 2;
		run Sender(0);
		run Sender(1);
		run Receiver();
		run Repairer()
	};
	timeout;
	d_step {
		assert(lock == 0 && op[0] == NONE && op[1] == NONE && op[R] == NONE);
		assert(!owes[0] && !owes[1]);
		b = 1;
		do
		:: b <= 2 ->
			assert(got[b] + chain[b] <= 1);
			assert(chain[b] + freed[b] + (pocket[0] == b) + (pocket[1] == b) +
			       (pocket[R] == b) + (fly[R] == b) == 1);
			if
			:: sent[b - 1] && !got[b] && !chain[b] -> lost++
			:: else
			fi;
			b++
		:: else -> break
		od;
		assert(lost <= dead[R]);
		assert(dead[0] || sent[0]);
		assert(sent[1]);
		assert(!sleeps || dead[R] || (st == ASLEEP && listed && !chain[1] && !chain[2]))
	}
}
