// SPDX-License-Identifier: MIT
/*
 * A handler interrupts a msgrcv() that sleeps, while the queue's lock is in the hands of a process
 * that is stopped: the handler runs all the same, and what the sleeper is given before the handler
 * returns is what msgrcv() returns.
 *
 * No program can be stopped at a chosen instruction from outside; so the lock is put into the
 * stopped process's hands from here, in the region, as it would have done itself.
 *
 *	usysv run -- stopped
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/ids.h"
#include "core/region.h"
#include "fuzz/inside.h"

#define LIMIT_MS 20000

static struct shared {
	uint32_t handler_runs, handler_may_end;
	long result;
	char text[16];
} * shared;

static pid_t children[2];

static void clear_up(void)
{
	for (int i = 0; i < 2; i++)
		if (children[i] > 0)
			kill(children[i], SIGKILL);
}

_Noreturn static void wrong(const char *what)
{
	fprintf(stderr, "stopped: %s\n", what);
	exit(1);
}

static void until(const uint32_t *word, uint32_t value, const char *what)
{
	for (int ms = 0; __atomic_load_n(word, __ATOMIC_ACQUIRE) != value; ms++) {
		if (ms == LIMIT_MS)
			wrong(what);
		usleep(1000);
	}
}

/* Calls nothing of the library. */
static void on_signal(int sig)
{
	(void)sig;
	__atomic_store_n(&shared->handler_runs, 1, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&shared->handler_may_end, __ATOMIC_ACQUIRE))
		usleep(1000);
}

static pid_t start_receiver(int queue)
{
	struct {
		long type;
		char text[16];
	} m;
	pid_t pid = fork();

	if (pid != 0)
		return pid;
	signal(SIGUSR1, on_signal);
	shared->result = msgrcv(queue, &m, sizeof(m.text), 0, 0);
	if (shared->result < 0)
		shared->result = -errno;
	else
		memcpy(shared->text, m.text, sizeof(m.text));
	_exit(0);
}

int main(void)
{
	struct {
		long type;
		char text[16];
	} m = {1, "for you"};
	unsigned char *region;
	struct queue_shm *q;
	uint64_t lock;
	uint32_t holder, expected = 0;
	int queue, status;

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	queue = msgget(IPC_PRIVATE, 0600);
	if (shared == MAP_FAILED || queue < 0)
		wrong("no queue");
	region = inside_map_region();
	atexit(clear_up);
	children[0] = inside_start_stopped();
	children[1] = start_receiver(queue);
	holder = inside_thread_of(region, children[0]);
	q = (struct queue_shm *)(void *)region_object(region, FAMILY_MSG,
						      (uint32_t)queue % OBJECT_CAPACITY);
	lock = ids_object_lock(FAMILY_MSG, (uint32_t)queue % OBJECT_CAPACITY);
	until(&q->waiting, 1, "nobody waits");
	region_known_thread(region, holder)->held = (uint32_t)lock;
	if (!__atomic_compare_exchange_n(&q->object.lock, &expected, holder + 1, false,
					 __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
		wrong("the lock is not free");
	kill(children[1], SIGUSR1);
	until(&shared->handler_runs, 1, "the handler does not run");
	__atomic_store_n(&q->object.lock, 0, __ATOMIC_SEQ_CST);
	region_known_thread(region, holder)->held = 0;
	if (msgsnd(queue, &m, sizeof(m.text), 0) < 0)
		wrong("msgsnd");
	until(&q->waiting, 0, "the message is not handed over");
	__atomic_store_n(&shared->handler_may_end, 1, __ATOMIC_RELEASE);
	if (waitpid(children[1], &status, 0) != children[1] || status != 0)
		wrong("the receiver's end");
	children[1] = 0;
	if (shared->result != (long)sizeof(m.text) || strcmp(shared->text, "for you") != 0) {
		fprintf(stderr, "stopped: msgrcv() was given a message and returned %ld\n",
			shared->result);
		return 1;
	}
	return 0;
}
