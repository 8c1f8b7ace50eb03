// SPDX-License-Identifier: MIT
/*
 * A worker of the storm: everything that System V IPC offers, at random, by the C library's calls.
 * It holds what it has taken only while it does not wait for more, so that nobody waits for ever;
 * it is killed anywhere, executes itself, forks children that do the same, has threads, and ends in
 * several ways.
 */
#include "worker.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/sem.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef MSG_EXCEPT
#define MSG_EXCEPT 020000
#endif

#define TIMED_MOST_NS 5000000

struct seat *seat;
uint32_t seat_ix;
struct account *me;
uint32_t identity;
struct storm_message message;
static __thread uint64_t random_state;
static pid_t child; /* in the seat beside; 0: none */
static int threads; /* beside the first */
static uint16_t last_number[IDENTITIES][QUEUES][TYPES];

uint32_t rnd(uint32_t below)
{
	return storm_random(&random_state, below);
}

static bool over(void)
{
	return __atomic_load_n(&ledger->stop, __ATOMIC_ACQUIRE);
}

void count(uint64_t *counter)
{
	__atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
}

static void doing(enum doing what)
{
	seat->since_ns = storm_now_ns();
	__atomic_store_n(&seat->doing, what, __ATOMIC_RELEASE);
}

static void new_identity(void)
{
	identity = __atomic_fetch_add(&ledger->identities, 1, __ATOMIC_RELAXED);
	if (identity >= IDENTITIES)
		identity = IDENTITIES - 1; /* shared: whoever has it sends and counts nothing */
	me = &ledger->account[identity];
	seat->identity = identity;
}

bool has_account(void)
{
	return identity < IDENTITIES - 1;
}

/* ---- Semaphores -------------------------------------------------------------------------- */

/* True: done. False: not in time, or a signal came. Other errors are wrong here. */
static bool op(int id, struct sembuf *s, size_t n, bool timed, const char *what)
{
	struct timespec t = {0, 1 + (long)rnd(TIMED_MOST_NS)};

	count(&ledger->semops);
	if (semtimedop(id, s, n, timed ? &t : NULL) == 0)
		return true;
	if (errno != EAGAIN && errno != EINTR)
		storm_fail("%s: semop: %s", what, strerror(errno));
	return false;
}

/* Gives back: that never waits. */
static void give(int id, struct sembuf *s, size_t n, const char *what)
{
	for (size_t i = 0; i < n; i++)
		s[i] = (struct sembuf){s[i].sem_num, 1, SEM_UNDO | IPC_NOWAIT};
	count(&ledger->semops);
	if (semop(id, s, n) < 0)
		storm_fail("%s cannot be given back: %s", what, strerror(errno));
}

/* Alone inside. A mark that is there before may be a dead one's. */
static void look_inside(uint64_t *inside)
{
	uint64_t mark = (uint64_t)gettid();

	__atomic_store_n(inside, mark, __ATOMIC_SEQ_CST);
	for (int k = 0; k < 20; k++) {
		uint64_t seen = __atomic_load_n(inside, __ATOMIC_SEQ_CST);

		if (seen != mark)
			storm_fail("two have lock %td: %d and %d", inside - ledger->inside,
				   (int)mark, (int)seen);
		if (k == 10 && rnd(8) == 0)
			sched_yield();
	}
	__atomic_store_n(inside, 0, __ATOMIC_SEQ_CST);
}

static size_t choose(struct sembuf *take)
{
	size_t n = 0;

	for (unsigned short s = 0; s < POOL_SEMS; s++)
		if (n == 0 ? s == POOL_SEMS - 1 || rnd(3) == 0 : rnd(4) == 0)
			take[n++] = (struct sembuf){s, -1, SEM_UNDO};
	return n;
}

