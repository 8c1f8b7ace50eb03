/* SPDX-License-Identifier: MIT */
/* The semaphore protocol (cards SEM_W1, SEM_H1 and SEM_G1 in src/ipc/sem_word.c, SEM_L1 and SEM_P2
 * in src/ipc/sem_set.c) at small size.
 *
 * 2 semaphores, 3 processes, one SIGKILL at any step of any of them, a reaper that can
 * itself be killed once at any step.  A step is one shared-memory access that matters to
 * others (CAS, commit store, apply store); stores that only recovery reads and that
 * precede their commit are merged with it (a prefix is equal to nothing done).
 *
 * -DSCEN=n   the programs the processes run     -DKILL=0/1   a death
 * -DRKILL=0/1 a death of the recovery           -DTMO=0/1    sleepers may time out
 * Deliberate faults, each must be caught but SLOWLOST, which is harmless (who claims starts over):
 * -DBUG_REQNO     replay of a grant does not compare the request number
 * -DBUG_UNLINK    a granted waiter is taken off the list after it was told
 * -DBUG_RMIDGEN   removal leaves the old generation; lock takers do not re-check the id
 * -DBUG_NORECHECK word not claimed (SLOW) before the verdict to sleep
 * -DBUG_UNDOORDER word released before semadj is stored
 * -DBUG_GEN       words carry no generation
 * -DBUG_SLOWLOST  holder's release is a blind store: SLOW set meanwhile is lost
 * -DBUG_NOREWAKE  recovery does not wake granted sleepers again
 * -DBUG_NOSERVE   recovery does not re-examine the queues
 * -DBUG_NOPURGE   the remover's slot does not say (op PURGE) that it has memory to give back
 * -DBUG_PURGEFREE a purge that is done again gives back what is another's by now
 * -DBUG_EARLYFREE the index is free before the memory was given back
 *
 * Removal is two parts, as in sem_remove() and sem_purge(): the intent, applied under the set's
 * lock, which ends with op PURGE in the remover's slot; and after the unlock the memory, then the
 * index with the end of PURGE in one step. A death between any two leaves the rest to its burial.
 */
#ifndef SCEN
#define SCEN 1
#endif
#ifndef KILL
#define KILL 1
#endif
#ifndef RKILL
#define RKILL 1
#endif
#ifndef TMO
#define TMO 1
#endif
#define NP 3
#define RP 3                       /* reaper's slot */
#define NONE 7

/* st */
#define FREE 0
#define WAITING 1
#define ASLEEP 2
#define GRANTED 3
#define REMOVED 4
/* si */
#define I_NONE 0
#define I_GRANT 1
#define I_SELF 2
#define I_EXIT 3
#define I_SETVAL 4
#define I_RMID 5
/* results */
#define R_OK 0
#define R_AGAIN 1
#define R_IDRM 2
#define R_SLEEP 3
#define R_BUSY 4

/* --- the words: value, tag (pid, or holder's slot while held), HELD, SLOW, generation */
short val[2]; byte tag[2]; bit hd[2]; bit sl[2]; byte gn[2];
/* --- the set's header: lock, live generation, intent with its side arrays */
byte lk; byte hgen;
byte si; byte siw; byte sireq; short nxv[2]; short nxa[2]; bit nxu[2];
byte nseq;
/* --- the set's slot and memory: used bit of the index, owner of the block of words */
bit ixu; byte blk;               /* blk: generation of the set that has it, 0 free, FLY named */
#define FLY 9
/* --- slots */
typedef Slot {
  bit hu0; bit hu1; bit hc;                 /* hold record: entries used, committed */
  short ov0; short ov1; byte ot0; byte ot1; /* old value, old tag */
  short nv0; short nv1; short na0; short na1;
  byte st; byte rq; bit inq; byte seq; bit wp; bit os;
  short d0; short d1; bit n0; bit n1; bit un; bit nw; /* the request */
  bit fq                                     /* in the kernel, asleep on st */
};
Slot S[4];
short adj0[NP]; short adj1[NP];              /* semadj of (process, sem) */
bit pg[NP]; bit fly[NP];                     /* op PURGE; NAME_FLY names the block */
bit rb;                                      /* the slot's words_ref names the block */
bit kill[NP]; bit dead[NP]; bit rk, ract; bit done[NP];

