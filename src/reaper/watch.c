// SPDX-License-Identifier: MIT
/* Notice of deaths; the header says what for, and client/life.c has the card WATCH_P1. */
#include "reaper/watch.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/futex.h"
#include "base/ident.h"
#include "base/signal_set.h"
#include "base/sys.h"
#include "client/lost.h"
#include "client/wait.h"
#include "core/procs.h"
#include "core/region.h"

#define OWN_WORDS    2u /* undo_owners, and the word that ends the thread */
#define SPAN         (FUTEX_WORDS_MOST - OWN_WORDS)
#define APART_NS     2000000ll /* many events at once are one look */
#define STACK_BYTES  (256u << 10)
#define DESCRIPTORS  20u /* are left to the rest of the program */
#define EVENT_MARKED UINT32_MAX

/* One thread, for the process slots from `from` on. */
struct watcher {
	struct watch *w;
	uint32_t from;
	pthread_t thread;
	struct watcher *next;      /* for the slots after these */
	uint32_t *word[SPAN];      /* the word by which a slot's process is watched */
	uint32_t orphan_gen[SPAN]; /* the slot's generation when there was none */
};

static void tell(const struct watch *w)
{
	uint64_t one = 1;

	(void)!write(w->event_fd, &one, sizeof(one)); /* full: then it is readable */
}

/* Does a process use the slot that would keep others waiting by its death? */
static bool is_owner(const struct proc_shm *p)
{
	return load_acquire(&p->state) == PROC_LIVE && /* REG_P2/A */
	       !(load_relaxed(&p->flags) & PROC_REAPER) &&
	       load_relaxed(&p->undo_ref); /* WATCH_P1: undo_owners was read before */
}

/* A word of the group by which its process can be watched; best its watch word. */
static uint32_t *choose(const unsigned char *base, uint32_t group, uint32_t *chosen)
{
	uint32_t *watch = region_known_watch(base, group);

	if (life_goes_on(load_acquire(watch))) /* WATCH_P1/A */
		return watch;
	for (uint32_t k = 0; k < GROUP_THREADS && !chosen; k++) {
		uint32_t ix = group * GROUP_SPAN + k;

		if ((CLAIM_GEN(load_acquire(&region_known_thread(base, ix)->claim)) & 1) &&
		    life_goes_on(
			    load_acquire(region_known_life(base, ix)))) /* REG_P1/A, LIFE_P1/A */
			chosen = region_known_life(base, ix);
	}
	return chosen;
}

static void choose_words(struct watcher *me)
{
	const unsigned char *base = me->w->base;
	uint32_t groups = region_group_count(base);

	memset(me->word, 0, sizeof(me->word));
	for (uint32_t g = 0; g < groups; g++) {
		uint32_t ix =
			(uint32_t)load_acquire(region_group_owner(base, g)) - 1; /* REG_P2/A */
		const struct proc_shm *p = region_proc(base, ix);

		if (ix - me->from < SPAN && p && is_owner(p) && procs_owns_group(base, ix, g))
			me->word[ix - me->from] = choose(base, g, me->word[ix - me->from]);
	}
}

/* ---- Those without a word ------------------------------------------------------------------ */

static bool has_room_for(int fd)
{
	struct rlimit files;

	return getrlimit(RLIMIT_NOFILE, &files) == 0 && (rlim_t)fd + DESCRIPTORS < files.rlim_cur;
}

/* Whose pid it was may have ended, and the pid be another's: the process is named by both. */
static int open_pidfd(const struct watch *w, const struct proc_shm *p)
{
	bool is_ours = p->pid_view == w->pid_view;
	enum ident_state state = IDENT_ALIVE;
	pid_t pid = (pid_t)p->pid;
	int fd;

	if (!w->pid_view || !p->pid_view)
		return -1;
	/* Of another one, it is known if it is shown by a pid of ours. */
	if (!is_ours && (!ident_proc_is_ours() ||
			 ident_try_elsewhere(p->pid_view, pid, p->start, &state, &pid) < 0))
		return -1;
	fd = pid > 0 ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
	if (fd < 0)
		return -1;
	if (has_room_for(fd) && ident_process(pid, is_ours ? p->start : 0) != IDENT_GONE)
		return fd;
	close(fd);
	return -1;
}

/* Where that cannot be, its death is found by looking. */
static void watch_pid(struct watch *w, const struct proc_shm *p)
{
	int fd = open_pidfd(w, p);

	for (uint32_t i = 0; fd >= 0 && i < WATCH_PIDFDS_MOST; i++) {
		struct epoll_event e = {.events = EPOLLIN | EPOLLONESHOT, .data.u32 = i};
		uint32_t none = 0;

		if (!cas(&w->pidfd[i], &none, (uint32_t)fd + 1)) /* private */
			continue;
		if (epoll_ctl(w->fd, EPOLL_CTL_ADD, fd, &e) == 0)
			return;
		store_release(&w->pidfd[i], 0); /* private */
		break;
	}
	if (fd >= 0)
		close(fd);
}