static void tokens(bool in_thread)
{
	int pool = (int)rnd(POOLS), id = ledger->pool[pool];
	struct sembuf s[POOL_SEMS];
	size_t n = choose(s);
	bool timed = rnd(4) == 0, taken;

	if (rnd(8) == 0) {
		s[0] = (struct sembuf){POOL_SEMS, -1, SEM_UNDO};
		n = 1;
	}
	if (rnd(4)) /* mostly: who sleeps is not killed in the middle of anything */
		s[rnd((uint32_t)n)].sem_flg |= IPC_NOWAIT;
	if (!in_thread)
		doing(DOING_TOKEN);
	taken = op(id, s, n, timed, "tokens");
	if (!in_thread)
		doing(DOING_OTHER);
	if (!taken)
		return;
	if (s[0].sem_num == POOL_SEMS)
		look_inside(&ledger->inside[pool]);
	else if (rnd(20) == 0)
		sched_yield();
	give(id, s, n, "tokens");
}

/* A token in each of the sets and of different kinds, given up by ending. */
static void take_without_giving(void)
{
	for (int i = 0; i < 3; i++) {
		struct sembuf s = {(unsigned short)rnd(POOL_SEMS), -1, SEM_UNDO | IPC_NOWAIT};

		(void)op(ledger->pool[rnd(POOLS)], &s, 1, false, "tokens");
	}
}

static void move_units(bool nowait)
{
	unsigned short from = (unsigned short)rnd(SUM_SEMS),
		       to = (unsigned short)((from + 1 + rnd(SUM_SEMS - 1)) % SUM_SEMS);
	short units = (short)(1 + rnd(20));
	struct sembuf s[2] = {{from, (short)-units, (short)(nowait ? IPC_NOWAIT : 0)},
			      {to, units, 0}};

	(void)op(ledger->sum, s, 2, true, "units");
}

static void look_at_sum(void)
{
	unsigned short v[SUM_SEMS];
	unsigned sum = 0;

	if (semctl(ledger->sum, 0, GETALL, v) < 0)
		storm_fail("GETALL: %s", strerror(errno));
	for (int i = 0; i < SUM_SEMS; i++)
		sum += v[i];
	if (sum != SUM_SEMS * SUM_UNITS)
		storm_fail("the sum is %u, not %u", sum, SUM_SEMS * SUM_UNITS);
	for (unsigned short s = 0; s <= POOL_SEMS; s++) {
		int value = semctl(ledger->pool[rnd(POOLS)], s, GETVAL);

		if (value < 0 || value > (s == POOL_SEMS ? 1 : TOKENS))
			storm_fail("%d tokens of kind %d", value, s);
	}
}

static void plain(void)
{
	unsigned short s = (unsigned short)rnd(PLAIN);
	struct sembuf plus = {s, 1, 0}, minus = {s, -1, IPC_NOWAIT};

	if (!has_account())
		return;
	for (int i = 0; i < 10; i++) {
		bool up = rnd(2);
		int32_t *tried = up ? &me->plus_tried[s] : &me->minus_tried[s];
		int32_t *done = up ? &me->plus_done[s] : &me->minus_done[s];

		++*tried;
		note();
		if (semop(ledger->plain, up ? &plus : &minus, 1) < 0)
			storm_fail("plain: %s", strerror(errno));
		note();
		*done = *tried;
		note();
	}
	count(&ledger->semops);
}

static void zero(void)
{
	unsigned short i = (unsigned short)rnd(2);
	struct sembuf lock[2] = {{i, 0, 0}, {i, 1, SEM_UNDO}};
	struct sembuf unlock = {i, -1, SEM_UNDO | IPC_NOWAIT};
	bool taken;

	doing(DOING_TOKEN);
	taken = op(ledger->zero, lock, 2, rnd(4) == 0, "zero");
	doing(DOING_OTHER);
	if (!taken)
		return;
	look_inside(&ledger->inside[POOLS + i]);
	if (semop(ledger->zero, &unlock, 1) < 0)
		storm_fail("lock %d was not ours: %s", i, strerror(errno));
}

