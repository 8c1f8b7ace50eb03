// SPDX-License-Identifier: MIT
/*
 * Message queues under processes that are killed. Senders number their messages, one sequence a
 * sender and type; receivers tick off what they get. Whatever dies, nothing may come twice or out
 * of turn within a sender and type, no sleeper may be forgotten, and at the end everything that was
 * sent has come, but for one message each killed receiver may have had in its hands.
 *
 *   msg-kill SCENE [SECONDS [SEED]]
 *
 * Receivers ask for any, for one type, for all but one, for the lowest. Sleeps are given up now and
 * then, as by an alarm. The queue's room changes all the time.
 *
 * kill     processes. Killing is by SIGKILL, from outside, at any moment; the parent tells the
 *          others who is dead when waitpid() has said so, and sweeps
 * threads  threads that pose as processes, which is what ThreadSanitizer sees; nobody dies
 *
 * With "-remove" behind it the senders remove the queue at random, whoever then misses it makes a
 * new one. What was in a removed queue is lost, and nothing else: of what a sender sent of a type
 * into that queue, what was lost came after what was received.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/futex.h"
#include "core/rlock.h"
#include "harness/engine.h"
#include "ipc/msg_priv.h"
#include "ipc/repair.h"

#define WORKERS 8 /* even: senders; odd: receivers */
#define TYPES   4
#define SENDERS 2048 /* identities, a new one for each sender started */
#define NUMBERS 16384
#define TEXT    600
#define NOW     1700000000
#define QUEUES  250 /* that one run makes, one after the other */
#define REMOVED -1000

struct message {
	long type;
	struct {
		uint32_t sender, number, queue;
	} head;
	char text[TEXT];
};

/* What the processes share beside the region. */
static struct ledger {
	atomic_uint stop, sent_total, received_total;
	atomic_ushort sent[SENDERS][TYPES]; /* numbers that msgsnd has taken */
	atomic_uchar got[SENDERS][TYPES][NUMBERS];
	atomic_uchar queue_of[SENDERS][TYPES][NUMBERS]; /* which it was sent into */
	_Atomic uint64_t queue;                         /* {number of the queue, id} */
} * ledger;

static struct engine *engine;
static bool removing;

static uint32_t rnd(uint32_t *seed, uint32_t n)
{
	*seed = *seed * 1664525u + 1013904223u;
	return (*seed >> 8) % n;
}

/* Sleeps until told, or until patience ends: 0 told, 1 taken back. */
static int sleep_or_leave(struct actor *a, bool patient)
{
	uint32_t *state = &actor_slot(a)->st;
	int64_t end = engine_now_ns() + (patient ? ENGINE_DEADLINE_S * 1000000000ll : 300000);
	bool left;

	for (;;) {
		uint32_t st = load_acquire(state);
		struct timespec t = {end / 1000000000, end % 1000000000};

		if (!wait_is_queued(st))
			return 0;
		if (WAIT_STATE(st) == WAIT_WAITING &&
		    !cas(state, &st, WAIT_WORD(WAIT_REQUEST(st), WAIT_ASLEEP)))
			continue;
		if (futex_wait(state, WAIT_WORD(WAIT_REQUEST(st), WAIT_ASLEEP), &t) != -ETIMEDOUT)
			continue;
		EXPECT(!patient);
		while (msg_leave(&a->c, &left) == OUTCOME_BUSY)
			engine_wait(a);
		return left;
	}
}

static uint64_t new_queue(struct actor *a, uint32_t number)
{
	int32_t id;
	int rc;

	while ((rc = msg_get(&a->c, 0, 0600, NOW, &id)) == OUTCOME_BUSY)
		engine_wait(a);
	EXPECT_INT(rc, 0);
	return (uint64_t)number << 32 | (uint32_t)id;
}

static int remove_queue(struct actor *a, int32_t id)
{
	int rc;

	while ((rc = msg_remove(&a->c, id)) == OUTCOME_BUSY)
		engine_wait(a);
	while (msg_purge(&a->c, a->c.thread_ix) == OUTCOME_BUSY)
		engine_wait(a);
	return rc;
}

