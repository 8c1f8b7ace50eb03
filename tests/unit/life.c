// SPDX-License-Identifier: MIT
/*
 * Life words, with real threads and processes: however a thread ends, the kernel has marked its
 * word by the time that its end can be learned of; and the C library's own robust mutexes still
 * work.
 */
#include "client/life.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit.h"

struct page {
	uint32_t thread_ix, began, go;
	pthread_mutex_t mutex[2];
};

static struct page *shared_page(struct engine *e)
{
	struct page *p =
		mmap(NULL, sizeof(*p), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pthread_mutexattr_t attr;

	EXPECT(p != MAP_FAILED);
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	for (int i = 0; i < 2; i++)
		EXPECT_INT(pthread_mutex_init(&p->mutex[i], &attr), 0);
	p->thread_ix = engine_join(e)->c.thread_ix;
	return p;
}

/* The calling thread's life word is in the region from here on. */
static void begin(struct engine *e, uint32_t ix)
{
	void *memory;
	bool is_marked;

	EXPECT_INT(life_begin(e->base, ix, &memory, &is_marked), 0);
	EXPECT(is_marked);
	store_release(region_life(e->base, ix), (uint32_t)syscall(SYS_gettid));
	for (size_t i = LIFE_NODE_BYTES; i < LIFE_PRIVATE_BYTES; i++)
		EXPECT_INT(((unsigned char *)memory)[i], 0);
}

static bool died(struct engine *e, uint32_t ix)
{
	return load_acquire(region_life(e->base, ix)) & LIFE_DIED;
}

static void await(const uint32_t *word)
{
	int64_t end = engine_now_ns() + 20 * 1000000000ll;

	while (!load_acquire(word)) {
		EXPECT(engine_now_ns() < end);
		sched_yield();
	}
}

/* ---- Processes ---------------------------------------------------------------------------- */

enum end { END_EXIT, END_RAW_EXIT, END_KILL, END_SEGV, END_EXEC };

static void expect_marked(struct engine *e, enum end end)
{
	struct page *p = shared_page(e);
	pid_t pid = fork();
	int status;

	EXPECT(pid >= 0);
	if (pid == 0) {
		begin(e, p->thread_ix);
		store_release(&p->began, 1);
		switch (end) {
		case END_EXIT:
			_exit(0);
		case END_RAW_EXIT:
			syscall(SYS_exit, 0);
			break;
		case END_KILL:
			raise(SIGKILL);
			break;
		case END_SEGV:
			signal(SIGSEGV, SIG_DFL);
			raise(SIGSEGV);
			break;
		case END_EXEC:
			execl("/bin/sleep", "sleep", "100", (char *)NULL);
			break;
		}
		_exit(99);
	}
	if (end == END_EXEC) {
		int64_t deadline = engine_now_ns() + 20 * 1000000000ll;

		while (!died(e, p->thread_ix)) {
			EXPECT(engine_now_ns() < deadline);
			sched_yield();
		}
		EXPECT_INT(waitpid(pid, &status, WNOHANG), 0); /* the process lives */
		kill(pid, SIGKILL);
	}
	EXPECT_INT(waitpid(pid, &status, 0), pid);
	EXPECT(load_acquire(&p->began));
	EXPECT(!WIFEXITED(status) || WEXITSTATUS(status) == 0);
	EXPECT(died(e, p->thread_ix)); /* no later than the parent sees it */
	munmap(p, sizeof(*p));
}

static void test_exit(void **state)
{
	expect_marked(*state, END_EXIT);
}

static void test_raw_exit(void **state)
{
	expect_marked(*state, END_RAW_EXIT);
}

static void test_sigkill(void **state)
{
	expect_marked(*state, END_KILL);
}

static void test_crash(void **state)
{
	expect_marked(*state, END_SEGV);
}

static void test_exec(void **state)
{
	expect_marked(*state, END_EXEC);
}

/* ---- Threads ------------------------------------------------------------------------------ */

struct thread {
	struct engine *e;
	struct page *p;
	void (*body)(struct thread *t);
};

static void *run_thread(void *arg)
{
	struct thread *t = arg;

	t->body(t);
	return NULL;
}

static void just_end(struct thread *t)
{
	begin(t->e, t->p->thread_ix);
}

static void end_by_exit(struct thread *t)
{
	begin(t->e, t->p->thread_ix);
	pthread_exit(NULL);
}

static void wait_for_go(struct thread *t)
{
	begin(t->e, t->p->thread_ix);
	store_release(&t->p->began, 1);
	for (;;) {
		pthread_testcancel();
		sched_yield();
	}
}

static void thread_end(struct engine *e, void (*body)(struct thread *t), bool cancel)
{
	struct page *p = shared_page(e);
	struct thread t = {e, p, body};
	pthread_t id;

	EXPECT_INT(pthread_create(&id, NULL, run_thread, &t), 0);
	if (cancel) {
		await(&p->began);
		EXPECT(!died(e, p->thread_ix));
		pthread_cancel(id);
	}
	EXPECT_INT(pthread_join(id, NULL), 0);
	EXPECT(died(e, p->thread_ix));
	munmap(p, sizeof(*p));
}

static void test_thread_returns(void **state)
{
	thread_end(*state, just_end, false);
}

static void test_thread_exits(void **state)
{
	thread_end(*state, end_by_exit, false);
}

static void test_thread_is_cancelled(void **state)
{
	thread_end(*state, wait_for_go, true);
}

/* ---- The group's watch word ---------------------------------------------------------------- */

static uint32_t watch_of(struct engine *e, uint32_t ix)
{
	return load_acquire(region_known_watch(e->base, ix / GROUP_SPAN));
}

/* The first two threads of a group can have it, one at a time; who has it has both words marked. */
static void begin_and_look(struct thread *t)
{
	uint32_t ix = t->p->thread_ix, before = watch_of(t->e, ix);
	uint32_t tid = (uint32_t)syscall(SYS_gettid);
	bool is_free = before == 0 || (before & LIFE_DIED);

	begin(t->e, ix);
	EXPECT_INT(watch_of(t->e, ix), is_free && ix % GROUP_SPAN < 2 ? tid : before);
	EXPECT_INT(load_acquire(region_life(t->e->base, ix)), tid);
}

static void look_and_wait(struct thread *t)
{
	begin_and_look(t);
	store_release(&t->p->began, 1);
	await(&t->p->go);
}

static void test_watch_word(void **state)
{
	struct engine *e = *state;
	struct page *p = shared_page(e);
	struct thread first = {e, p, look_and_wait}, second;
	pthread_t id, other;
	struct page q = *p;

	for (uint32_t k = GROUP_THREADS; k-- > 0;) {
		struct thread t = {e, p, begin_and_look};

		/* Slots that nobody has: the words are there all the same. */
		p->thread_ix = p->thread_ix / GROUP_SPAN * GROUP_SPAN + k;
		EXPECT_INT(pthread_create(&id, NULL, run_thread, &t), 0);
		EXPECT_INT(pthread_join(id, NULL), 0);
		EXPECT(died(e, p->thread_ix));
		EXPECT_INT(watch_of(e, p->thread_ix) & LIFE_DIED, k < 2 ? LIFE_DIED : 0);
	}
	/* While the first lives the second has to do without. */
	EXPECT_INT(pthread_create(&id, NULL, run_thread, &first), 0);
	await(&p->began);
	q.thread_ix = p->thread_ix + 1;
	second = (struct thread){e, &q, begin_and_look};
	EXPECT_INT(pthread_create(&other, NULL, run_thread, &second), 0);
	EXPECT_INT(pthread_join(other, NULL), 0);
	EXPECT(died(e, q.thread_ix));
	EXPECT(!(watch_of(e, q.thread_ix) & LIFE_DIED));
	store_release(&p->go, 1);
	EXPECT_INT(pthread_join(id, NULL), 0);
	EXPECT(watch_of(e, p->thread_ix) & LIFE_DIED);
	munmap(p, sizeof(*p));
}

/* Who hears of the death by the watch word looks at the life word: that is marked by then. */
static void look_at_the_list(struct thread *t)
{
	struct robust_list_head *head;
	size_t length;
	uintptr_t first;

	begin_and_look(t);
	EXPECT_INT(syscall(SYS_get_robust_list, 0, &head, &length), 0);
	first = (uintptr_t)head->list.next + (uintptr_t)head->futex_offset;
	EXPECT_INT(first % PAGE_BYTES, life_off(t->p->thread_ix) % PAGE_BYTES);
}

static void test_life_word_is_marked_first(void **state)
{
	struct page *p = shared_page(*state);
	struct thread t = {*state, p, look_at_the_list};
	pthread_t id;

	EXPECT_INT(pthread_create(&id, NULL, run_thread, &t), 0);
	EXPECT_INT(pthread_join(id, NULL), 0);
	EXPECT(watch_of(*state, p->thread_ix) & LIFE_DIED);
	munmap(p, sizeof(*p));
}

/* ---- Beside the C library's robust mutexes ------------------------------------------------- */

/* One locked before the life word is there, one after; the one before is also unlocked and locked
 * again, which takes its node out of the list and puts it in front of ours. */
static void hold_mutexes(struct engine *e, struct page *p, bool shuffle)
{
	EXPECT_INT(pthread_mutex_lock(&p->mutex[0]), 0);
	begin(e, p->thread_ix);
	EXPECT_INT(pthread_mutex_lock(&p->mutex[1]), 0);
	if (!shuffle)
		return;
	EXPECT_INT(pthread_mutex_unlock(&p->mutex[0]), 0);
	EXPECT_INT(pthread_mutex_lock(&p->mutex[0]), 0);
	EXPECT_INT(pthread_mutex_unlock(&p->mutex[1]), 0);
	EXPECT_INT(pthread_mutex_lock(&p->mutex[1]), 0);
}

static void test_beside_mutexes(void **state)
{
	struct engine *e = *state;

	for (int shuffle = 0; shuffle < 2; shuffle++) {
		struct page *p = shared_page(e);
		pid_t pid = fork();
		int status;

		EXPECT(pid >= 0);
		if (pid == 0) {
			hold_mutexes(e, p, shuffle);
			raise(SIGKILL);
			_exit(99);
		}
		EXPECT_INT(waitpid(pid, &status, 0), pid);
		EXPECT(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
		EXPECT(died(e, p->thread_ix));
		for (int i = 0; i < 2; i++) {
			EXPECT_INT(pthread_mutex_lock(&p->mutex[i]), EOWNERDEAD);
			EXPECT_INT(pthread_mutex_consistent(&p->mutex[i]), 0);
			EXPECT_INT(pthread_mutex_unlock(&p->mutex[i]), 0);
		}
		munmap(p, sizeof(*p));
	}
}

/* musl's mutexes have another distance; it counts once a program has used a robust one. */
static void begin_as_with_musl(struct thread *t)
{
	static __thread struct robust_list_head head;

	head.list.next = &head.list;
	head.futex_offset = -28;
	EXPECT_INT(syscall(SYS_set_robust_list, &head, sizeof(head)), 0);
	begin(t->e, t->p->thread_ix);
}

static void test_other_distance(void **state)
{
	struct engine *e = *state;
	struct page *p = shared_page(e);
	struct thread t = {e, p, begin_as_with_musl};

	for (uint32_t k = 0; k < GROUP_THREADS; k++) {
		pthread_t id;

		p->thread_ix = p->thread_ix / GROUP_SPAN * GROUP_SPAN + k;
		EXPECT_INT(pthread_create(&id, NULL, run_thread, &t), 0);
		EXPECT_INT(pthread_join(id, NULL), 0);
		EXPECT(died(e, p->thread_ix));
	}
	munmap(p, sizeof(*p));
}

/* ---- fork ---------------------------------------------------------------------------------- */

/* The child has neither the parent's word nor its block; the parent's word stays unmarked. */
static void test_fork(void **state)
{
	struct engine *e = *state;
	struct page *p = shared_page(e);
	unsigned char *memory;
	void *private;
	pid_t pid, child;
	bool is_marked;
	int status;

	pid = fork();
	EXPECT(pid >= 0);
	if (pid == 0) {
		EXPECT_INT(life_begin(e->base, p->thread_ix, &private, &is_marked), 0);
		store_release(region_life(e->base, p->thread_ix), (uint32_t)getpid());
		memory = private;
		memory[LIFE_NODE_BYTES] = 77;
		child = fork();
		EXPECT(child >= 0);
		if (child == 0)
			_exit(memory[LIFE_NODE_BYTES] == 0 ? 0 : 98); /* wiped */
		EXPECT_INT(waitpid(child, &status, 0), child);
		EXPECT_INT(status, 0);
		EXPECT(!died(e, p->thread_ix));
		EXPECT_INT(memory[LIFE_NODE_BYTES], 77);
		_exit(0);
	}
	EXPECT_INT(waitpid(pid, &status, 0), pid);
	EXPECT_INT(status, 0);
	EXPECT(died(e, p->thread_ix));
	munmap(p, sizeof(*p));
}

/* Who waits for the death in the kernel is woken by it. */
static void test_waiter_is_woken_by_the_death(void **state)
{
	struct engine *e = *state;
	struct page *p = shared_page(e);
	uint32_t *life = region_life(e->base, p->thread_ix), seen;
	struct timespec limit = {20, 0};
	pid_t pid = fork();
	int status;

	EXPECT(pid >= 0);
	if (pid == 0) {
		begin(e, p->thread_ix);
		store_release(&p->began, 1);
		await(&p->go);
		raise(SIGKILL);
		_exit(99);
	}
	await(&p->began);
	seen = load_acquire(life);
	EXPECT(cas(life, &seen, seen | LIFE_WAITERS));
	store_release(&p->go, 1);
	while (!died(e, p->thread_ix))
		if (syscall(SYS_futex, life, FUTEX_WAIT, seen | LIFE_WAITERS, &limit, NULL, 0) < 0)
			EXPECT(errno != ETIMEDOUT);
	EXPECT_INT(waitpid(pid, &status, 0), pid);
	munmap(p, sizeof(*p));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_exit),           TEST(test_raw_exit),
		TEST(test_sigkill),        TEST(test_crash),
		TEST(test_exec),           TEST(test_thread_returns),
		TEST(test_thread_exits),   TEST(test_thread_is_cancelled),
		TEST(test_watch_word),     TEST(test_life_word_is_marked_first),
		TEST(test_beside_mutexes), TEST(test_other_distance),
		TEST(test_fork),           TEST(test_waiter_is_woken_by_the_death),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