static void set_values(void)
{
	struct sembuf s[2] = {{2, (short)(rnd(2) ? -1 : 1), (short)(rnd(2) ? SEM_UNDO : 0)},
			      {2, 0, 0}};
	struct semid_ds ds;

	switch (rnd(5)) {
	case 0:
		if (semctl(ledger->zero, 2, SETVAL, (int)rnd(4)) < 0)
			storm_fail("SETVAL: %s", strerror(errno));
		break;
	case 1:
		(void)op(ledger->zero, s + 1, 1, true, "wait for zero");
		break;
	case 2:
		if (semctl(ledger->zero, 0, IPC_STAT, &ds) < 0 || ds.sem_nsems != ZERO_SEMS ||
		    semctl(ledger->zero, 0, IPC_SET, &ds) < 0)
			storm_fail("IPC_STAT and IPC_SET: %s", strerror(errno));
		break;
	case 3:
		if (semctl(ledger->zero, 2, GETNCNT) < 0 || semctl(ledger->zero, 2, GETZCNT) < 0 ||
		    semctl(ledger->zero, 2, GETPID) < 0)
			storm_fail("GETNCNT: %s", strerror(errno));
		break;
	default:
		if (semctl(ledger->zero, 2, GETVAL) < 1000)
			(void)op(ledger->zero, s, 1 + rnd(2), true, "up and down");
		break;
	}
}

/* ---- Signals ---------------------------------------------------------------------------- */

/* Handlers may make calls, in whatever they interrupted. */
static void on_alarm(int signal)
{
	int saved = errno;

	(void)signal;
	if (rnd(2))
		move_units(true);
	if (rnd(4) == 0)
		look_at_sum();
	errno = saved;
}

static void arm(suseconds_t again_us)
{
	struct itimerval t = {.it_value = {0, 50 + (suseconds_t)rnd(3000)},
			      .it_interval = {0, again_us}};

	setitimer(ITIMER_REAL, &t, NULL);
}

static void disarm(void)
{
	const struct itimerval none = {0};

	setitimer(ITIMER_REAL, &none, NULL);
}

/* ---- Messages ---------------------------------------------------------------------------- */

static uint32_t some_size(void)
{
	switch (rnd(8)) {
	case 0:
		return rnd(TEXT_MOST - (uint32_t)sizeof(message.head) + 1);
	case 1:
		return rnd(2000);
	default:
		return rnd(200);
	}
}

static void send_one(void)
{
	uint32_t q = rnd(QUEUES), t = rnd(TYPES), bytes = some_size();
	int flags = rnd(4) ? IPC_NOWAIT : 0;
	bool patient = flags || rnd(8) == 0; /* until something happens to it */
	uint16_t number = (uint16_t)(me->sent[q][t] + 1);
	int rc, error;

	if (has_account() && number > NUMBERS)
		new_identity();
	if (!has_account())
		return;
	number = (uint16_t)(me->sent[q][t] + 1);
	message.type = (long)t + 1;
	message.head.identity = identity;
	message.head.number = number;
	message.head.queue = q;
	message.head.bytes = bytes;
	memset(message.text, (int)((identity * 31 + number * 7 + t) & 0xff), bytes);
	seat->queue = q;
	seat->type = (int64_t)(sizeof(message.head) + bytes);
	me->sends = 1;
	me->tried[q][t] = number;
	note();
	doing(DOING_SEND);
	if (!patient)
		arm(2000);
	rc = msgsnd(ledger->queue[q], &message, sizeof(message.head) + bytes, flags);
	note();
	if (rc == 0)
		me->sent[q][t] = number;
	else
		me->tried[q][t] = me->sent[q][t];
	note();
	doing(DOING_OTHER);
	error = errno;
	if (!patient)
		disarm();
	errno = error;
	if (rc == 0)
		count(&ledger->sent);
	else if (errno != EAGAIN && errno != EINTR &&
		 !(over() && (errno == EIDRM || errno == EINVAL)))
		storm_fail("msgsnd: %s", strerror(errno));
}

