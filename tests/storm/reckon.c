// SPDX-License-Identifier: MIT
/*
 * The beginning and the end of a round: its objects, and the reckoning, which runs when nobody is
 * killed any more. What the dead owed is demanded at once, for everybody who died has been waited
 * for by then; only who still sleeps is given time to notice.
 */
#include "storm.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <unistd.h>

#ifndef MSG_EXCEPT
#define MSG_EXCEPT 020000
#endif
#ifndef SHM_DEST
#define SHM_DEST 01000
#endif

#define S               1000000000ll
#define DEADLINE_NS     (30 * S)
#define QUIET_NS        (S / 4)
#define ANCHOR_KEY      0x57ff
#define ALL_TYPES_ASKED 0

union semun {
	int val;
	struct semid_ds *ds;
	unsigned short *array;
	struct seminfo *info;
};

/* ---- Setting up -------------------------------------------------------------------------- */

static int32_t make_set(const unsigned short *values, int n)
{
	unsigned short copy[16];
	int id = semget(IPC_PRIVATE, n, 0600);

	memcpy(copy, values, (size_t)n * sizeof(*copy));
	if (id < 0 || semctl(id, 0, SETALL, (union semun){.array = copy}) < 0)
		storm_fail("a set: %s", strerror(errno));
	return id;
}

void storm_set_up(void)
{
	unsigned short pool[POOL_SEMS + 1], sum[SUM_SEMS], plain[PLAIN];
	const unsigned short zero[ZERO_SEMS] = {0};

	for (int i = 0; i < POOL_SEMS; i++)
		pool[i] = TOKENS;
	pool[POOL_SEMS] = 1;
	for (int i = 0; i < SUM_SEMS; i++)
		sum[i] = SUM_UNITS;
	for (int i = 0; i < PLAIN; i++)
		plain[i] = PLAIN_AT;
	for (int i = 0; i < POOLS; i++)
		ledger->pool[i] = make_set(pool, POOL_SEMS + 1);
	ledger->sum = make_set(sum, SUM_SEMS);
	ledger->plain = make_set(plain, PLAIN);
	ledger->zero = make_set(zero, ZERO_SEMS);
	for (int i = 0; i < QUEUES; i++) {
		ledger->queue[i] = msgget(IPC_PRIVATE, 0600);
		if (ledger->queue[i] < 0)
			storm_fail("a queue: %s", strerror(errno));
	}
	ledger->segment = shmget(IPC_PRIVATE, 4096, 0600);
	if (ledger->segment < 0)
		storm_fail("a segment: %s", strerror(errno));
	/* So that the namespace does not go between two rounds. */
	ledger->anchor = semget(ANCHOR_KEY, 1, IPC_CREAT | 0600);
	if (ledger->anchor < 0)
		storm_fail("the anchor: %s", strerror(errno));
	exit(0);
}

/* ---- Who sleeps on ----------------------------------------------------------------------- */

/* Its letter in /proc: S is in the kernel, asleep. 0: gone, or all of it dead and not waited
 * for. */
static char state_of(pid_t pid)
{
	char path[64], line[512], *end, state = 0;
	int threads = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	f = fopen(path, "re");
	if (!f)
		return 0;
	if (fgets(line, sizeof(line), f) && (end = strrchr(line, ')')))
		(void)sscanf(
			end + 1,
			" %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %d",
			&state, &threads);
	fclose(f);
	return (state == 'Z' || state == 'X') && threads <= 1 ? 0 : state;
}

static bool is_there(const struct seat *s)
{
	pid_t pid = __atomic_load_n(&s->pid, __ATOMIC_ACQUIRE);

	return pid && state_of(pid);
}

/* Who is left waits for messages, or for a child that does, and has done so for a while. */
static bool is_quiet(void)
{
	int64_t now = storm_now_ns();

	for (int i = 0; i < SEATS; i++) {
		const struct seat *s = &ledger->seat[i];
		uint32_t doing = __atomic_load_n(&s->doing, __ATOMIC_ACQUIRE);

		if (is_there(s) &&
		    ((doing != DOING_SEND && doing != DOING_RECEIVE && doing != DOING_CHILD) ||
		     now - s->since_ns < QUIET_NS || state_of(s->pid) != 'S'))
			return false;
	}
	return true;
}

static void wait_until(bool (*holds)(void), const char *what)
{
	int64_t end = storm_now_ns() + DEADLINE_NS;

	while (!holds()) {
		if (storm_now_ns() > end)
			storm_fail("%s", what);
		storm_sleep_ms(5);
	}
}

static struct storm_message message;

static bool take(uint32_t q, int64_t wanted)
{
	int flags = IPC_NOWAIT | (wanted > 0 && wanted & EXCEPT ? MSG_EXCEPT : 0);
	long type = (long)(wanted > 0 ? wanted & ~EXCEPT : wanted);
	ssize_t n =
		msgrcv(ledger->queue[q], &message, sizeof(message.head) + TEXT_MOST, type, flags);

	if (n < 0 && errno != ENOMSG)
		storm_fail("msgrcv: %s", strerror(errno));
	if (n >= 0)
		storm_tick_off(&message, n, q, NULL);
	return n >= 0;
}

