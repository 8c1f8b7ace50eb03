// SPDX-License-Identifier: MIT
/*
 * Notice of deaths: the watcher, and real processes that keep something. Nothing else makes its
 * descriptor readable, so a death of which it does not tell is missed here for ever.
 */
#include "reaper/watch.h"

#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/futex.h"
#include "base/ident.h"
#include "client/life.h"
#include "unit.h"

#define PATIENCE_MS 20000
#define SOME_REF    1 /* what undo_ref says does not matter, but that it is something */

static void await_news(struct watch *w, unsigned wanted)
{
	struct pollfd fd = {.fd = w->fd, .events = POLLIN};
	unsigned news = 0;

	while (!(news & wanted)) {
		EXPECT_INT(poll(&fd, 1, PATIENCE_MS), 1);
		news |= watch_news(w);
	}
}

/* For a test that begins: what has been told until everybody sleeps counts no more. */
static void drop_news(struct watch *w)
{
	struct pollfd fd = {.fd = w->fd, .events = POLLIN};

	while (poll(&fd, 1, 20) > 0)
		(void)watch_news(w);
}

static void watch(struct watch *w, struct engine *e)
{
	uint32_t view;

	(void)ident_view(&view); /* 0: unknown */
	EXPECT_INT(watch_begin(w, e->base, view), 0);
}

static void keep(struct actor *a)
{
	store_relaxed(&actor_proc(a)->undo_ref, SOME_REF);
	sem_undo_announce(&a->c);
}

static void end(struct actor *a)
{
	store_relaxed(&actor_proc(a)->undo_ref, 0);
}

static void live_in(struct actor *a)
{
	void *memory;
	bool is_marked;

	EXPECT_INT(life_begin(a->c.base, a->c.thread_ix, &memory, &is_marked), 0);
	EXPECT(is_marked);
	store_release(region_life(a->c.base, a->c.thread_ix), (uint32_t)syscall(SYS_gettid));
}

/* The child goes when the test fails. */
static pid_t fork_bound(void)
{
	pid_t pid = fork();

	EXPECT(pid >= 0);
	if (pid == 0)
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* cannot fail */
	return pid;
}