/* --- ghosts */
short g_plain[2]; byte g_last[2]; byte g_commit[NP]; byte g_ret[NP];
bit g_oldtouch;

#define GENOK(s)  (gn[s] == mygen)
#ifdef BUG_GEN
#define GENCHK(s) (true)
#else
#define GENCHK(s) GENOK(s)
#endif

/* can request of w proceed on values a,b? (array order: sem 0 first) */
#define OK0(w,a) (!S[w].n0 || (S[w].d0==0 && (a)==0) || (S[w].d0!=0 && (a)+S[w].d0>=0))
#define OK1(w,b) (!S[w].n1 || (S[w].d1==0 && (b)==0) || (S[w].d1!=0 && (b)+S[w].d1>=0))
#define RUNS(w)  (OK0(w,val[0]) && OK1(w,val[1]))
#define ALTER(w) (S[w].d0!=0 || S[w].d1!=0)
#define QD(w)    (S[w].inq && (S[w].st==WAITING || S[w].st==ASLEEP))
#define NAMED0(x) ((QD(0)&&S[0].n0)||(QD(1)&&S[1].n0)||(QD(2)&&S[2].n0))
#define NAMED1(x) ((QD(0)&&S[0].n1)||(QD(1)&&S[1].n1)||(QD(2)&&S[2].n1))

/* shadow of the outcome of request w, invisible until si is stored */
inline prep(w) {
  nxu[0]=S[w].n0; nxu[1]=S[w].n1;
  nxv[0]=val[0]+S[w].d0; nxv[1]=val[1]+S[w].d1;
  nxa[0]=adj0[w]-(S[w].un -> S[w].d0 : 0); nxa[1]=adj1[w]-(S[w].un -> S[w].d1 : 0);
}
inline ghost_op(w) {
  if :: S[w].n0 -> g_last[0]=w; if :: !S[w].un -> g_plain[0]=g_plain[0]+S[w].d0 :: else fi :: else fi;
  if :: S[w].n1 -> g_last[1]=w; if :: !S[w].un -> g_plain[1]=g_plain[1]+S[w].d1 :: else fi :: else fi;
  g_commit[w]++;
}

#define DROP(x) d_step { if :: !S[x].os && (S[x].st==WAITING||S[x].st==ASLEEP) -> \
   if :: S[x].st==ASLEEP -> wl = wl | (1<<x) :: else fi; S[x].st=REMOVED; S[x].inq=0 :: else fi };
/* redo of the committed set intent; every line is one step; repeatable */
inline apply() {
  if
  :: atomic { (si==I_GRANT || si==I_SELF) -> if :: nxu[0] -> adj0[siw]=nxa[0] :: else fi };
     atomic { if :: nxu[0] -> val[0]=nxv[0]; tag[0]=siw :: else fi };
     atomic { if :: nxu[1] -> adj1[siw]=nxa[1] :: else fi };
     atomic { if :: nxu[1] -> val[1]=nxv[1]; tag[1]=siw :: else fi };
#ifndef BUG_UNLINK
     atomic { if :: si==I_GRANT && S[siw].rq==sireq -> S[siw].inq=0 :: else fi };
#endif
     atomic {                                     /* one CAS on {request number, state} */
       if
#ifdef BUG_REQNO
       :: si==I_GRANT && (S[siw].st==WAITING || S[siw].st==ASLEEP) ->
#else
       :: si==I_GRANT && S[siw].rq==sireq && (S[siw].st==WAITING || S[siw].st==ASLEEP) ->
#endif
          if :: S[siw].st==ASLEEP -> wl = wl | (1<<siw) :: else fi;
          S[siw].st=GRANTED
       :: else
       fi };
#ifdef BUG_UNLINK
     atomic { if :: si==I_GRANT && S[siw].rq==sireq -> S[siw].inq=0 :: else fi }
#else
     skip
#endif
  :: atomic { si==I_EXIT -> if :: nxu[0] -> val[0]=nxv[0]; tag[0]=siw :: else fi };
     atomic { if :: nxu[0] -> adj0[siw]=0 :: else fi };
     atomic { if :: nxu[1] -> val[1]=nxv[1]; tag[1]=siw :: else fi };
     atomic { if :: nxu[1] -> adj1[siw]=0 :: else fi }
  :: atomic { si==I_SETVAL -> adj0[0]=0 };
     adj0[1]=0; adj0[2]=0;
     d_step { val[0]=nxv[0]; tag[0]=siw }
#ifndef BUG_NOPURGE
  :: atomic { si==I_RMID -> pg[siw]=1 };             /* op PURGE before live is 0 */
     hgen=0;
#else
  :: atomic { si==I_RMID -> hgen=0 };
#endif
     DROP(0) DROP(1) DROP(2)
#ifndef BUG_RMIDGEN
     gn[0]=0; gn[1]=0;
#endif
     d_step { adj0[0]=0; adj0[1]=0; adj0[2]=0; adj1[0]=0; adj1[1]=0; adj1[2]=0 }
  fi;
  d_step { si=I_NONE; nxu[0]=0; nxu[1]=0; nxv[0]=0; nxv[1]=0; nxa[0]=0; nxa[1]=0; siw=0; sireq=0 }
}