static void look_at_sleeper(const struct seat *s)
{
	struct msqid_ds ds;

	if (s->doing == DOING_RECEIVE && take(s->queue, s->type))
		storm_fail("process %d sleeps although there is a message of type %lld",
			   (int)s->pid, (long long)s->type);
	if (s->doing != DOING_SEND)
		return;
	if (msgctl(ledger->queue[s->queue], IPC_STAT, &ds) < 0)
		storm_fail("IPC_STAT: %s", strerror(errno));
	if (ds.__msg_cbytes + (uint64_t)s->type <= ds.msg_qbytes &&
	    ds.msg_qnum + 1 <= ds.msg_qbytes)
		storm_fail("process %d sleeps although there is room for %lld bytes: %llu of %llu",
			   (int)s->pid, (long long)s->type, (unsigned long long)ds.__msg_cbytes,
			   (unsigned long long)ds.msg_qbytes);
}

static bool no_sender_left(void)
{
	bool any = false;

	for (uint32_t q = 0; q < QUEUES; q++)
		while (take(q, ALL_TYPES_ASKED))
			;
	for (int i = 0; i < SEATS; i++)
		any |= is_there(&ledger->seat[i]) && ledger->seat[i].doing == DOING_SEND;
	return !any;
}

static bool nobody_left(void)
{
	for (int i = 0; i < SEATS; i++)
		if (is_there(&ledger->seat[i]))
			return false;
	return true;
}

/* ---- Adding up --------------------------------------------------------------------------- */

/* May this dead receiver have had a message of the type in its hands? */
static bool wanted(const struct account *a, uint32_t q, long type)
{
	if (a->receiving != q + 1)
		return false;
	if (a->wanted < 0)
		return type <= -a->wanted;
	if (a->wanted & EXCEPT)
		return type != (a->wanted & ~EXCEPT);
	return a->wanted == 0 || a->wanted == type;
}

static void add_up_messages(void)
{
	uint32_t identities = ledger->identities < IDENTITIES ? ledger->identities : IDENTITIES;

	for (uint32_t q = 0; q < QUEUES; q++) {
		uint32_t lost[TYPES] = {0}, hands[TYPES] = {0}, all_hands = 0, all_lost = 0;

		for (uint32_t i = 0; i < identities; i++) {
			const struct account *a = &ledger->account[i];

			for (uint32_t t = 0; t < TYPES; t++) {
				hands[t] += wanted(a, q, (long)t + 1);
				for (uint32_t n = 0; n < a->sent[q][t]; n++)
					lost[t] += !(a->got[q][t][n / 64] >> n % 64 & 1);
			}
			all_hands += a->receiving == q + 1;
		}
		for (uint32_t t = 0; t < TYPES; t++) {
			all_lost += lost[t];
			if (lost[t] > hands[t])
				storm_fail("%u messages of type %u are lost, but %u receivers died",
					   lost[t], t + 1, hands[t]);
		}
		if (all_lost > all_hands)
			storm_fail("%u messages are lost, but %u receivers died", all_lost,
				   all_hands);
	}
}

static void expect(const char *what, int sem, int value, int from, int to)
{
	if (value < from || value > to)
		storm_fail("%s, semaphore %d: %d, not %d to %d", what, sem, value, from, to);
}

static void add_up_plain(void)
{
	unsigned short v[PLAIN];

	if (semctl(ledger->plain, 0, GETALL, (union semun){.array = v}) < 0)
		storm_fail("GETALL: %s", strerror(errno));
	for (int s = 0; s < PLAIN; s++) {
		int from = PLAIN_AT, to = PLAIN_AT;

		for (int i = 0; i < IDENTITIES; i++) {
			const struct account *a = &ledger->account[i];

			from += a->plus_done[s] - a->minus_tried[s];
			to += a->plus_tried[s] - a->minus_done[s];
		}
		expect("plain", s, v[s], from, to);
	}
}

static void nobody_waits(int id, int n)
{
	for (int s = 0; s < n; s++)
		if (semctl(id, s, GETNCNT) != 0 || semctl(id, s, GETZCNT) != 0)
			storm_fail("somebody is said to wait for semaphore %d of set %d", s, id);
}

static void add_up_semaphores(void)
{
	unsigned short v[POOL_SEMS + 1];
	int sum = 0;

	for (int i = 0; i < POOLS; i++) {
		if (semctl(ledger->pool[i], 0, GETALL, (union semun){.array = v}) < 0)
			storm_fail("GETALL: %s", strerror(errno));
		for (int s = 0; s <= POOL_SEMS; s++)
			expect("tokens", s, v[s], s == POOL_SEMS ? 1 : TOKENS,
			       s == POOL_SEMS ? 1 : TOKENS);
		nobody_waits(ledger->pool[i], POOL_SEMS + 1);
	}
	if (semctl(ledger->sum, 0, GETALL, (union semun){.array = v}) < 0)
		storm_fail("GETALL: %s", strerror(errno));
	for (int s = 0; s < SUM_SEMS; s++)
		sum += v[s];
	expect("sum", -1, sum, SUM_SEMS * SUM_UNITS, SUM_SEMS * SUM_UNITS);
	add_up_plain();
	for (int s = 0; s < 2; s++)
		expect("zero", s, semctl(ledger->zero, s, GETVAL), 0, 0);
	nobody_waits(ledger->sum, SUM_SEMS);
	nobody_waits(ledger->plain, PLAIN);
	nobody_waits(ledger->zero, ZERO_SEMS);
}