static void receive_one(void)
{
	uint32_t q = rnd(QUEUES), how = rnd(6);
	long type = how == 0 ? 0 : (long)(1 + rnd(TYPES));
	int flags = rnd(4) ? IPC_NOWAIT : 0, error;
	bool patient = flags || rnd(8) == 0;
	ssize_t n;

	if (!has_account())
		return;
	if (how == 1)
		type = -type;
	if (how == 2)
		flags |= MSG_EXCEPT;
	me->wanted = how == 2 ? type | EXCEPT : type;
	seat->queue = q;
	seat->type = me->wanted;
	note();
	me->receiving = q + 1;
	note();
	doing(DOING_RECEIVE);
	if (!patient)
		arm(2000);
	n = msgrcv(ledger->queue[q], &message, sizeof(message.head) + TEXT_MOST, type, flags);
	note();
	error = errno;
	if (n >= 0)
		storm_tick_off(&message, n, q,
			       &last_number[message.head.identity % IDENTITIES][q][0]);
	note();
	me->receiving = 0;
	note();
	doing(DOING_OTHER);
	if (!patient)
		disarm();
	errno = error;
	if (n < 0 && errno != ENOMSG && errno != EINTR &&
	    !(over() && (errno == EIDRM || errno == EINVAL)))
		storm_fail("msgrcv: %s", strerror(errno));
	if (n >= 0)
		count(&ledger->received);
}

/* ---- Processes and threads --------------------------------------------------------------- */

static void look_at_status(int status)
{
	if (WIFEXITED(status) ? WEXITSTATUS(status) != 0 : WTERMSIG(status) != SIGKILL)
		storm_fail("a child ended with status %#x", status);
}

static void wait_for_child(bool until_it_ends)
{
	int status;
	pid_t pid;

	if (child == 0)
		return;
	doing(DOING_CHILD);
	do
		pid = waitpid(child, &status, until_it_ends ? 0 : WNOHANG);
	while (pid < 0 && errno == EINTR);
	doing(DOING_OTHER);
	if (pid == 0)
		return;
	if (pid != child)
		storm_fail("waitpid: %s", strerror(errno));
	child = 0;
	look_at_status(status);
}

static bool has_seat_beside(void)
{
	return seat_ix % (PLACES * 2) < PLACES;
}

static void beget(void)
{
	pid_t parent = getpid(), pid;

	wait_for_child(rnd(8) == 0);
	if (child || !has_seat_beside() || over())
		return;
	count(&ledger->forks);
	pid = fork();
	if (pid == 0)
		storm_work(seat_ix + PLACES, parent);
	if (pid < 0)
		storm_fail("fork: %s", strerror(errno));
	child = pid;
}

/* Somebody sleeps on what is removed: he must be told. */
static void sleepers(void)
{
	struct sembuf down = {0, -1, SEM_UNDO};
	pid_t parent = getpid();
	bool queue = rnd(2);
	int id;

	wait_for_child(false);
	if (child || !has_seat_beside() || over())
		return;
	id = queue ? msgget(IPC_PRIVATE, 0600) : semget(IPC_PRIVATE, 1, 0600);
	if (id < 0)
		storm_fail("get: %s", strerror(errno));
	count(&ledger->forks);
	child = fork();
	if (child == 0) {
		int rc;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(0);
		do
			rc = queue ? (int)msgrcv(id, &message, 10, 0, 0) : semop(id, &down, 1);
		while (rc < 0 && errno == EINTR);
		_exit(rc < 0 && (errno == EIDRM || errno == EINVAL) ? 0 : 1);
	}
	if (child < 0)
		storm_fail("fork: %s", strerror(errno));
	if (rnd(2))
		sched_yield();
	if ((queue ? msgctl(id, IPC_RMID, NULL) : semctl(id, 0, IPC_RMID)) < 0)
		storm_fail("IPC_RMID: %s", strerror(errno));
	wait_for_child(true);
}

static void execute(void)
{
	struct sembuf s = {(unsigned short)rnd(POOL_SEMS), -1, SEM_UNDO | IPC_NOWAIT};
	int pool = (int)rnd(POOLS), taken = 0;
	char a[16], b[16];

	if (child || over())
		return;
	disarm();
	if (__atomic_load_n(&threads, __ATOMIC_ACQUIRE))
		taken = -1; /* what they have just now, the new image keeps to its end */
	else if (rnd(2) && op(ledger->pool[pool], &s, 1, false, "tokens"))
		taken = 1 + pool * POOL_SEMS + s.sem_num;
	snprintf(a, sizeof(a), "%u", seat_ix);
	snprintf(b, sizeof(b), "%d", taken);
	count(&ledger->execs);
	execl(self_path, "storm", "--image", a, b, (char *)NULL);
	storm_fail("exec: %s", strerror(errno));
}

