// SPDX-License-Identifier: MIT
/*
 * Copies of user memory under the preload: every bad address is EFAULT, every good one works, at
 * all sizes; and faults of the program's own stay its own.
 */
#include "support.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/syscall.h>

static size_t page;

/* Three pages: the middle one can be used, its neighbours are holes. */
static char *island(int protection)
{
	char *p = mmap(NULL, 3 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(p, MAP_FAILED);
	assert_int_equal(mprotect(p + page, page, PROT_READ | PROT_WRITE), 0);
	memset(p + page, 'x', page);
	assert_int_equal(mprotect(p + page, page, protection), 0);
	return p + page;
}

/* The test runner has put handlers of its own there, for each test. */
static void defaults(void)
{
	struct sigaction act = {.sa_handler = SIG_DFL};

	sigemptyset(&act.sa_mask);
	sigaction(SIGSEGV, &act, NULL);
	sigaction(SIGBUS, &act, NULL);
}

static int copy_in(const void *from, size_t n)
{
	errno = 0;
	return semop(FAKE_COPY_IN, (struct sembuf *)(uintptr_t)from, n) == 0 ? 0 : errno;
}

static int copy_out(void *to, size_t n)
{
	errno = 0;
	return semop(FAKE_COPY_OUT, to, n) == 0 ? 0 : errno;
}

static void bad_addresses(void)
{
	char *readable = island(PROT_READ), *nothing = island(PROT_NONE);
	static const size_t sizes[] = {1,  2,  3,  4,   6,   7,    8,    12,   16,  18,
				       31, 33, 64, 100, 500, 1024, 1025, 4000, 4096};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		size_t n = sizes[i];

		assert_int_equal(copy_in(NULL, n), EFAULT);
		assert_int_equal(copy_in((void *)-1, n), EFAULT);
		assert_int_equal(copy_in((void *)-8, n), EFAULT);
		assert_int_equal(copy_in((void *)8, n), EFAULT);
		assert_int_equal(copy_in((void *)0x1234567800000000, n), EFAULT);
		assert_int_equal(copy_in((void *)0x8000000000000000, n), EFAULT);
		assert_int_equal(copy_in((void *)0x7ffffffffffff000, n), EFAULT);
		assert_int_equal(copy_in(nothing, n), EFAULT);
		assert_int_equal(copy_in(readable + page - n + 1, n), EFAULT);
		assert_int_equal(copy_in(readable - 1, n), EFAULT);
		assert_int_equal(copy_in(readable, n), 0);
		assert_int_equal(copy_in(readable + page - n, n), 0);
		assert_int_equal(copy_out(NULL, n), EFAULT);
		assert_int_equal(copy_out((void *)-1, n), EFAULT);
		assert_int_equal(copy_out(readable, n), EFAULT);
		assert_int_equal(copy_out(nothing, n), EFAULT);
		assert_int_equal(copy_out((void *)(uintptr_t) "constant", n), EFAULT);
	}
	assert_int_equal(copy_in(NULL, 0), 0);
	munmap(readable - page, 3 * page);
	munmap(nothing - page, 3 * page);
}

static void copies_are_exact(void)
{
	char *memory = island(PROT_READ | PROT_WRITE);
	char *here = fake()->buffer;

	for (size_t n = 1; n <= 4096; n += n < 200 ? 1 : 97) {
		size_t at = page - n;

		for (size_t i = 0; i < page; i++)
			memory[i] = (char)(i * 7 + n);
		memset(here, 0x55, sizeof(fake()->buffer));
		assert_int_equal(copy_in(memory + at, n), 0);
		assert_memory_equal(here, memory + at, n);
		assert_int_equal(here[n], 0x55);
		for (size_t i = 0; i < n; i++)
			here[i] = (char)(i * 11 + n);
		at /= 2;
		assert_int_equal(copy_out(memory + at, n), 0);
		assert_memory_equal(here, memory + at, n);
		if (at)
			assert_int_equal(memory[at - 1], (char)((at - 1) * 7 + n));
		if (at + n < page)
			assert_int_equal(memory[at + n], (char)((at + n) * 7 + n));
	}
	munmap(memory - page, 3 * page);
}

static void hole_of_a_file(void)
{
	int fd = memfd_create("hole", MFD_CLOEXEC);
	char *p;

	assert_int_equal(ftruncate(fd, (off_t)page), 0);
	p = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(p, MAP_FAILED);
	assert_int_equal(copy_in(p, 16), 0);
	assert_int_equal(copy_in(p + page, 16), EFAULT);
	assert_int_equal(copy_in(p + page - 8, 16), EFAULT);
	assert_int_equal(copy_out(p + page, 6), EFAULT);
	assert_int_equal(copy_out(p + page - 2, 6), EFAULT);
	assert_int_equal(copy_out(p + page - 6, 6), 0);
	munmap(p, 2 * page);
	close(fd);
}

