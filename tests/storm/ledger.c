// SPDX-License-Identifier: MIT
/* What all roles of the storm share: the ledger, how time is told, the nursery. */
#include "storm.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/sem.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/sys.h"

struct ledger *ledger;
const char *self_path;

void storm_fail(const char *format, ...)
{
	char text[512];
	va_list args;
	int n = snprintf(text, sizeof(text), "storm: FAILED, process %d: ", (int)getpid());

	va_start(args, format);
	n += vsnprintf(text + n, sizeof(text) - (size_t)n - 1, format, args);
	va_end(args);
	n = n > (int)sizeof(text) - 2 ? (int)sizeof(text) - 2 : n;
	text[n++] = '\n';
	(void)!write(STDERR_FILENO, text, (size_t)n);
	if (ledger)
		__atomic_store_n(&ledger->failed, 1, __ATOMIC_RELEASE);
	_exit(3);
}

int64_t storm_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ll + t.tv_nsec;
}

void storm_sleep_ms(long ms)
{
	struct timespec t = {ms / 1000, ms % 1000 * 1000000};

	nanosleep(&t, NULL);
}

void storm_tick_off(const struct storm_message *m, ssize_t length, uint32_t queue, uint16_t *last)
{
	uint32_t identity = m->head.identity, number = m->head.number, t = (uint32_t)m->type - 1;
	unsigned char fill;
	struct account *from;
	uint64_t bit, before;

	if (m->type < 1 || m->type > TYPES || length < (ssize_t)sizeof(m->head) ||
	    (size_t)length != sizeof(m->head) + m->head.bytes || m->head.queue != queue ||
	    identity >= IDENTITIES || number < 1 || number > NUMBERS)
		storm_fail("a message that nobody sent: type %ld, %zd bytes, queue %u of %u, "
			   "number %u of identity %u",
			   m->type, length, queue, m->head.queue, number, identity);
	fill = (unsigned char)(identity * 31 + number * 7 + t);
	for (uint32_t i = 0; i < m->head.bytes; i++)
		if (m->text[i] != fill)
			storm_fail("text of number %u of identity %u is not what was sent", number,
				   identity);
	from = &ledger->account[identity];
	if (number > __atomic_load_n(&from->tried[queue][t], __ATOMIC_ACQUIRE))
		storm_fail("number %u of identity %u was not sent", number, identity);
	bit = 1ull << (number - 1) % 64;
	before = __atomic_fetch_or(&from->got[queue][t][(number - 1) / 64], bit, __ATOMIC_SEQ_CST);
	if (before & bit)
		storm_fail("number %u of identity %u, type %u, came twice", number, identity,
			   t + 1);
	if (last && number <= last[t])
		storm_fail("number %u of identity %u came after %u", number, identity, last[t]);
	if (last)
		last[t] = (uint16_t)number;
}

/* ---- Nurseries --------------------------------------------------------------------------- */

static void start(uint32_t seat, pid_t *pid)
{
	pid_t parent = getpid();

	*pid = fork();
	if (*pid == 0)
		storm_work(seat, parent);
	if (*pid < 0)
		storm_fail("fork: %s", strerror(errno));
}

/* The first nursery uses the namespace too and waits as programs do, so the library hears of its
 * children's deaths; the second asks the kernel behind its back, and leaves them to others. */
static pid_t ended(uint32_t index, int *status)
{
	if (index == 0)
		return waitpid(-1, status, 0);
	return (pid_t)sys_call(SYS_wait4, -1, (long)status, 0, 0, 0, 0);
}

void storm_nursery(uint32_t index)
{
	pid_t pid[PLACES], dead;
	int status;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (index == 0 && semctl(ledger->anchor, 0, GETVAL) != 0)
		storm_fail("the anchor: %s", strerror(errno));
	for (uint32_t i = 0; i < PLACES; i++)
		start(index * PLACES * 2 + i, &pid[i]);
	while ((dead = ended(index, &status)) > 0) {
		if (WIFEXITED(status) ? WEXITSTATUS(status) != 0 : WTERMSIG(status) != SIGKILL)
			storm_fail("worker %d ended with status %#x", (int)dead, (unsigned)status);
		for (uint32_t i = 0; i < PLACES; i++)
			if (pid[i] == dead && !__atomic_load_n(&ledger->stop, __ATOMIC_ACQUIRE))
				start(index * PLACES * 2 + i, &pid[i]);
	}
	exit(0);
}
