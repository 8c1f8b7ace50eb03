/* SPDX-License-Identifier: MIT */
/*
 * The robust lock and the claim on a dead owner's slot (cards RLOCK_P1 and REG_P1 in
 * src/core/rlock.c): death at any step, recovery by whoever meets it, death of who recovers,
 * slots used again. There are no time-outs, so that a lost wake shows as an invalid end state.
 *
 * N workers take the lock once each and K of them are killed anywhere; a reaper buries. A worker
 * that has slept on the lock may turn to something else instead of taking it: the wake that it
 * received is then a debt, which `held` names until it is paid (rlock_settle in the code).
 *
 * Each of these switches takes one element away, to show that the model notices:
 *  NOGEN     the claim carries no generations
 *  NOWAKE    recovery does not pass a wake on
 *  NORETAKE  who has slept takes the lock without the waiters bit
 *  NOSETTLE  who has slept and turns away does not pass its wake on
 *  NODEBT    `held` does not name the lock while its taker sleeps on it
 */
#ifndef N
#define N 3
#endif
#ifndef K
#define K 2
#endif
#define REAPER N
#define W 64                     /* waiters bit; owner = low bits, slot + 1 */
byte word;                       /* the lock */
bit dirty;                       /* the protected structure is mid-change */
byte incs;                       /* live threads inside: the lock's holder or its claimer repairing */
bool killme[N], dead[N], asleep[N], buried[N], done[N];
byte held[N];                    /* names the lock before the CAS, cleared after the wake */
byte gen[N], clm[N], clmgen[N];  /* one 64-bit word in the design: changed together by one CAS */
byte mygen[N];
byte deaths; byte inside[4];

inline wake1() {                 /* futex_wake(1): any sleeper */
	d_step { if
	:: asleep[0] -> asleep[0] = 0
	:: !asleep[0] && asleep[1] -> asleep[1] = 0
	:: !asleep[0] && !asleep[1] && N > 2 && asleep[N-1] -> asleep[N-1] = 0
	:: else fi }
}
inline recover(self, d, g, c, cg, ok) {  /* phase 1 */
	ok = 0;
	d_step { g = gen[d]; c = clm[d]; cg = clmgen[d] }
	if
	:: dead[d] && (c == 0 || c == self + 1 || (c - 1 < N && (dead[c-1] || gen[c-1] != cg))) ->
#ifdef NOGEN
		d_step { if :: clm[d] == c -> clm[d] = self + 1; clmgen[d] = 0; ok = 1 :: else fi }
#else
		d_step { if :: gen[d] == g && clm[d] == c && clmgen[d] == cg -> clm[d] = self + 1; if :: self < N -> clmgen[d] = gen[self] :: else -> clmgen[d] = 0 fi; ok = 1 :: else fi }
#endif
		if
		:: ok && held[d] && (word & 63) == d + 1 ->
			d_step { incs++; inside[self] = 1; assert(incs == 1) }
			dirty = 1;
			dirty = 0;                    /* repairs are repeatable */
			d_step { incs--; inside[self] = 0 }
		:: else
		fi;
		if
		:: ok && held[d] ->
			d_step { if :: (word & 63) == d + 1 -> word = 0 :: else fi }
#ifndef NOWAKE
			wake1();                      /* what it owed, or what it swallowed */
#endif
			held[d] = 0
		:: else
		fi
	:: else
	fi
}
proctype Worker(byte i) {
	byte v, n, g, c, cg, d; bool ok, slept;
again:
	{
		n = 0;
		do
		:: n < 1 ->
			slept = 0;
			do
			:: held[i] = 1;
				v = word;
				if
				:: (v & 63) == 0 ->
					d_step { ok = 0; if :: word == v -> 
#ifdef NORETAKE
						word = (i + 1);
#else
						word = (i + 1) | (v & W) | (slept -> W : 0);
#endif
						ok = 1 :: else fi };
					if :: ok -> break :: else fi
				:: (v & 63) != 0 ->
					d = (v & 63) - 1;
					if
					:: dead[d] -> recover(i, d, g, c, cg, ok);
						if :: ok -> d_step { if :: clm[d] == i + 1 -> clm[d] = 0; clmgen[d] = 0 :: else fi } :: else fi
					:: !dead[d] ->
						/* busy: nothing is held, but a debt stays named */
						if :: !slept -> held[i] = 0 :: else fi;
#ifndef NODEBT
						held[i] = 1;            /* rlock_announce */
#else
						held[i] = 0;
#endif
						slept = 1;
						d_step { if :: word == v -> word = v | W :: else fi };
						d_step { if :: word == (v | W) -> asleep[i] = 1 :: else fi };
						!asleep[i];
						if
						:: true                 /* tries again */
						:: true ->              /* turns to something else */
#ifndef NOSETTLE
							wake1();
#endif
							held[i] = 0;
							slept = 0;
							goto next
						fi
					fi
				fi
			od; skip;
			d_step { incs++; inside[i] = 1; assert(incs == 1); assert(!dirty) }
			dirty = 1;
			dirty = 0;
			d_step { incs--; inside[i] = 0 }
			d_step { v = word; assert((v & 63) == i + 1); word = 0 };
			if :: v & W -> wake1() :: else fi;
			held[i] = 0;
next:			n++
		:: else -> break
		od; skip;
		done[i] = 1; goto fin
	} unless { killme[i] };
	d_step { if :: inside[i] -> incs--; inside[i] = 0 :: else fi; asleep[i] = 0; killme[i] = 0; dead[i] = 1 };
	buried[i];
	d_step { buried[i] = 0; n = 0; v = 0; slept = 0; ok = 0; g = 0; c = 0; cg = 0; d = 0 };
	goto again;                                   /* the slot's next owner */
fin:	skip
}
proctype Reaper() {
	byte d, g, c, cg; bool ok;
end:	do
	:: d_step { dead[0] -> d = 0 }; goto act
	:: d_step { dead[1] -> d = 1 }; goto act
	:: d_step { N > 2 && dead[N-1] -> d = N-1 }; goto act
	od;
act:	recover(REAPER, d, g, c, cg, ok);
	if
	:: ok -> d_step { dead[d] = 0; gen[d]++; clm[d] = 0; clmgen[d] = 0; buried[d] = 1 }
	:: else
	fi;
	d_step { d = 0; g = 0; c = 0; cg = 0; ok = 0 };
	goto end
}
proctype Killer() {
end:	do
	:: d_step { deaths < K && !done[0] && !dead[0] && !killme[0] -> killme[0] = 1; deaths++ }
	:: d_step { deaths < K && !done[1] && !dead[1] && !killme[1] -> killme[1] = 1; deaths++ }
	:: d_step { N > 2 && deaths < K && !done[N-1] && !dead[N-1] && !killme[N-1] -> killme[N-1] = 1; deaths++ }
	:: deaths == K -> break
	:: true -> break
	od
}
init { atomic { byte k; run Worker(0); run Worker(1); if :: N > 2 -> run Worker(2) :: else fi; run Reaper(); run Killer() } }