/* The mappings of a process that ended a moment ago may live that long: somebody reads its maps, or
 * another thread of it ends last. */
static bool nobody_is_attached(void)
{
	struct shmid_ds ds;
	struct shm_info info;
	int hi = shmctl(0, SHM_INFO, (struct shmid_ds *)(void *)&info);

	for (int i = 0; i <= hi; i++)
		if (shmctl(i, SHM_STAT, &ds) >= 0 &&
		    (ds.shm_nattch || (ds.shm_perm.mode & SHM_DEST)))
			return false;
	return true;
}

static void add_up_marks(void)
{
	uint32_t from = 0, to = 0;
	uint32_t *p;

	wait_until(nobody_is_attached,
		   "nobody is left, and a segment is attached or removed in part");
	p = shmat(ledger->segment, NULL, 0);
	if (p == (void *)-1)
		storm_fail("shmat: %s", strerror(errno));
	for (int i = 0; i < IDENTITIES; i++) {
		from += ledger->account[i].marks_done;
		to += ledger->account[i].marks_tried;
	}
	if (*p < from || *p > to)
		storm_fail("%u marks in the segment, not %u to %u", *p, from, to);
	if (shmdt(p) < 0)
		storm_fail("shmdt: %s", strerror(errno));
}

/* ---- Taking down ------------------------------------------------------------------------- */

static void remove_sets(void)
{
	struct seminfo info;
	struct semid_ds ds;
	int hi = semctl(0, 0, SEM_INFO, (union semun){.info = &info}), id;

	for (int i = 0; i <= hi; i++) {
		id = semctl(i, 0, SEM_STAT, (union semun){.ds = &ds});
		if (id >= 0 && id != ledger->anchor && semctl(id, 0, IPC_RMID) < 0)
			storm_fail("IPC_RMID of set %d: %s", id, strerror(errno));
	}
	(void)semctl(0, 0, SEM_INFO, (union semun){.info = &info});
	if (info.semusz != 1 || info.semaem != 1)
		storm_fail("%d sets with %d semaphores are left, not the anchor alone", info.semusz,
			   info.semaem);
}

static void remove_queues(void)
{
	struct msqid_ds ds;
	struct msginfo info;
	int hi = msgctl(0, MSG_INFO, (struct msqid_ds *)(void *)&info), id;

	for (int i = 0; i <= hi; i++) {
		id = msgctl(i, MSG_STAT, &ds);
		if (id >= 0 && msgctl(id, IPC_RMID, NULL) < 0)
			storm_fail("IPC_RMID of queue %d: %s", id, strerror(errno));
	}
	(void)msgctl(0, MSG_INFO, (struct msqid_ds *)(void *)&info);
	if (info.msgpool || info.msgmap || info.msgtql)
		storm_fail("%d queues are left, %d messages, %d bytes", info.msgpool, info.msgmap,
			   info.msgtql);
}

static void remove_segments(void)
{
	struct shm_info info;
	struct shmid_ds ds;
	int hi = shmctl(0, SHM_INFO, (struct shmid_ds *)(void *)&info), id;

	for (int i = 0; i <= hi; i++) {
		id = shmctl(i, SHM_STAT, &ds);
		if (id >= 0 && shmctl(id, IPC_RMID, NULL) < 0)
			storm_fail("IPC_RMID of segment %d: %s", id, strerror(errno));
	}
	(void)shmctl(0, SHM_INFO, (struct shmid_ds *)(void *)&info);
	if (info.used_ids || info.shm_tot)
		storm_fail("%d segments of %lu pages are left", info.used_ids, info.shm_tot);
}

void storm_reckon(void)
{
	wait_until(is_quiet, "the storm is over, and somebody neither ends nor waits for messages");
	for (int i = 0; i < SEATS; i++)
		if (is_there(&ledger->seat[i]))
			look_at_sleeper(&ledger->seat[i]);
	wait_until(no_sender_left, "there is room, and somebody waits for it");
	for (uint32_t q = 0; q < QUEUES; q++)
		if (msgctl(ledger->queue[q], IPC_RMID, NULL) < 0)
			storm_fail("IPC_RMID: %s", strerror(errno));
	wait_until(nobody_left, "the queues are gone, and somebody waits for them");
	add_up_messages();
	add_up_semaphores();
	add_up_marks();
	remove_sets();
	remove_queues();
	remove_segments();
	exit(0);
}