#define PICK(x,c) if :: (c) && QD(x) && RUNS(x) && (g==NONE || S[x].seq<S[g].seq) -> g=x :: else fi;
/* under the set's lock: perform every request that became possible, zero waiters first,
 * then in order of arrival; one commit a request */
inline serve() {
  do
  :: atomic {
       d_step {
       g=NONE;
       PICK(0,!ALTER(0)) PICK(1,!ALTER(1)) PICK(2,!ALTER(2))
       if :: g==NONE -> gz=1 :: else -> gz=0 fi;
       PICK(0,gz && ALTER(0)) PICK(1,gz && ALTER(1)) PICK(2,gz && ALTER(2))
       gz=0;
       if :: g!=NONE -> prep(g); si=I_GRANT; siw=g; sireq=S[g].rq; ghost_op(g) :: else fi };  /* COMMIT */
       if :: g==NONE -> break :: else -> g=NONE fi };
     apply()
  od; skip
}

/* clear SLOW where nobody waits; a plain store, the word is ours */
inline unclaim() {
  d_step { if :: sl[0] && !hd[0] && !NAMED0(0) -> sl[0]=0 :: else fi };
  d_step { if :: sl[1] && !hd[1] && !NAMED1(0) -> sl[1]=0 :: else fi }
}
inline unlock_wake(me) {
  if :: wl!=0 -> S[me].wp=1 :: else fi;
  lk=0;
  do
  :: wl & 1 -> d_step { wl=wl & 6; S[0].fq=0 }
  :: wl & 2 -> d_step { wl=wl & 5; S[1].fq=0 }
  :: wl & 4 -> d_step { wl=wl & 3; S[2].fq=0 }
  :: wl==0 -> break
  od; skip;
  atomic { if :: S[me].wp -> S[me].wp=0 :: else fi }
}

/* claim word s for the set's lock: ends with SLOW set; busy=1 if it is still held */
inline claim(s) {
  d_step { sl[s]=1; if :: hd[s] -> busy=1 :: else fi }
}