/* A call has found the queue `seen` gone: there shall be a new one. */
static void replace_queue(struct actor *a, uint64_t seen)
{
	uint64_t made;

	EXPECT(removing);
	if (atomic_load(&ledger->queue) != seen)
		return;
	made = new_queue(a, (uint32_t)(seen >> 32) + 1);
	if (!atomic_compare_exchange_strong(&ledger->queue, &seen, made))
		EXPECT_INT(remove_queue(a, (int32_t)made), 0);
}

static void tidy(struct actor *a)
{
	while (!msg_is_tidy(actor_slot(a)) && msg_tidy(&a->c) == OUTCOME_BUSY)
		engine_wait(a);
}

/* A removed queue's number may have come round: the call says EINVAL, or EIDRM when it slept. */
static int gone_or(struct actor *a, uint64_t seen, int rc)
{
	if (rc != -EINVAL && rc != -EIDRM)
		return rc;
	replace_queue(a, seen);
	return REMOVED;
}

static int send_message(struct actor *a, struct message *m, uint64_t bytes, bool patient)
{
	uint64_t queue = atomic_load(&ledger->queue);
	struct msg_send_request rq = {
		.id = (int32_t)queue, .user = m, .bytes = sizeof(m->head) + bytes, .now = NOW};
	int rc;

	m->head.queue = (uint32_t)(queue >> 32);

	for (;;) {
		while ((rc = msg_send(&a->c, &rq)) == OUTCOME_BUSY)
			engine_wait(a);
		if (rc != OUTCOME_SLEEP)
			break;
		rlock_settle(&a->c);
		rc = sleep_or_leave(a, patient) ? -EINTR : msg_wait_result(&a->c);
		if (rc != -EAGAIN)
			break;
	}
	tidy(a);
	return gone_or(a, queue, rc);
}

static int receive_message(struct actor *a, struct message *m, int64_t type, uint32_t flags,
			   bool patient)
{
	uint64_t queue = atomic_load(&ledger->queue);
	struct msg_receive_request rq = {.id = (int32_t)queue,
					 .user = m,
					 .bytes = sizeof(m->head) + TEXT,
					 .type = type,
					 .flags = flags,
					 .now = NOW};
	int rc;

	for (;;) {
		while ((rc = msg_receive(&a->c, &rq)) == OUTCOME_BUSY)
			engine_wait(a);
		if (rc != OUTCOME_SLEEP)
			break;
		rlock_settle(&a->c);
		rc = sleep_or_leave(a, patient) ? -EINTR : msg_wait_result(&a->c);
		if (rc == 0)
			rc = msg_receive_granted(&a->c, &rq);
		if (rc != -EAGAIN)
			break;
	}
	tidy(a);
	EXPECT(rc < 0 || m->head.queue == (uint32_t)(queue >> 32));
	return gone_or(a, queue, rc);
}

static void sender(struct actor *a, uint32_t self, uint32_t seed)
{
	uint32_t number[TYPES] = {0};

	while (!atomic_load(&ledger->stop)) {
		uint32_t type = rnd(&seed, TYPES), size = rnd(&seed, TEXT);
		struct message m = {.type = (long)type + 1, .head = {self, number[type], 0}};
		int rc;

		if (number[type] == NUMBERS)
			break;
		memset(m.text, (int)(number[type] + type), size);
		if (removing && rnd(&seed, 300) == 0) {
			uint64_t queue = atomic_load(&ledger->queue);

			if (queue >> 32 < QUEUES - 1)
				(void)remove_queue(a, (int32_t)queue); /* another was first */
		}
		rc = send_message(a, &m, size, false);
		EXPECT(rc == 0 || rc == -EINTR || rc == REMOVED);
		if (rc == 0) {
			atomic_store(&ledger->queue_of[self][type][number[type]],
				     (unsigned char)m.head.queue);
			atomic_store(&ledger->sent[self][type], (unsigned short)++number[type]);
			atomic_fetch_add(&ledger->sent_total, 1);
		}
	}
}

static void tick_off(const struct message *m, int32_t (*last)[TYPES])
{
	uint32_t type = (uint32_t)m->type - 1;

	EXPECT(type < TYPES && m->head.sender < SENDERS && m->head.number < NUMBERS);
	EXPECT((int32_t)m->head.number > last[m->head.sender][type]);
	last[m->head.sender][type] = (int32_t)m->head.number;
	EXPECT_INT(atomic_exchange(&ledger->got[m->head.sender][type][m->head.number], 1), 0);
	atomic_fetch_add(&ledger->received_total, 1);
}