static void copy_everything(void)
{
	bad_addresses();
	copies_are_exact();
	hole_of_a_file();
}

static void everything(void **state)
{
	(void)state;
	defaults();
	NEEDS_FAKE();
	copy_everything();
}

/* With the signals blocked faults would kill: the same results by probing. */
static void faults_blocked(void **state)
{
	sigset_t both, old;

	(void)state;
	defaults();
	NEEDS_FAKE();
	assert_int_equal(copy_in("x", 1), 0);
	sigemptyset(&both);
	sigaddset(&both, SIGSEGV);
	sigaddset(&both, SIGBUS);
	assert_int_equal(sigprocmask(SIG_BLOCK, &both, &old), 0);
	copy_everything();
	assert_int_equal(semop(FAKE_PROBE, NULL, 0), 1);
	assert_int_equal(pthread_sigmask(SIG_SETMASK, &old, NULL), 0);
	copy_everything();
	assert_int_equal(semop(FAKE_PROBE, NULL, 0), 0);
}

static void faults_ignored(void **state)
{
	(void)state;
	defaults();
	NEEDS_FAKE();
	assert_int_equal(copy_in("x", 1), 0);
	assert_ptr_equal(signal(SIGSEGV, SIG_IGN), SIG_DFL);
	assert_ptr_equal(signal(SIGBUS, SIG_IGN), SIG_DFL);
	copy_everything();
	assert_ptr_equal(signal(SIGSEGV, SIG_DFL), SIG_IGN);
	assert_ptr_equal(signal(SIGBUS, SIG_DFL), SIG_IGN);
	copy_everything();
}

static volatile int seen;
static void *volatile seen_address;
static char *volatile to_open;

static void mend(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)context;
	seen++;
	seen_address = info->si_addr;
	if (to_open)
		mprotect(to_open, page, PROT_READ | PROT_WRITE);
	else
		_exit(9);
}

/* A program that mends its own faults, and EFAULT beside it. */
static void programs_own_handler(void **state)
{
	struct sigaction act = {.sa_sigaction = mend, .sa_flags = SA_SIGINFO}, old;
	volatile char *p = island(PROT_NONE);

	(void)state;
	defaults();
	sigemptyset(&act.sa_mask);
	assert_int_equal(sigaction(SIGSEGV, &act, &old), 0);
	assert_ptr_equal(old.sa_handler, SIG_DFL);
	to_open = (char *)(uintptr_t)p;
	p[5] = 1;
	assert_int_equal(seen, 1);
	assert_ptr_equal(seen_address, p + 5);
	if (fake()) {
		copy_everything();
		assert_int_equal(seen, 1);
	}
	assert_int_equal(sigaction(SIGSEGV, NULL, &act), 0);
	assert_ptr_equal(act.sa_sigaction, mend);
	act.sa_handler = SIG_DFL;
	act.sa_flags = 0;
	assert_int_equal(sigaction(SIGSEGV, &act, &old), 0);
	assert_ptr_equal(old.sa_sigaction, mend);
	assert_int_equal(sigaction(SIGSEGV, NULL, &old), 0);
	assert_ptr_equal(old.sa_handler, SIG_DFL);
	if (fake())
		copy_everything();
	munmap((char *)(uintptr_t)p - page, 3 * page);
}

static void attach(void)
{
	struct rlimit none = {0, 0};

	setrlimit(RLIMIT_CORE, &none);
	for (int sig = 1; sig < 32; sig++)
		if (sig != SIGKILL && sig != SIGSTOP)
			signal(sig, SIG_DFL);
	if (fake() && copy_in((void *)64, 4) != EFAULT)
		_exit(1);
}

static void store_nowhere(void)
{
	int *volatile nowhere = (int *)16;

	attach();
	*nowhere = 1;
}

static void read_behind_the_end(void)
{
	int fd = memfd_create("hole", MFD_CLOEXEC);

	attach();
	(void)*(volatile char *)mmap(NULL, page, PROT_READ, MAP_SHARED, fd, 0);
}

static void raise_segv(void)
{
	attach();
	raise(SIGSEGV);
}

static void kill_bus(void)
{
	attach();
	kill(getpid(), SIGBUS);
	for (;;)
		pause();
}

static __attribute__((noinline)) int recurse(volatile char *above, int depth)
{
	volatile char frame[4096];

	frame[0] = *above;
	return depth == 0 ? 0 : recurse(frame, depth - 1) + frame[0];
}

