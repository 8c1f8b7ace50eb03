// SPDX-License-Identifier: MIT
/*
 * Signal handlers under the preload: put off to the end of a section, and then run as the kernel
 * runs them; and dispositions as the program sees them. What does not need a section is run
 * without the library too.
 */
#include "support.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>

#include "base/atomic.h"

static volatile int runs, nested, values[64];
static volatile uint64_t mask_inside;
static char *volatile stack_at;
static sigjmp_buf out;

static uint64_t current_mask(void)
{
	uint64_t mask = 0;

	syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &mask, 8);
	return mask;
}

#define BIT(sig) (1ull << ((sig)-1))

static void note(int sig, siginfo_t *info, void *context)
{
	char here;

	(void)sig;
	(void)context;
	values[runs % 64] = info->si_value.sival_int;
	stack_at = &here;
	mask_inside = current_mask();
	runs++;
}

static void set(int sig, void (*handler)(int, siginfo_t *, void *), int flags)
{
	struct sigaction act = {.sa_sigaction = handler, .sa_flags = flags | SA_SIGINFO};

	sigemptyset(&act.sa_mask);
	assert_int_equal(sigaction(sig, &act, NULL), 0);
}

static void queue(int sig, int value)
{
	assert_int_equal(sigqueue(getpid(), sig, (union sigval){.sival_int = value}), 0);
}

static int reset(void **state)
{
	sigset_t none;

	(void)state;
	runs = nested = 0;
	memset((void *)(uintptr_t)values, 0, sizeof(values));
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGUSR1, SIG_DFL);
	signal(SIGUSR2, SIG_DFL);
	signal(SIGRTMIN, SIG_DFL);
	return 0;
}

static int runs_in_section;

static void send_one(void)
{
	queue(SIGUSR1, 42);
	runs_in_section = runs;
}

static void put_off(void **state)
{
	uint64_t before = current_mask();

	(void)state;
	NEEDS_FAKE();
	set(SIGUSR1, note, 0);
	section(send_one);
	assert_int_equal(runs_in_section, 0);
	assert_int_equal(runs, 1);
	assert_int_equal(values[0], 42);
	assert_true(mask_inside == (before | BIT(SIGUSR1)));
	assert_true(current_mask() == before);
}

static void send_two_at_once(void)
{
	sigset_t both, old;

	sigemptyset(&both);
	sigaddset(&both, SIGUSR1);
	sigaddset(&both, SIGUSR2);
	sigprocmask(SIG_BLOCK, &both, &old);
	queue(SIGUSR1, 1);
	queue(SIGUSR2, 2);
	/* Both frames are on the stack before either wrapper runs. */
	sigprocmask(SIG_SETMASK, &old, NULL);
	runs_in_section = runs;
}

static void stacked_frames_keep_the_mask(void **state)
{
	uint64_t before = current_mask();

	(void)state;
	NEEDS_FAKE();
	set(SIGUSR1, note, 0);
	set(SIGUSR2, note, 0);
	section(send_two_at_once);
	assert_int_equal(runs_in_section, 0);
	assert_int_equal(runs, 2);
	assert_int_equal(values[0] + values[1], 3);
	assert_true(current_mask() == before);
}

static void send_the_same_thrice(void)
{
	queue(SIGUSR1, 1);
	queue(SIGUSR1, 2);
	queue(SIGUSR1, 3);
}

/* As with signals that arrive during a system call: pending is pending. */
static void standard_signals_coalesce(void **state)
{
	(void)state;
	NEEDS_FAKE();
	set(SIGUSR1, note, 0);
	section(send_the_same_thrice);
	assert_int_equal(runs, 1);
	assert_int_equal(values[0], 1);
}

static void send_in_order(void)
{
	for (int i = 0; i < 20; i++)
		queue(SIGRTMIN, i);
}

static void send_in_order_to_thread(void)
{
	for (int i = 0; i < 20; i++) {
		siginfo_t info;

		memset(&info, 0, sizeof(info));
		info.si_signo = SIGRTMIN;
		info.si_code = SI_QUEUE;
		info.si_value.sival_int = i;
		syscall(SYS_rt_tgsigqueueinfo, getpid(), gettid(), SIGRTMIN, &info);
	}
}