/* hold word s: save the old word, then CAS; retries until held or refused */
inline hold0(me) {
  do
  :: atomic { if :: !S[me].n0 -> break :: else fi;
              S[me].ov0=val[0]; S[me].ot0=tag[0]; S[me].hu0=1 };
     atomic {
       if
       :: sl[0] || !GENCHK(0) -> ret=R_BUSY; break
       :: hd[0] && !sl[0] && GENCHK(0) -> skip                    /* spin below */
       :: !hd[0] && !sl[0] && GENCHK(0) && (S[me].ov0!=val[0] || S[me].ot0!=tag[0]) -> skip
       :: !hd[0] && !sl[0] && GENCHK(0) && S[me].ov0==val[0] && S[me].ot0==tag[0] ->
          hd[0]=1; tag[0]=me; break
       fi };
     (!hd[0] || sl[0] || !GENCHK(0))
  od; skip
}
inline hold1(me) {
  do
  :: atomic { if :: !S[me].n1 -> break :: else fi;
              S[me].ov1=val[1]; S[me].ot1=tag[1]; S[me].hu1=1 };
     atomic {
       if
       :: sl[1] || !GENCHK(1) -> ret=R_BUSY; break
       :: hd[1] && !sl[1] && GENCHK(1) -> skip
       :: !hd[1] && !sl[1] && GENCHK(1) && (S[me].ov1!=val[1] || S[me].ot1!=tag[1]) -> skip
       :: !hd[1] && !sl[1] && GENCHK(1) && S[me].ov1==val[1] && S[me].ot1==tag[1] ->
          hd[1]=1; tag[1]=me; break
       fi };
     (!hd[1] || sl[1] || !GENCHK(1))
  od; skip
}
#ifdef BUG_SLOWLOST
#define LOSE0 sl[0]=0;
#define LOSE1 sl[1]=0;
#else
#define LOSE0
#define LOSE1
#endif
/* finish or undo the holds of slot v; by v itself or by its recovery; repeatable */
inline settle(v) {
#ifdef BUG_UNDOORDER
  atomic { ub=(S[v].hc && S[v].hu0 && hd[0] && tag[0]==v); if :: ub -> val[0]=S[v].nv0; tag[0]=v; hd[0]=0; LOSE0 :: else fi };
  atomic { if :: ub -> adj0[v]=S[v].na0 :: else fi };
#endif
  atomic { if :: S[v].hc && S[v].hu0 && hd[0] && tag[0]==v -> adj0[v]=S[v].na0 :: else fi };
  atomic { if :: S[v].hu0 && hd[0] && tag[0]==v ->
     if :: S[v].hc -> val[0]=S[v].nv0; tag[0]=v :: else -> val[0]=S[v].ov0; tag[0]=S[v].ot0 fi; hd[0]=0; LOSE0 :: else fi };
  atomic { if :: S[v].hc && S[v].hu1 && hd[1] && tag[1]==v -> adj1[v]=S[v].na1 :: else fi };
  atomic { if :: S[v].hu1 && hd[1] && tag[1]==v ->
     if :: S[v].hc -> val[1]=S[v].nv1; tag[1]=v :: else -> val[1]=S[v].ov1; tag[1]=S[v].ot1 fi; hd[1]=0; LOSE1 :: else fi };
  d_step { S[v].hu0=0; S[v].hu1=0; S[v].hc=0; S[v].ov0=0; S[v].ov1=0; S[v].ot0=0; S[v].ot1=0;
           S[v].nv0=0; S[v].nv1=0; S[v].na0=0; S[v].na1=0 }
}

inline setreq(me, a0, x0, a1, x1, u, w) {
  d_step { S[me].n0=a0; S[me].d0=x0; S[me].n1=a1; S[me].d1=x1; S[me].un=u; S[me].nw=w; S[me].rq++ }
}