static void *thread(void *seed)
{
	random_state = (uint64_t)(uintptr_t)seed;
	for (int i = 0; i < 30 && !over(); i++)
		tokens(true);
	__atomic_fetch_sub(&threads, 1, __ATOMIC_RELEASE);
	return NULL;
}

static void have_thread(void)
{
	pthread_attr_t attributes;
	pthread_t t;
	bool join = rnd(2);
	int rc;

	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes,
				    join ? PTHREAD_CREATE_JOINABLE : PTHREAD_CREATE_DETACHED);
	__atomic_fetch_add(&threads, 1, __ATOMIC_RELAXED);
	rc = pthread_create(&t, &attributes, thread, (void *)(uintptr_t)(random_state ^ 0x5555));
	pthread_attr_destroy(&attributes);
	if (rc)
		storm_fail("pthread_create: %s", strerror(rc));
	for (int i = 0; i < 10 && join; i++)
		tokens(false);
	if (!join)
		return;
	doing(DOING_TOKEN);
	pthread_join(t, NULL);
	doing(DOING_OTHER);
}

_Noreturn static void leave(void)
{
	disarm();
	if (rnd(2))
		take_without_giving();
	count(&ledger->exits);
	if (child && rnd(2)) /* else it is killed, as this process ends */
		wait_for_child(true);
	if (rnd(4) == 0)
		_exit(0);
	exit(0);
}

/* ---- The worker -------------------------------------------------------------------------- */

static void act(void)
{
	uint32_t what = rnd(1000);

	if (what < 300)
		tokens(false);
	else if (what < 400)
		move_units(rnd(8));
	else if (what < 430)
		look_at_sum();
	else if (what < 460)
		plain();
	else if (what < 510)
		zero();
	else if (what < 550)
		set_values();
	else if (what < 720)
		send_one();
	else if (what < 900)
		receive_one();
	else if (what < 915)
		mark();
	else if (what < 940)
		keyed();
	else if (what < 960)
		own();
	else if (what < 975)
		arm(0);
	else if (what < 983)
		beget();
	else if (what < 987)
		sleepers();
	else if (what < 991)
		have_thread();
	else if (what < 994)
		execute();
	else if (what < 996)
		leave();
}

_Noreturn static void work(uint32_t rounds)
{
	struct sigaction on = {.sa_handler = on_alarm};

	sigaction(SIGALRM, &on, NULL);
	for (int i = 0; i < OWN_MOST; i++)
		remove_own(i);
	for (uint32_t i = 0; i < rounds && !over(); i++) {
		seat->rounds++;
		act();
	}
	wait_for_child(true);
	exit(0);
}

static void sit_down(uint32_t ix)
{
	seat_ix = ix;
	seat = &ledger->seat[ix];
	new_identity();
	random_state = ((uint64_t)ledger->seed << 32) + identity * 2654435761ull + ix;
	seat->rounds = 0;
	doing(DOING_OTHER);
	__atomic_store_n(&seat->pid, getpid(), __ATOMIC_RELEASE);
}

void storm_work(uint32_t ix, pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(0);
	child = threads = 0;
	sit_down(ix);
	work(has_seat_beside() ? UINT32_MAX : 1 + rnd(300));
}

/* taken: a token that the image before this one took; -1: unknown ones, so it must not wait. */
void storm_image(uint32_t ix, int taken)
{
	sit_down(ix);
	if (taken < 0) {
		for (uint32_t i = 0; i < rnd(20); i++)
			keyed();
		exit(0);
	}
	if (taken && rnd(4)) {
		struct sembuf s = {(unsigned short)((taken - 1) % POOL_SEMS), 0, 0};

		give(ledger->pool[(taken - 1) / POOL_SEMS], &s, 1, "a token taken before exec");
	}
	work(has_seat_beside() ? UINT32_MAX : 1 + rnd(300));
}