static void real_time_order(void **state)
{
	(void)state;
	NEEDS_FAKE();
	set(SIGRTMIN, note, 0);
	section(send_in_order);
	assert_int_equal(runs, 20);
	for (int i = 0; i < 20; i++)
		assert_int_equal(values[i], i);
	runs = 0;
	section(send_in_order_to_thread);
	assert_int_equal(runs, 20);
	for (int i = 0; i < 20; i++)
		assert_int_equal(values[i], i);
}

/* With SA_NODEFER and unblocked, several of one number are captured at one instant, more than
 * there is room for; none is lost. */
static void send_many_at_once(void)
{
	sigset_t one, old;

	sigemptyset(&one);
	sigaddset(&one, SIGRTMIN);
	sigprocmask(SIG_BLOCK, &one, &old);
	send_in_order();
	sigprocmask(SIG_SETMASK, &old, NULL);
	runs_in_section = runs;
}

static void many_frames_lose_none(void **state)
{
	uint64_t before = current_mask();
	uint32_t seen = 0;

	(void)state;
	NEEDS_FAKE();
	set(SIGRTMIN, note, SA_NODEFER);
	section(send_many_at_once);
	assert_int_equal(runs_in_section, 0);
	assert_int_equal(runs, 20);
	for (int i = 0; i < 20; i++)
		seen |= 1u << values[i];
	assert_int_equal(seen, 0xfffff);
	assert_true(current_mask() == before);
}

static void reset_in_child(void)
{
	struct sigaction now;

	set(SIGUSR1, note, (int)SA_RESETHAND);
	section(send_one);
	if (runs != 1 || sigaction(SIGUSR1, NULL, &now) < 0 || now.sa_handler != SIG_DFL)
		_exit(1);
	section(send_one);
	_exit(2);
}

static void reset_happens_after_delivery(void **state)
{
	int status;

	(void)state;
	NEEDS_FAKE();
	status = in_child(reset_in_child);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGUSR1);
}

static void note_and_raise(int sig, siginfo_t *info, void *context)
{
	(void)info;
	(void)context;
	if (++runs < 4)
		raise(sig);
	nested = runs > nested ? runs : nested;
}

static void no_defer_nests(void **state)
{
	(void)state;
	NEEDS_FAKE();
	set(SIGUSR1, note_and_raise, SA_NODEFER);
	section(send_one);
	assert_int_equal(runs, 4);
}

static void alternate_stack(void **state)
{
	static char memory[65536];
	stack_t stack = {.ss_sp = memory, .ss_size = sizeof(memory)};
	stack_t off = {.ss_flags = SS_DISABLE};

	(void)state;
	NEEDS_FAKE();
	assert_int_equal(sigaltstack(&stack, NULL), 0);
	set(SIGUSR1, note, SA_ONSTACK);
	section(send_one);
	assert_int_equal(sigaltstack(&off, NULL), 0);
	assert_int_equal(runs, 1);
	assert_true(stack_at >= memory && stack_at < memory + sizeof(memory));
}

static void jump_out(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)info;
	(void)context;
	runs++;
	siglongjmp(out, 1);
}

static void handler_that_never_returns(void **state)
{
	volatile int jumps = 0;
	uint64_t before = current_mask();

	(void)state;
	NEEDS_FAKE();
	set(SIGUSR1, jump_out, 0);
	while (jumps < 3) {
		if (sigsetjmp(out, 1) == 0) {
			section(send_one);
			fail();
		}
		jumps++;
	}
	assert_int_equal(runs, 3);
	assert_true(current_mask() == before);
	set(SIGUSR1, note, 0);
	section(send_one);
	assert_int_equal(runs_in_section, 3);
	assert_int_equal(runs, 4);
}

static void handler_mask_is_kept(void **state)
{
	struct sigaction act = {.sa_sigaction = note, .sa_flags = SA_SIGINFO};

	(void)state;
	NEEDS_FAKE();
	sigemptyset(&act.sa_mask);
	sigaddset(&act.sa_mask, SIGHUP);
	sigaddset(&act.sa_mask, SIGRTMIN);
	assert_int_equal(sigaction(SIGUSR1, &act, NULL), 0);
	section(send_one);
	assert_true(mask_inside == (BIT(SIGUSR1) | BIT(SIGHUP) | BIT(SIGRTMIN)));
}