#define REW(x) if :: S[x].st==GRANTED||S[x].st==REMOVED -> wl = wl | (1<<x) :: else fi;
/* semop: result in ret */
inline semop(me, maytime) {
  ret=R_BUSY;
  do
  :: ret!=R_BUSY -> break
  :: ret==R_BUSY ->
     /* lookup */
     atomic { if :: hgen==mygen -> ret=R_SLEEP :: else -> ret=R_IDRM; break fi;
     /* fast: nobody waits */
              s = ((S[me].un || (S[me].n0 && S[me].n1)) -> 2 : (S[me].n0 -> 0 : 1)) };
     if
     :: s<2 ->
        atomic {                                   /* the plain operation: one CAS = COMMIT */
          if
          :: !GENCHK(s) -> ret=R_IDRM
          :: GENCHK(s) && (sl[s]) -> ret=R_SLEEP
          :: GENCHK(s) && !sl[s] && hd[s] -> ret=R_BUSY
          :: GENCHK(s) && !sl[s] && !hd[s] && !RUNS(me) -> ret=(S[me].nw -> R_AGAIN : R_SLEEP)
          :: GENCHK(s) && !sl[s] && !hd[s] && RUNS(me) ->
             if :: !GENOK(s) -> g_oldtouch=1 :: else fi;
             val[s]=val[s]+(s==0 -> S[me].d0 : S[me].d1); tag[s]=me; ghost_op(me); ret=R_OK
          fi };
        if :: ret==R_BUSY -> (!hd[s] || sl[s] || gn[s]!=mygen) :: else fi
     :: else ->
        s=0;
        hold0(me);
        if :: ret==R_SLEEP -> hold1(me) :: else fi;
        if
        :: ret==R_BUSY -> ret=R_SLEEP               /* somebody waits here: slow */
        :: else ->
           atomic {
             if
             :: (!S[me].n0 || OK0(me,S[me].ov0)) && (!S[me].n1 || OK1(me,S[me].ov1)) ->
                S[me].nv0=S[me].ov0+S[me].d0; S[me].nv1=S[me].ov1+S[me].d1;
                S[me].na0=adj0[me]-(S[me].un -> S[me].d0 : 0); S[me].na1=adj1[me]-(S[me].un -> S[me].d1 : 0);
                if :: (S[me].n0 && !GENOK(0)) || (S[me].n1 && !GENOK(1)) -> g_oldtouch=1 :: else fi;
                S[me].hc=1; ghost_op(me); ret=R_OK   /* COMMIT */
             :: else -> ret=(S[me].nw -> R_AGAIN : R_SLEEP)
             fi }
        fi;
        settle(me)
     fi;
     if
     :: ret!=R_SLEEP
     :: else ->
        /* slow: under the set's lock */
        atomic { lk==0 -> lk=me+1; busy=(hgen!=mygen) };
        if
        :: busy -> ret=R_IDRM; lk=0; break
        :: else
        fi;
#ifdef BUG_NORECHECK
        atomic { if :: (S[me].n0&&hd[0])||(S[me].n1&&hd[1]) -> busy=1 :: else fi };
#else
        atomic { if :: S[me].n0 -> sl[0]=1; if :: hd[0] -> busy=1 :: else fi :: else fi };
        atomic { if :: S[me].n1 -> sl[1]=1; if :: hd[1] -> busy=1 :: else fi :: else fi };
#endif
        if
        :: busy ->
           lk=0; ret=R_BUSY; busy=0;
           (!(S[me].n0 && hd[0]) && !(S[me].n1 && hd[1]))      /* wait with nothing held */
        :: else ->
           d_step { if :: RUNS(me) -> prep(me); si=I_SELF; siw=me; ghost_op(me); ret=R_OK   /* COMMIT */
                    :: else -> if :: S[me].nw -> ret=R_AGAIN
                                  :: else -> S[me].seq=nseq; nseq++; S[me].st=WAITING fi fi };
           if
           :: ret==R_OK -> apply(); serve()
           :: else ->
              if
              :: ret==R_AGAIN
              :: else ->
                 S[me].inq=1;
#ifdef BUG_NORECHECK
                 if :: S[me].n0 -> sl[0]=1 :: else fi;
                 if :: S[me].n1 -> sl[1]=1 :: else fi;
#endif
                 ret=R_SLEEP
              fi
           fi;
           unclaim();
           unlock_wake(me);
           if
           :: ret==R_SLEEP ->
              /* client: spin is a no-op here; announce, then futex */
              d_step { if :: S[me].st==WAITING -> S[me].st=ASLEEP :: else fi };
              d_step { if :: S[me].st==ASLEEP -> S[me].fq=1 :: else fi };      /* futex compares */
end_fx:       if
              :: S[me].fq==0
              :: S[me].fq && maytime -> S[me].fq=0
              fi;
              atomic { if :: S[me].st==GRANTED -> ret=R_OK :: S[me].st==REMOVED -> ret=R_IDRM :: else fi };
              if
              :: ret!=R_SLEEP
              :: else ->
                 /* time-out or signal: leave under the lock; success wins */
                 atomic { lk==0 -> lk=me+1 };
                 atomic { if :: S[me].st==GRANTED -> ret=R_OK :: S[me].st==REMOVED -> ret=R_IDRM
                             :: else -> S[me].st=FREE; ret=R_AGAIN fi };
                 S[me].inq=0;
                 if :: hgen==mygen -> unclaim() :: else fi;
                 lk=0
              fi;
              d_step { S[me].st=FREE; S[me].seq=0 }
           :: else
           fi
        fi
     fi
  od; skip;
  d_step {
    s=0; busy=0; g=NONE; k=0;
    if :: ret==R_OK -> g_ret[me]++ :: else fi;
    assert(g_ret[me]==g_commit[me]);               /* success returned iff performed, once */
    S[me].n0=0; S[me].n1=0; S[me].d0=0; S[me].d1=0; S[me].un=0; S[me].nw=0
  }
}