/* A process in the actor's slots that only waits; with_life: its thread has its words there. */
static pid_t start_process(struct actor *a, bool with_life)
{
	int ready[2];
	char byte;
	pid_t pid;

	EXPECT_INT(pipe(ready), 0);
	pid = fork_bound();
	if (pid == 0) {
		if (with_life)
			live_in(a);
		(void)!write(ready[1], "r", 1);
		for (;;)
			pause();
	}
	EXPECT_INT(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	close(ready[1]);
	actor_proc(a)->pid = (uint32_t)pid;
	actor_proc(a)->start = ident_start(pid);
	(void)ident_view(&actor_proc(a)->pid_view);
	return pid;
}

static void end_process(pid_t pid)
{
	kill(pid, SIGKILL);
	EXPECT_INT(waitpid(pid, NULL, 0), pid);
}

/* By now everybody sleeps; the death itself, and nothing before it, is told of. */
static void expect_notice(struct watch *w, pid_t pid, unsigned wanted)
{
	drop_news(w);
	end_process(pid);
	await_news(w, wanted);
}

/* ---- One process ---------------------------------------------------------------------------- */

static void test_before(void **state)
{
	struct actor *a = engine_join(*state);
	pid_t pid = start_process(a, true);
	struct watch w;

	keep(a);
	watch(&w, *state);
	expect_notice(&w, pid, WATCH_MARKED);
	watch_end(&w);
	end(a);
}

/* It comes to keep something while the watcher sleeps. */
static void test_later(void **state)
{
	struct actor *a = engine_join(*state);
	pid_t pid = start_process(a, true);
	struct watch w;

	watch(&w, *state);
	drop_news(&w);
	keep(a);
	expect_notice(&w, pid, WATCH_MARKED);
	watch_end(&w);
	end(a);
}

/* The dead process's memory is another one's, too, and stays: there is no close event to come. */
static void test_shared_memory(void **state)
{
	struct actor *a = engine_join(*state);
	struct watch w;
	int ready[2], done[2];
	char byte;
	pid_t pid, other;

	EXPECT_INT(pipe(ready), 0);
	EXPECT_INT(pipe(done), 0);
	pid = fork_bound();
	if (pid == 0) {
		live_in(a);
		other = (pid_t)syscall(SYS_clone, CLONE_VM | CLONE_VFORK | SIGCHLD, 0, 0, 0, 0);
		if (other == 0) {
			/* Our parent is in the kernel until we end: this stack is ours. */
			(void)!write(ready[1], "r", 1);
			close(done[1]);
			(void)!read(done[0], &byte, 1);
			_exit(0);
		}
		_exit(0);
	}
	EXPECT_INT(read(ready[0], &byte, 1), 1);
	actor_proc(a)->pid = (uint32_t)pid;
	keep(a);
	watch(&w, *state);
	expect_notice(&w, pid, WATCH_MARKED);
	for (int i = 0; i < 2; i++)
		close(done[i]), close(ready[i]);
	watch_end(&w);
	end(a);
}

/* Without undo records a death is nobody's business here. */
static void test_not_watched(void **state)
{
	struct actor *a = engine_join(*state), *b = engine_join(*state);
	pid_t pid = start_process(a, true), other = start_process(b, true);
	struct watch w;

	keep(b);
	watch(&w, *state);
	drop_news(&w);
	EXPECT(!(load_acquire(region_known_watch(a->c.base, a->c.thread_ix / GROUP_SPAN)) &
		 LIFE_WAITERS));
	end_process(pid);
	end_process(other);
	await_news(&w, WATCH_MARKED);
	watch_end(&w);
	end(b);
}

/* ---- Threads, exec --------------------------------------------------------------------------- */

/* The thread with the watch word leaves, another stays. */
static void test_second_thread(void **state)
{
	struct actor *a = engine_join(*state), *b = engine_join_thread(a);
	pid_t pid = start_process(a, true), other = start_process(b, true);
	struct watch w;

	EXPECT_INT(a->c.thread_ix / GROUP_SPAN, b->c.thread_ix / GROUP_SPAN);
	keep(a);
	watch(&w, *state);
	expect_notice(&w, pid, WATCH_MARKED);
	expect_notice(&w, other, WATCH_MARKED);
	watch_end(&w);
	end(a);
}

/* Who waits for the same word is woken, too. */
static void test_other_waiter(void **state)
{
	struct actor *a = engine_join(*state);
	uint32_t *word = region_known_watch(a->c.base, a->c.thread_ix / GROUP_SPAN), seen;
	pid_t pid = start_process(a, true), waiter;
	struct watch w;
	int status;

	keep(a);
	watch(&w, *state);
	drop_news(&w);
	seen = load_acquire(word);
	EXPECT(seen & LIFE_WAITERS);
	waiter = fork_bound();
	if (waiter == 0)
		_exit(futex_wait(word, seen, NULL) == 0 ? 0 : 1);
	for (;;) { /* until it sleeps */
		char path[64], text[512] = "", *state_at;
		FILE *f;

		snprintf(path, sizeof(path), "/proc/%d/stat", (int)waiter);
		f = fopen(path, "re");
		EXPECT(f && fgets(text, sizeof(text), f));
		fclose(f);
		state_at = strrchr(text, ')');
		if (state_at && state_at[2] == 'S')
			break;
		sched_yield();
	}
	end_process(pid);
	EXPECT_INT(waitpid(waiter, &status, 0), waiter);
	EXPECT_INT(status, 0);
	watch_end(&w);
	end(a);
}

/* As after exec of a program that is not in the namespace. */
static void test_no_thread(void **state)
{
	struct actor *a = engine_join(*state);
	pid_t pid = start_process(a, false);
	struct watch w;

	store_release(region_life(a->c.base, a->c.thread_ix), LIFE_DIED | 1u);
	keep(a);
	watch(&w, *state);
	await_news(&w, WATCH_MARKED); /* that it has none */
	expect_notice(&w, pid, WATCH_ENDED);
	watch_end(&w);
	end(a);
}

/* As a reaper does that could not use it. What was closed may be another's file by then. */
static void test_end_twice(void **state)
{
	struct actor *a = engine_join(*state);
	pid_t pid = start_process(a, false);
	int fd[WATCH_PIDFDS_MOST];
	struct watch w;

	store_release(region_life(a->c.base, a->c.thread_ix), LIFE_DIED | 1u);
	keep(a);
	watch(&w, *state);
	await_news(&w, WATCH_MARKED);
	watch_end(&w);
	for (unsigned i = 0; i < WATCH_PIDFDS_MOST; i++)
		EXPECT((fd[i] = dup(STDERR_FILENO)) >= 0);
	watch_end(&w);
	for (unsigned i = 0; i < WATCH_PIDFDS_MOST; i++)
		EXPECT_INT(close(fd[i]), 0);
	end_process(pid);
	end(a);
}

/* ---- Many ------------------------------------------------------------------------------------ */

/* More than one thread can sleep for. Each is told of. */
static void test_many(void **state)
{
	static const unsigned which[] = {0, 125, 126, 251, 252, 299};
	struct actor *a[300];
	pid_t pid[sizeof(which) / sizeof(which[0])];
	struct watch w;

	for (unsigned i = 0; i < 300; i++)
		a[i] = engine_join(*state);
	for (unsigned i = 0; i < 300; i++)
		store_release(region_life(a[i]->c.base, a[i]->c.thread_ix), (uint32_t)getpid());
	for (unsigned i = 0; i < sizeof(which) / sizeof(which[0]); i++)
		pid[i] = start_process(a[which[i]], true);
	watch(&w, *state);
	for (unsigned i = 0; i < 300; i++)
		keep(a[i]);
	for (unsigned i = 0; i < sizeof(which) / sizeof(which[0]); i++) {
		expect_notice(&w, pid[i], WATCH_MARKED);
	}
	watch_end(&w);
	for (unsigned i = 0; i < 300; i++)
		end(a[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_before),      TEST(test_later),         TEST(test_shared_memory),
		TEST(test_not_watched), TEST(test_second_thread), TEST(test_other_waiter),
		TEST(test_no_thread),   TEST(test_end_twice),     TEST(test_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