static void overflow_the_stack(void)
{
	char c = 0;

	attach();
	_exit(recurse(&c, 1 << 24));
}

static void raise_in_section(void)
{
	attach();
	if (fake())
		section(raise_segv);
	else
		raise_segv();
}

static void default_action_kills(void **state)
{
	static const struct {
		void (*body)(void);
		int sig;
	} ways[] = {
		{store_nowhere, SIGSEGV},      {read_behind_the_end, SIGBUS},
		{raise_segv, SIGSEGV},         {kill_bus, SIGBUS},
		{overflow_the_stack, SIGSEGV}, {raise_in_section, SIGSEGV},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		int status = in_child(ways[i].body);

		assert_true(WIFSIGNALED(status));
		assert_int_equal(WTERMSIG(status), ways[i].sig);
	}
}

static void default_reads_back(void **state)
{
	struct sigaction now;

	(void)state;
	defaults();
	if (fake())
		assert_int_equal(copy_in("x", 1), 0);
	assert_int_equal(sigaction(SIGSEGV, NULL, &now), 0);
	assert_ptr_equal(now.sa_handler, SIG_DFL);
	assert_int_equal(now.sa_flags & ~0x04000000, 0);
	now.sa_flags = SA_RESTART;
	assert_int_equal(sigaction(SIGSEGV, &now, NULL), 0);
	assert_int_equal(sigaction(SIGSEGV, NULL, &now), 0);
	assert_ptr_equal(now.sa_handler, SIG_DFL);
	assert_int_equal(now.sa_flags & ~0x04000000, SA_RESTART);
	now.sa_flags = 0;
	assert_int_equal(sigaction(SIGSEGV, &now, NULL), 0);
}

/* A capture in the same section as a fault: neither spoils the other. */
static volatile int runs;

static void count(int sig)
{
	(void)sig;
	runs++;
}

static void raise_usr1(void)
{
	raise(SIGUSR1);
}

static void fault_after_capture(void **state)
{
	uint64_t before = 0, after = 0;

	(void)state;
	defaults();
	NEEDS_FAKE();
	signal(SIGUSR1, count);
	syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &before, 8);
	fake()->in_section = raise_usr1;
	errno = 0;
	assert_int_equal(semop(FAKE_COPY_IN_SECTION, (struct sembuf *)0x7000, 100), -1);
	assert_int_equal(errno, EFAULT);
	assert_int_equal(runs, 1);
	syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &after, 8);
	assert_true(before == after);
	signal(SIGUSR1, SIG_DFL);
}

static void full_mask_handler(int sig)
{
	(void)sig;
	runs = semop(FAKE_PROBE, NULL, 0);
}

static void handlers_that_block_faults(void **state)
{
	struct sigaction act = {.sa_handler = full_mask_handler};

	(void)state;
	defaults();
	NEEDS_FAKE();
	sigfillset(&act.sa_mask);
	assert_int_equal(sigaction(SIGUSR1, &act, NULL), 0);
	assert_int_equal(copy_in("x", 1), 0);
	assert_int_equal(semop(FAKE_PROBE, NULL, 0), 0);
	runs = 0;
	raise(SIGUSR1);
	assert_int_equal(runs, 1);
	assert_int_equal(copy_in("x", 1), 0);
	assert_int_equal(semop(FAKE_PROBE, NULL, 0), 0);
	signal(SIGUSR1, SIG_DFL);
}

/* A handler of SIGSEGV runs with SIGSEGV blocked. */
static sigjmp_buf out;

static void copy_in_handler(int sig)
{
	(void)sig;
	runs = copy_in((void *)0x7000, 100);
	siglongjmp(out, 1);
}

static void copies_in_a_fault_handler(void **state)
{
	int *volatile nowhere = (int *)16;

	(void)state;
	defaults();
	NEEDS_FAKE();
	assert_int_equal(copy_in("x", 1), 0);
	signal(SIGSEGV, copy_in_handler);
	runs = 0;
	if (sigsetjmp(out, 1) == 0)
		*nowhere = 1;
	assert_int_equal(runs, EFAULT);
	copy_everything();
	assert_int_equal(semop(FAKE_PROBE, NULL, 0), 0);
	defaults();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(default_reads_back),
		cmocka_unit_test(everything),
		cmocka_unit_test(faults_blocked),
		cmocka_unit_test(faults_ignored),
		cmocka_unit_test(programs_own_handler),
		cmocka_unit_test(default_action_kills),
		cmocka_unit_test(fault_after_capture),
		cmocka_unit_test(handlers_that_block_faults),
		cmocka_unit_test(copies_in_a_fault_handler),
	};

	page = (size_t)sysconf(_SC_PAGESIZE);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