/* claim both words under the lock, waiting with nothing held */
inline lock_claim_all(me, from_dead) {
  do
  :: if
     :: from_dead -> atomic { (lk==0 || lk==RP+1) -> lk=RP+1 }
     :: else -> atomic { lk==0 -> lk=me+1 }
     fi;
     busy=0;
#ifndef BUG_RMIDGEN
     if :: hgen!=mygen -> break :: else fi;               /* S3: also the reaper, also exit */
#endif
     claim(0); claim(1);
     if
     :: busy -> lk=0; busy=0; (!hd[0] && !hd[1])
     :: else -> break
     fi
  od; skip
}
inline exit_undo(v) {
  if
  :: hgen==mygen && (adj0[v]!=0 || adj1[v]!=0) ->
     d_step {
       nxu[0]=(adj0[v]!=0); nxu[1]=(adj1[v]!=0);
       nxv[0]=val[0]+adj0[v]; nxv[1]=val[1]+adj1[v];
       if :: nxv[0]<0 -> g_plain[0]=g_plain[0]-nxv[0]; nxv[0]=0 :: else fi;  /* clamp, ghost */
       if :: nxv[1]<0 -> g_plain[1]=g_plain[1]-nxv[1]; nxv[1]=0 :: else fi;
       if :: nxu[0] -> g_last[0]=v :: else fi;
       if :: nxu[1] -> g_last[1]=v :: else fi;
       si=I_EXIT; siw=v };                                                   /* COMMIT */
     apply(); serve()
  :: else
  fi
}

/* sem_purge and ids_forget, by the remover or in its name; repeatable. The new set's maker is
 * whoever finds index and memory free: Maker. */
#define USES(v) (pg[v] && hgen==0)
inline purge(v) {
  if
  :: USES(v) ->
#ifndef BUG_PURGEFREE
     d_step { if :: fly[v] && rb -> rb=0 :: else fi };  /* cut short: the name has it */
#endif
#ifdef BUG_EARLYFREE
     ixu=0;
#endif
     d_step { if :: fly[v] && blk==FLY -> blk=0 :: else fi };
     fly[v]=0;
     if
     :: rb -> d_step { fly[v]=1; if :: blk==1 -> blk=FLY :: else fi };
        rb=0;
        d_step { assert(blk==FLY); blk=0 };             /* the bit of the block */
        fly[v]=0
     :: else
     fi;
     d_step { assert(hgen==0); ixu=0; pg[v]=0 }         /* under the table's lock: one step */
  :: pg[v] && hgen!=0 -> pg[v]=0                        /* not removed after all */
  :: else
  fi
}