static void use_semaphores(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)context;
	assert_int_equal(semget(1, 1, 0), 4711);
	if (info->si_value.sival_int == 42 && runs++ == 0)
		section(send_one);
}

static void handler_opens_a_section(void **state)
{
	(void)state;
	NEEDS_FAKE();
	set(SIGUSR1, use_semaphores, 0);
	section(send_one);
	assert_int_equal(runs, 2);
}

static void *interrupt_sleeper(void *thread)
{
	while (!load_acquire(&fake()->sleeping))
		sched_yield();
	pthread_kill(*(pthread_t *)thread, SIGUSR1);
	return NULL;
}

static void sleeper_is_settled_first(void **state)
{
	pthread_t self = pthread_self(), other;
	int before;

	(void)state;
	NEEDS_FAKE();
	set(SIGUSR1, use_semaphores, SA_RESTART);
	before = fake()->left_sleeps;
	store_release(&fake()->sleeping, 0);
	assert_int_equal(pthread_create(&other, NULL, interrupt_sleeper, &self), 0);
	errno = 0;
	assert_int_equal(semop(FAKE_SLEEP, NULL, 0), -1);
	assert_int_equal(errno, EINTR);
	assert_int_equal(fake()->left_sleeps, before + 1);
	pthread_join(other, NULL);
}

static void timer_handler(int sig)
{
	(void)sig;
	runs++;
}

static void stay_inside(void)
{
	struct timespec start, now;
	int before = runs;

	clock_gettime(CLOCK_MONOTONIC, &start);
	do
		clock_gettime(CLOCK_MONOTONIC, &now);
	while (now.tv_nsec - start.tv_nsec < 20000 && now.tv_sec == start.tv_sec);
	if (runs != before)
		nested++;
}