static void note_orphan(struct watcher *me, const struct proc_shm *p, uint32_t *known_gen)
{
	uint32_t gen = CLAIM_GEN(load_acquire(&p->claim)); /* REG_P1/A */

	if (gen == *known_gen)
		return;
	*known_gen = gen;
	watch_pid(me->w, p);
	tell(me->w);
}

/* ---- The thread ---------------------------------------------------------------------------- */

static bool start(struct watch *w, uint32_t from, struct watcher **ret);

/* Words to sleep on; how many. Tells of who has none. */
static unsigned gather(struct watcher *me, struct futex_word words[FUTEX_WORDS_MOST])
{
	const unsigned char *base = me->w->base;
	const uint32_t *owners = &region_header(base)->undo_owners;
	unsigned n = OWN_WORDS;

	words[0] = (struct futex_word){owners, load_acquire(owners)}; /* WATCH_P1/A */
	words[1] = (struct futex_word){&me->w->stop, 0};
	choose_words(me);
	for (uint32_t i = 0; i < SPAN; i++) {
		const struct proc_shm *p = region_proc(base, me->from + i);
		uint32_t *word = me->word[i];

		if (!p || !is_owner(p))
			continue;
		if (!word) {
			note_orphan(me, p, &me->orphan_gen[i]);
			continue;
		}
		/* Marked meanwhile: then this is not its value, and nobody sleeps. */
		words[n++] =
			(struct futex_word){word, (life_await(word) & ~LIFE_DIED) | LIFE_WAITERS};
	}
	if (!me->next && region_proc_count(base) > me->from + SPAN)
		(void)start(me->w, me->from + SPAN, &me->next); /* later, then */
	return n;
}

static void *watch_slots(void *context)
{
	struct watcher *me = context;
	struct futex_word words[FUTEX_WORDS_MOST];

	while (!lost_region() && !load_acquire(&me->w->stop)) { /* private */
		unsigned n = gather(me, words);
		struct timespec apart;
		int woken = futex_wait_any(words, n);

		if (woken == -ENOSYS || woken == -EPERM)
			break;
		if (woken >= (int)OWN_WORDS) {
			/* The kernel wakes one of those who wait for a death. */
			futex_wake(words[woken].word, INT_MAX);
			tell(me->w);
		}
		apart = wait_deadline(APART_NS);
		futex_wait(&me->w->stop, 0, &apart);
	}
	return NULL;
}

/* The program's signals are for its first thread. */
static int start_thread(struct watcher *me)
{
	pthread_attr_t attr;
	sigset_t all, before;
	int error;

	signal_set_of_others(&all);
	error = pthread_attr_init(&attr);
	if (error)
		return error;
	(void)pthread_attr_setstacksize(&attr, STACK_BYTES); /* else the usual size */
	pthread_sigmask(SIG_BLOCK, &all, &before);
	error = pthread_create(&me->thread, &attr, watch_slots, me);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	return error;
}

static bool start(struct watch *w, uint32_t from, struct watcher **ret)
{
	struct watcher *me = calloc(1, sizeof(*me));

	if (!me)
		return false;
	me->w = w;
	me->from = from;
	if (start_thread(me) == 0) {
		*ret = me;
		return true;
	}
	free(me);
	return false;
}

int watch_begin(struct watch *w, unsigned char *base, uint32_t pid_view)
{
	struct epoll_event e = {.events = EPOLLIN | EPOLLET, .data.u32 = EVENT_MARKED};
	int error;

	memset(w, 0, sizeof(*w));
	w->base = base;
	w->pid_view = pid_view;
	w->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	w->fd = epoll_create1(EPOLL_CLOEXEC);
	if (w->fd >= 0 && w->event_fd >= 0 &&
	    epoll_ctl(w->fd, EPOLL_CTL_ADD, w->event_fd, &e) == 0 && start(w, 0, &w->first))
		return 0;
	error = errno ? -errno : -EAGAIN;
	watch_end(w);
	return error;
}

unsigned watch_news(struct watch *w)
{
	struct epoll_event events[8];
	unsigned news = WATCH_NOTHING;
	int n = epoll_wait(w->fd, events, 8, 0);

	for (int i = 0; i < n; i++) {
		uint32_t which = events[i].data.u32;
		uint32_t fd =
			which == EVENT_MARKED ? 0 : exchange(&w->pidfd[which], 0); /* private */

		news |= which == EVENT_MARKED ? WATCH_MARKED : WATCH_ENDED;
		if (fd)
			close((int)fd - 1);
	}
	return news;
}

void watch_end(struct watch *w)
{
	store_release(&w->stop, 1); /* private */
	futex_wake(&w->stop, INT_MAX);
	while (w->first) {
		struct watcher *me = w->first;

		pthread_join(me->thread, NULL);
		w->first = me->next;
		free(me);
	}
	for (uint32_t i = 0; i < WATCH_PIDFDS_MOST; i++) {
		if (w->pidfd[i])
			close((int)w->pidfd[i] - 1);
		w->pidfd[i] = 0;
	}
	if (w->event_fd >= 0)
		close(w->event_fd);
	if (w->fd >= 0)
		close(w->fd);
	w->fd = w->event_fd = -1;
}