proctype P(byte me; byte mygen) {
  byte ret, s, k, g=NONE, wl; bit busy, gz, ub;
  {
#if SCEN==1      /* hand-off across two semaphores to a complex waiter; undo at exit */
    if
    :: me==0 -> setreq(me,1,-1,1,-1,0,0); semop(me,TMO)
    :: me==1 -> setreq(me,1,1,0,0,1,0); semop(me,0)
    :: me==2 -> setreq(me,0,0,1,1,0,0); semop(me,0)
    fi;
#elif SCEN==2    /* two simple waiters, one with undo, a two-semaphore post on the held path */
    if
    :: me==0 -> setreq(me,1,-1,0,0,0,0); semop(me,TMO)
    :: me==1 -> setreq(me,1,-1,0,0,1,0); semop(me,TMO)
    :: me==2 -> setreq(me,1,1,1,1,0,0); semop(me,0)
    fi;
#elif SCEN==3    /* zero waiter, complex mixed zero/alter waiter */
    if
    :: me==0 -> setreq(me,1,0,1,-1,0,0); semop(me,TMO)
    :: me==1 -> setreq(me,1,0,0,0,0,0); semop(me,0)
    :: me==2 -> setreq(me,1,-1,0,0,1,0); semop(me,0); setreq(me,0,0,1,1,0,0); semop(me,0)
    fi;
#elif SCEN==4    /* SETVAL against undo and a waiter */
    if
    :: me==0 -> setreq(me,1,-1,0,0,0,0); semop(me,TMO)
    :: me==1 -> setreq(me,1,1,0,0,1,0); semop(me,0)
    :: me==2 ->
       lock_claim_all(me,0);
       d_step { nxv[0]=1; nxu[0]=1; g_plain[0]=1; g_last[0]=me; si=I_SETVAL; siw=me };  /* COMMIT */
       apply(); serve(); unclaim(); unlock_wake(me)
    fi;
#elif SCEN==5    /* removal, id and storage reuse against stale fast paths and a waiter */
    if
    :: me==0 -> setreq(me,1,-1,0,0,0,0); semop(me,0)
    :: me==1 -> setreq(me,1,1,1,1,1,0); semop(me,0)
    :: me==2 ->
       lock_claim_all(me,0);
       if
       :: hgen==mygen ->
          d_step { siw=me; si=I_RMID };                                       /* COMMIT */
          apply(); unlock_wake(me);
          assert(!hd[0] && !hd[1]);
          purge(me)
       :: else
       fi
    fi;
#elif SCEN==6    /* request after request: a granted waiter sleeps again at once */
    if
    :: me==0 -> setreq(me,1,-1,0,0,0,0); semop(me,0); setreq(me,0,0,1,-1,0,0); semop(me,0)
    :: me==1 -> setreq(me,1,1,0,0,0,0); semop(me,0)
    :: me==2 -> setreq(me,0,0,1,1,0,0); semop(me,0)
    fi;
#elif SCEN==8    /* a granted waiter goes on to sleep in another set (os) */
    if
    :: me==0 -> setreq(me,1,-1,0,0,0,0); semop(me,0);
       d_step { S[0].rq++; S[0].os=1; S[0].st=WAITING };
       (done[1] || dead[1]) && (done[2] || dead[2]);
       !dead[1] || (S[RP].hc);                          /* recovery over */
       assert(S[0].st==WAITING);
       d_step { S[0].st=FREE; S[0].os=0 }
    :: me==1 -> setreq(me,1,1,0,0,0,0); semop(me,0)
    :: me==2 -> skip
    fi;
#elif SCEN==7    /* a lock with undo, three users, one of them complex */
    if
    :: me==0 -> setreq(me,1,-1,0,0,1,0); semop(me,0); setreq(me,1,1,0,0,1,0); semop(me,0)
    :: me==1 -> setreq(me,1,-1,0,0,1,0); semop(me,0); setreq(me,1,1,0,0,1,0); semop(me,0)
    :: me==2 -> setreq(me,1,-1,1,0,0,0); semop(me,TMO); if :: ret==R_OK -> setreq(me,1,1,0,0,0,0); semop(me,0) :: else fi
    fi;
#endif
    /* exit */
    if
    :: (adj0[me]!=0 || adj1[me]!=0) ->
       lock_claim_all(me,0);
       exit_undo(me); if :: hgen==mygen -> unclaim() :: else fi; unlock_wake(me)
    :: else
    fi;
    done[me]=1
  } unless { atomic { (kill[me] && !done[me]) -> dead[me]=1; ret=0; s=0; k=0; g=NONE; wl=0; busy=0; ub=0 } }
}

/* reaper: settles what a dead slot left.  It may be killed once; its successor starts over
 * and finds the set's lock owned by the dead reaper. */
proctype Reaper(byte mygen) {
  byte v, ret, s, k, g=NONE, wl; bit busy, gz, ub; bit fin;
  do
  :: fin -> break
  :: !fin ->
end_r: {
       atomic { (dead[0]||dead[1]||dead[2]) -> ract=1; v = (dead[0] -> 0 : (dead[1] -> 1 : 2)); k=0; g=NONE; wl=0; busy=0 };
       settle(v);                                          /* R1: holds */
       atomic { (lk==0 || lk==v+1 || lk==RP+1) -> ret=lk; lk=RP+1 };
       if
       :: ret!=0 ->                                        /* R2: the owner died inside */
          if :: si!=I_NONE -> apply() :: else fi;
          d_step {                                         /* queues rebuilt from the slots */
            S[0].inq=(S[0].st==WAITING||S[0].st==ASLEEP) && !S[0].os; S[1].inq=(S[1].st==WAITING||S[1].st==ASLEEP);
            S[2].inq=(S[2].st==WAITING||S[2].st==ASLEEP) };
          if :: hgen==mygen ->
#ifndef BUG_NOSERVE
             serve()
#else
             skip
#endif
          :: else fi
       :: else
       fi;
       /* R3: its own request leaves */
       d_step { if :: S[v].st==WAITING||S[v].st==ASLEEP -> S[v].st=FREE :: else fi };
       S[v].inq=0;
       /* R4: its undo.  The words of its semaphores are claimed; held ones are waited for
          with nothing held */
       lk=0;
       lock_claim_all(RP,1);
       if :: si!=I_NONE -> apply() :: else fi;
       exit_undo(v);
#ifndef BUG_NOSERVE
       if :: hgen==mygen -> serve() :: else fi;
#endif
#ifndef BUG_RMIDGEN
       if :: hgen==mygen -> unclaim() :: else fi;
#else
       unclaim();
#endif
       /* R5: wake again whatever was granted; a dead slot may have owed wakes */
#ifndef BUG_NOREWAKE
       d_step { REW(0) REW(1) REW(2) };
#endif
       unlock_wake(RP);
       S[v].wp=0;
       purge(v);                                        /* R6: a removal's last part */
       d_step { fin=1; S[RP].hc=1 }
     } unless { atomic { rk -> rk=0; v=0; ret=0; k=0; g=NONE; wl=0; busy=0 } }
  od
}