/* Signals at any instruction of sections, and none is ever handled in one. */
static void storm(void **state)
{
	struct itimerval every = {{0, 100}, {0, 100}}, off = {{0, 0}, {0, 0}};
	struct timespec start, now;

	(void)state;
	NEEDS_FAKE();
	signal(SIGALRM, timer_handler);
	clock_gettime(CLOCK_MONOTONIC, &start);
	setitimer(ITIMER_REAL, &every, NULL);
	do {
		section(stay_inside);
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while (runs < 500 && now.tv_sec - start.tv_sec < 20);
	setitimer(ITIMER_REAL, &off, NULL);
	assert_true(runs >= 500);
	assert_int_equal(nested, 0);
	assert_true(current_mask() == 0);
}

/* A timer of timer_create(2) goes on when its signals are put off, and they keep their value. */
static void timer_storm(void **state)
{
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL,
				 .sigev_signo = SIGRTMIN,
				 .sigev_value = {.sival_int = 99}};
	struct itimerspec every = {{0, 200000}, {0, 200000}};
	struct timespec start, now;
	timer_t timer;

	(void)state;
	NEEDS_FAKE();
	set(SIGRTMIN, note, 0);
	assert_int_equal(timer_create(CLOCK_MONOTONIC, &event, &timer), 0);
	clock_gettime(CLOCK_MONOTONIC, &start);
	assert_int_equal(timer_settime(timer, 0, &every, NULL), 0);
	do {
		section(stay_inside);
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while (runs < 300 && now.tv_sec - start.tv_sec < 20);
	timer_delete(timer);
	assert_true(runs >= 300);
	assert_int_equal(nested, 0);
	for (int i = 0; i < 64; i++)
		assert_int_equal(values[i], 99);
}

/* Asynchronous cancellation waits for the end of the call. */
static int finished_sections;

static void cancel_self(void)
{
	pthread_cancel(pthread_self());
	nested++;
}

static void *be_cancelled(void *unused)
{
	(void)unused;
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
	section(cancel_self);
	finished_sections++;
	return NULL;
}

static void asynchronous_cancel(void **state)
{
	pthread_t thread;
	void *result;

	(void)state;
	NEEDS_FAKE();
	assert_int_equal(pthread_create(&thread, NULL, be_cancelled, NULL), 0);
	assert_int_equal(pthread_join(thread, &result), 0);
	assert_ptr_equal(result, PTHREAD_CANCELED);
	assert_int_equal(nested, 1);
	assert_int_equal(finished_sections, 0);
}

/* From here on: true without the library as well. */

static void dispositions_read_back(void **state)
{
	struct sigaction act = {.sa_sigaction = note, .sa_flags = SA_SIGINFO | SA_RESTART}, old;
	struct sigaction *same = &act;

	(void)state;
	/* Programs do pass one structure for both. */
	__asm__("" : "+r"(same));
	sigemptyset(&act.sa_mask);
	sigaddset(&act.sa_mask, SIGHUP);
	assert_int_equal(sigaction(SIGUSR1, &act, NULL), 0);
	assert_int_equal(sigaction(SIGUSR1, NULL, &old), 0);
	assert_ptr_equal(old.sa_sigaction, note);
	assert_int_equal(old.sa_flags & ~0x04000000, SA_SIGINFO | SA_RESTART);
	assert_int_equal(sigismember(&old.sa_mask, SIGHUP), 1);
	act.sa_handler = timer_handler;
	act.sa_flags = (int)SA_RESETHAND | SA_NODEFER;
	assert_int_equal(sigaction(SIGUSR1, &act, same), 0);
	assert_ptr_equal(act.sa_sigaction, note);
	assert_int_equal(sigaction(SIGUSR1, NULL, &old), 0);
	assert_ptr_equal(old.sa_handler, timer_handler);
	assert_int_equal(old.sa_flags & ~0x04000000, (int)SA_RESETHAND | SA_NODEFER);
	assert_ptr_equal(signal(SIGUSR1, SIG_IGN), timer_handler);
	assert_ptr_equal(signal(SIGUSR1, SIG_DFL), SIG_IGN);
	assert_ptr_equal(signal(SIGUSR1, timer_handler), SIG_DFL);
	assert_ptr_equal(signal(SIGUSR1, timer_handler), timer_handler);
	assert_ptr_equal(sysv_signal(SIGUSR1, timer_handler), timer_handler);
	assert_int_equal(sigaction(SIGUSR1, NULL, &old), 0);
	assert_int_equal(old.sa_flags & (int)(SA_RESETHAND | SA_NODEFER | SA_RESTART),
			 (int)(SA_RESETHAND | SA_NODEFER));
}

static void errors_are_the_same(void **state)
{
	struct sigaction act = {.sa_handler = timer_handler};

	(void)state;
	sigemptyset(&act.sa_mask);
	errno = 0;
	assert_int_equal(sigaction(SIGKILL, &act, NULL), -1);
	assert_int_equal(errno, EINVAL);
	errno = 0;
	assert_int_equal(sigaction(65, &act, NULL), -1);
	assert_int_equal(errno, EINVAL);
	errno = 0;
	assert_int_equal(sigaction(32, &act, NULL), -1);
	assert_int_equal(errno, EINVAL);
	errno = 0;
	assert_ptr_equal(signal(0, timer_handler), SIG_ERR);
	assert_int_equal(errno, EINVAL);
	errno = 0;
	assert_ptr_equal(signal(SIGUSR1, SIG_ERR), SIG_ERR);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(sigaction(SIGKILL, NULL, &act), 0);
	assert_ptr_equal(act.sa_handler, SIG_DFL);
}

static void reset_reads_back(void **state)
{
	struct sigaction old;

	(void)state;
	set(SIGUSR1, note, (int)SA_RESETHAND);
	raise(SIGUSR1);
	assert_int_equal(runs, 1);
	assert_int_equal(sigaction(SIGUSR1, NULL, &old), 0);
	assert_ptr_equal(old.sa_handler, SIG_DFL);
	assert_int_equal(old.sa_flags & ~0x04000000, (int)SA_RESETHAND | SA_SIGINFO);
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
static void siginterrupt_holds_for_signal(void **state)
{
	struct sigaction now;

	(void)state;
	signal(SIGUSR1, timer_handler);
	sigaction(SIGUSR1, NULL, &now);
	assert_true(now.sa_flags & SA_RESTART);
	assert_int_equal(siginterrupt(SIGUSR1, 1), 0);
	sigaction(SIGUSR1, NULL, &now);
	assert_false(now.sa_flags & SA_RESTART);
	assert_ptr_equal(now.sa_handler, timer_handler);
	signal(SIGUSR1, timer_handler);
	sigaction(SIGUSR1, NULL, &now);
	assert_false(now.sa_flags & SA_RESTART);
	raise(SIGUSR1);
	assert_int_equal(runs, 1);
	assert_int_equal(siginterrupt(SIGUSR1, 0), 0);
	signal(SIGUSR1, timer_handler);
	sigaction(SIGUSR1, NULL, &now);
	assert_true(now.sa_flags & SA_RESTART);
}

static void sigset_and_hold(void **state)
{
	(void)state;
	assert_ptr_equal(sigset(SIGUSR1, timer_handler), SIG_DFL);
	assert_ptr_equal(sigset(SIGUSR1, SIG_HOLD), timer_handler);
	assert_ptr_equal(sigset(SIGUSR1, SIG_HOLD), SIG_HOLD);
	raise(SIGUSR1);
	assert_int_equal(runs, 0);
	assert_ptr_equal(sigset(SIGUSR1, timer_handler), SIG_HOLD);
	assert_int_equal(runs, 1);
	assert_int_equal(sigignore(SIGUSR1), 0);
	raise(SIGUSR1);
	assert_int_equal(runs, 1);
}
#pragma GCC diagnostic pop

static void other_handler(int sig)
{
	(void)sig;
	nested++;
}

static void vfork_child_leaves_the_parent_alone(void **state)
{
	pid_t pid;
	int status;

	(void)state;
	signal(SIGUSR1, timer_handler);
	signal(SIGUSR2, timer_handler);
	pid = vfork();
	if (pid == 0) {
		signal(SIGUSR1, other_handler);
		signal(SIGUSR2, SIG_DFL);
		syscall(SYS_exit_group, 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	raise(SIGUSR1);
	raise(SIGUSR2);
	assert_int_equal(runs, 2);
	assert_int_equal(nested, 0);
}

static void handler_sees_the_interrupted_errno(void **state)
{
	(void)state;
	signal(SIGUSR1, timer_handler);
	errno = 1234;
	raise(SIGUSR1);
	assert_int_equal(errno, 1234);
	if (fake()) {
		errno = 1234;
		section(send_one);
		assert_int_equal(errno, 1234);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(put_off, reset),
		cmocka_unit_test_setup(stacked_frames_keep_the_mask, reset),
		cmocka_unit_test_setup(standard_signals_coalesce, reset),
		cmocka_unit_test_setup(real_time_order, reset),
		cmocka_unit_test_setup(many_frames_lose_none, reset),
		cmocka_unit_test_setup(reset_happens_after_delivery, reset),
		cmocka_unit_test_setup(no_defer_nests, reset),
		cmocka_unit_test_setup(alternate_stack, reset),
		cmocka_unit_test_setup(handler_that_never_returns, reset),
		cmocka_unit_test_setup(handler_mask_is_kept, reset),
		cmocka_unit_test_setup(handler_opens_a_section, reset),
		cmocka_unit_test_setup(sleeper_is_settled_first, reset),
		cmocka_unit_test_setup(storm, reset),
		cmocka_unit_test_setup(timer_storm, reset),
		cmocka_unit_test_setup(asynchronous_cancel, reset),
		cmocka_unit_test_setup(dispositions_read_back, reset),
		cmocka_unit_test_setup(errors_are_the_same, reset),
		cmocka_unit_test_setup(reset_reads_back, reset),
		cmocka_unit_test_setup(siginterrupt_holds_for_signal, reset),
		cmocka_unit_test_setup(sigset_and_hold, reset),
		cmocka_unit_test_setup(vfork_child_leaves_the_parent_alone, reset),
		cmocka_unit_test_setup(handler_sees_the_interrupted_errno, reset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