static void wish(uint32_t *seed, int64_t *ret_type, uint32_t *ret_flags)
{
	uint32_t type = 1 + rnd(seed, TYPES);

	*ret_flags = 0;
	switch (rnd(seed, 4)) {
	case 0:
		*ret_type = 0;
		break;
	case 1:
		*ret_type = type;
		break;
	case 2:
		*ret_type = -(int64_t)type;
		break;
	default:
		*ret_type = type;
		*ret_flags = MSGF_EXCEPT;
		break;
	}
}

static void receiver(struct actor *a, uint32_t seed)
{
	int32_t(*last)[TYPES] = malloc(sizeof(int32_t[SENDERS][TYPES]));

	EXPECT(last);
	memset(last, -1, sizeof(int32_t[SENDERS][TYPES]));
	while (atomic_load(&ledger->stop) < 2) {
		struct message m;
		int64_t type;
		uint32_t flags;
		int rc;

		wish(&seed, &type, &flags);
		rc = receive_message(a, &m, type, flags, false);
		EXPECT(rc >= 0 || rc == -EINTR || rc == REMOVED);
		if (rc >= 0)
			tick_off(&m, last);
	}
	free(last);
}

static struct worker {
	pid_t pid;
	pthread_t thread;
	struct actor *a;
	uint32_t identity, seed;
	bool receives;
} worker[WORKERS];
static bool threads;
static uint32_t identities, killed_receivers;

static void *work(void *arg)
{
	struct worker *w = arg;

	if (w->receives)
		receiver(w->a, w->seed);
	else
		sender(w->a, w->identity, w->seed);
	return NULL;
}

static void start(int k, uint32_t *seed)
{
	struct worker *w = &worker[k];

	w->a = engine_join(engine);
	w->seed = rnd(seed, 1u << 20);
	w->receives = k % 2;
	w->identity = w->receives ? 0 : identities++;
	EXPECT(identities < SENDERS);
	if (threads) {
		EXPECT_INT(pthread_create(&w->thread, NULL, work, w), 0);
		return;
	}
	w->pid = fork();
	EXPECT(w->pid >= 0);
	if (w->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		work(w);
		_exit(0);
	}
}