#if SCEN==5
/* The next set in the same index and the same memory: words with the new generation, then live. */
proctype Maker() {
end_mk: d_step { ixu==0 && blk==0 ->
    assert(hgen==0); rb=1; blk=2; ixu=1;
    val[0]=0; tag[0]=0; sl[0]=0; gn[0]=2; val[1]=0; tag[1]=0; sl[1]=0; gn[1]=2;
    g_plain[0]=0; g_plain[1]=0; g_last[0]=0; g_last[1]=0 };
  hgen=2
}
#endif

proctype Killer() {
  if
#if KILL
#ifdef VICTIM
  :: kill[VICTIM]=1          /* a kill after the end is no kill */
#else
  :: kill[0]=1
  :: kill[1]=1
  :: kill[2]=1
#endif
#else
  :: skip
#endif
  fi;
#if RKILL
end_k: ract -> rk=1
#endif
}

/* conservation and sempid, whenever the word is nobody's transition */
#define INV(s,A) (!(hgen==1 || SCEN!=5) || hd[s] || (si!=I_NONE) || gn[s]!=hgen || \
   (val[s]>=0 && val[s]+A[0]+A[1]+A[2]==INIT##s+g_plain[s] && tag[s]==g_last[s]))
#if SCEN==3 || SCEN==7
#define INIT0 1
#else
#define INIT0 0
#endif
#define INIT1 0
proctype Monitor() {
end_m:
  do
  :: atomic { !INV(0,adj0) -> assert(false) }
  :: atomic { !INV(1,adj1) -> assert(false) }
  :: atomic { g_oldtouch -> assert(false) }
  od
}
#define FIN(k) \
       assert(!dead[k] || (adj0[k]==0 && adj1[k]==0 && S[k].st!=WAITING && S[k].st!=ASLEEP)); \
       assert(dead[k] || done[k] || S[k].fq);             /* only sleepers are left */ \
       assert(dead[k] || done[k] || S[k].st==ASLEEP);     /* and none of them was granted */ \
       assert(dead[k] || done[k] || !RUNS(k));            /* nor could proceed */ \
       assert(dead[k] || done[k] || ((!S[k].n0 || sl[0]) && (!S[k].n1 || sl[1])));
proctype Final() {
end_t: timeout ->
  d_step {
    assert(lk==0 && si==I_NONE && !hd[0] && !hd[1]);
    FIN(0) FIN(1) FIN(2)
    assert(!pg[0] && !pg[1] && !pg[2] && !fly[0] && !fly[1] && !fly[2]);
    assert(hgen==2 || (hgen==1 && ixu && blk==1 && rb));    /* removed: all of it came back */
  }
}
init {
  d_step {
    hgen=1; ixu=1; blk=1; rb=1; gn[0]=1; gn[1]=1; val[0]=INIT0; val[1]=INIT1;
    tag[0]=0; tag[1]=0; g_last[0]=0; g_last[1]=0
  };
  atomic { run Monitor(); run Killer(); run Reaper(1); run P(0,1); run P(1,1); run P(2,1); run Final();
#if SCEN==5
    run Maker()
#endif
  }
}
