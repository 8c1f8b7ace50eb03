/* SPDX-License-Identifier: MIT */
/*
 * Who doubts a claim (card REG_P1 in src/core/rlock.c): a claim that names a thread which lives is
 * believed while that thread says in its own slot that it claims; it says so before the claim is
 * made and until it has given the claim up and counted that. Two threads claim one dead slot again
 * and again, by either of the words in which it can be said; whoever finds the other's claim there
 * doubts it: TIMES times the first of them, OTHER times the second. K of them die anywhere and are
 * buried, which takes away what they said, and their slot is used again.
 *
 * Right: a claim that was made is never taken for a damaged one, so that one at a time acts; a claim
 * that nobody made (DAMAGE) keeps nobody out.
 *
 * PROCESS: the slot is a process's. It is freed by its state, with the claim as it was, and the next
 * process to have it changes the claim before the state.
 *
 * Each of these switches takes one element away:
 *  NOCOUNT    a claim that was given up is not counted
 *  COUNTLATE  it is counted after the claimer has taken back what it said
 *  SAYLATE    the claimer says so after it has claimed
 *  EARLY      it takes that back before it gives the claim up
 *  NOLAST     who doubts does not ask at last whether the claimer has died meanwhile
 *  NOSTATE    who doubts does not look at the state (PROCESS)
 */
#ifndef TIMES
#define TIMES 2
#endif
#ifndef OTHER
#define OTHER TIMES
#endif
#ifndef K
#define K 1
#endif
#define TURNS (i -> OTHER : TIMES)
byte clm, clmgen, slot;           /* one word: 0, or the claimer + 1; the generation of the
				   * claimer's slot; that of the claimed one */
bit is_free;
byte gen[2];
bit says[4];                      /* two words a thread: it repairs, it buries */
byte over[2];                     /* claims that it has given up */
bit dead[2], killme[2], buried[2];
bit acts[2];
byte deaths, ended;

#define SEEN     (clm == seen && clmgen == cg && slot == sg)
#define BELIEVED (!SEEN || is_free || dead[o] || gen[o] != cg)

inline finish() {
#ifdef COUNTLATE
	says[2 * i + k] = 0;
#endif
#ifndef NOCOUNT
	over[i]++;
#endif
	says[2 * i + k] = 0
}
proctype Claimer(byte i) {
	byte n, k, seen, cg, sg, before, o; bit s, t, ok;
again:
	{
		do
		:: n < TURNS ->
			if :: k = 0 :: k = 1 fi;
look:			skip;
			d_step { seen = clm; cg = clmgen; sg = slot };
			!is_free;                          /* else there is nothing to be claimed */
			o = 1 - i;
			if
			:: seen == o + 1 && gen[o] == cg && !dead[o] ->
				before = over[o];          /* rlock_is_false_claim */
				if
				:: !SEEN -> goto look
				:: else
				fi;
				s = says[2 * o];
				t = says[2 * o + 1];
				if
				:: s || t || over[o] != before ->
					BELIEVED;          /* the call is busy */
					goto look
				:: else
				fi;
#if defined PROCESS && !defined NOSTATE
				if
				:: is_free -> goto look
				:: else
				fi;
				if
				:: !SEEN -> goto look
				:: else
				fi;
#endif
#ifndef NOLAST
				if
				:: dead[o] || gen[o] != cg -> goto look
				:: else
				fi;
#endif
#ifndef DAMAGE
				assert(false)              /* taken for damage */
#endif
			:: else
			fi;
#ifndef SAYLATE
			says[2 * i + k] = 1;
#endif
			d_step {
				ok = SEEN;
				if :: ok -> clm = i + 1; clmgen = gen[i]; :: else fi
			};
#ifdef PROCESS
			if
			:: ok && is_free -> ok = 0 /* a former claimer has freed it meanwhile */
			:: else
			fi;
			if
			:: ok && (clm != i + 1 || clmgen != gen[i]) -> ok = 0
			:: else
			fi;
#endif
			if
			:: ok ->
#ifdef SAYLATE
				says[2 * i + k] = 1;
#endif
				d_step { acts[i] = 1; assert(!acts[1 - i]) };
#ifdef EARLY
				says[2 * i + k] = 0;
#endif
				acts[i] = 0;
#ifdef PROCESS
				if
				:: d_step { clm = 0; clmgen = 0; ok = 0 }
				:: d_step { is_free = 1; ok = 0 }
				fi;
#else
				d_step { clm = 0; clmgen = 0; ok = 0 };
#endif
				finish();
				n++
			:: else -> finish()
			fi
		:: n == TURNS -> break
		od;
		ended++;
		goto fin
	} unless { killme[i] };
	d_step { acts[i] = 0; killme[i] = 0; dead[i] = 1 };
	buried[i];
	d_step { buried[i] = 0; k = 0; seen = 0; cg = 0; sg = 0; before = 0; o = 0; s = 0; t = 0; ok = 0 };
	goto again;                                /* the slot's next owner */
fin:	skip
}
/* Of one that has died: a claim of its own would be doubted in the same way. */
proctype Burier() {
	byte i;
end:	do
	:: dead[0] -> i = 0; goto act
	:: dead[1] -> i = 1; goto act
	od;
act:	says[2 * i] = 0;
	says[2 * i + 1] = 0;
	d_step { gen[i]++; dead[i] = 0; buried[i] = 1 };
	goto end
}
/* The slot's next process, which dies at once. */
proctype Publisher() {
end:	do
	:: is_free ->
		d_step { slot++; clm = 0; clmgen = 0 };
		is_free = 0
	od
}
proctype Killer() {
end:	do
	:: d_step { deaths < K && ended < 2 && !dead[0] && !killme[0] -> killme[0] = 1; deaths++ }
	:: d_step { deaths < K && ended < 2 && !dead[1] && !killme[1] -> killme[1] = 1; deaths++ }
	:: true -> break
	od
}
init {
#ifdef DAMAGE
	/* The second one is there and never comes. */
	atomic { gen[0] = 1; gen[1] = 1; clm = 2; clmgen = 1; run Claimer(0) }
#else
	atomic { gen[0] = 1; gen[1] = 1; run Claimer(0); run Claimer(1); run Burier(); run Publisher(); run Killer() }
#endif
}