static void wait_for_end(int k)
{
	int status;

	if (threads) {
		EXPECT_INT(pthread_join(worker[k].thread, NULL), 0);
		return;
	}
	EXPECT_INT(waitpid(worker[k].pid, &status, 0), worker[k].pid);
	EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* The worker has ended: the others may know, and somebody sweeps. */
static void bury(struct actor *self, int k)
{
	engine_kill(worker[k].a);
	engine_sweep(self);
	/* Its record is free for the next; the harness counts them. */
	if (worker[k].a == &engine->actor[engine->actor_count - 1])
		engine->actor_count--;
}

static void change_room(struct actor *self, uint32_t *seed)
{
	int rc;

	self->creds.cap_sys_resource = true;
	while ((rc = msg_set(&self->c, (int32_t)atomic_load(&ledger->queue), 0, 0, 0600,
			     1000 + rnd(seed, 20000), NOW)) == OUTCOME_BUSY)
		engine_wait(self);
	EXPECT(rc == 0 || (removing && (rc == -EINVAL || rc == -EIDRM)));
}

/* Went it down with its queue? Not if one sent later into the same queue has come. */
static bool went_with_queue(uint32_t s, uint32_t t, uint32_t n, uint32_t sent)
{
	uint32_t queue = atomic_load(&ledger->queue_of[s][t][n]);

	if (queue == (uint32_t)(atomic_load(&ledger->queue) >> 32))
		return false;
	for (uint32_t later = n + 1; later < sent; later++) {
		if (atomic_load(&ledger->queue_of[s][t][later]) != queue)
			break;
		if (atomic_load(&ledger->got[s][t][later]))
			return false;
	}
	return true;
}

/* Everything that was sent has come, but for what killed receivers had, or a removed queue. */
static void settle_up(void)
{
	uint32_t lost = 0, unsure = 0, removed = 0;

	for (uint32_t s = 0; s < identities; s++)
		for (uint32_t t = 0; t < TYPES; t++) {
			uint32_t sent = atomic_load(&ledger->sent[s][t]);

			for (uint32_t n = 0; n < NUMBERS; n++) {
				bool came = atomic_load(&ledger->got[s][t][n]);

				if (n < sent && !came && went_with_queue(s, t, n, sent))
					removed++;
				else
					lost += n < sent && !came;
				/* one that was on its way when its sender was killed */
				EXPECT(n <= sent || !came);
				unsure += n == sent && came;
			}
		}
	printf("%u sent by %u senders, %u received, %u receivers killed, %u lost, %u by the dead, "
	       "%u in %u removed queues\n",
	       atomic_load(&ledger->sent_total), identities, atomic_load(&ledger->received_total),
	       killed_receivers, lost, unsure, removed,
	       (uint32_t)(atomic_load(&ledger->queue) >> 32) - 1);
	EXPECT(lost <= killed_receivers);
	EXPECT(!removing || atomic_load(&ledger->queue) >> 32 > 1);
	EXPECT(atomic_load(&ledger->received_total) > 0);
}

static void drain(struct actor *self)
{
	static int32_t last[SENDERS][TYPES];
	struct message m;

	memset(last, -1, sizeof(last));
	while (receive_message(self, &m, 0, MSGF_NOWAIT, true) >= 0)
		tick_off(&m, last);
}

/* The queue, and those whose maker was killed before it could say so. */
static void remove_all(struct actor *self)
{
	const struct table_shm *table = &region_header(self->c.base)->table[FAMILY_MSG];

	for (uint32_t ix = 0; ix < table->hi; ix++) {
		uint32_t live = load_acquire(&region_object(self->c.base, FAMILY_MSG, ix)->live);

		if (live)
			EXPECT_INT(remove_queue(self, (int32_t)(live - 1)), 0);
	}
}

int main(int argc, char **argv)
{
	int64_t end = engine_now_ns() + (argc > 2 ? atoll(argv[2]) : 3) * 1000000000ll;
	uint32_t seed = argc > 3 ? (uint32_t)strtoul(argv[3], NULL, 0) : (uint32_t)time(NULL);
	struct actor *self;
	uint32_t deaths = 0;

	if (argc < 2 || (strncmp(argv[1], "kill", 4) != 0 && strncmp(argv[1], "threads", 7) != 0)) {
		fprintf(stderr, "usage: msg-kill kill|threads[-remove] [SECONDS [SEED]]\n");
		return 2;
	}
	threads = argv[1][0] == 't';
	removing = strstr(argv[1], "-remove") != NULL;
	printf("seed %u\n", seed);
	fflush(stdout);
	ledger = mmap(NULL, sizeof(*ledger), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	EXPECT(ledger != MAP_FAILED);
	engine = engine_new();
	self = engine_join(engine);
	atomic_store(&ledger->queue, new_queue(self, 1));
	for (int k = 0; k < WORKERS; k++)
		start(k, &seed);
	while (engine_now_ns() < end && identities < SENDERS - 2 && deaths < ENGINE_ACTORS - 50) {
		int k = (int)rnd(&seed, WORKERS), status;
		struct timespec pause = {0, (long)rnd(&seed, 3000000)};

		nanosleep(&pause, NULL);
		change_room(self, &seed);
		if (threads || rnd(&seed, 3))
			continue;
		kill(worker[k].pid, SIGKILL);
		EXPECT_INT(waitpid(worker[k].pid, &status, 0), worker[k].pid);
		EXPECT(WIFSIGNALED(status) || (WIFEXITED(status) && WEXITSTATUS(status) == 0));
		killed_receivers += k % 2;
		deaths++;
		bury(self, k);
		start(k, &seed);
	}
	for (unsigned phase = 1; phase <= 2; phase++) { /* first the senders stop */
		atomic_store(&ledger->stop, phase);
		for (int k = (int)phase - 1; k < WORKERS; k += 2) {
			wait_for_end(k);
			bury(self, k);
		}
	}
	drain(self);
	EXPECT_INT(engine_check(engine), 0);
	settle_up();
	remove_all(self);
	printf("%u killed\n", deaths);
	return engine_free(engine) ? 1 : 0;
}
