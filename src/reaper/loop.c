// SPDX-License-Identifier: MIT
/* The reaper's loop; what it is for and how it hears of deaths is in the header. */
#include "reaper/loop.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <time.h>
#include <unistd.h>

#include "base/ident.h"
#include "client/attach_orphans.h"
#include "client/office.h"
#include "client/retire.h"
#include "client/session.h"
#include "client/wait.h"
#include "core/region.h"
#include "reaper/kin.h"

#define MS 1000000ll

/* A process closes its mapping some way before it can be waited for. */
static const int64_t followup_ns[] = {2 * MS, 20 * MS, 200 * MS};
#define FOLLOWUPS      (sizeof(followup_ns) / sizeof(followup_ns[0]))
#define SLOW_LOOK_NS   (1000 * MS)
#define BLIND_LOOK_NS  (20 * MS)
#define LOOKS_APART_NS (2 * MS) /* many events at once are one look */
/* Where a look takes long (of a thousand processes, say) it is made the more seldom: who sleeps for
 * a death would wait for its end. */
#define REST_OF_LOOK 10

enum { EVENT_INOTIFY, EVENT_WATCHED, EVENT_NOTICE };

static int add(struct reaper *r, int fd, uint32_t which)
{
	struct epoll_event e = {.events = EPOLLIN, .data.u32 = which};

	return epoll_ctl(r->epoll_fd, EPOLL_CTL_ADD, fd, &e) < 0 ? -errno : 0;
}

/* Without inotify (no descriptors, a limit of the user's) the loop is blind and looks often. */
static void open_inotify(struct reaper *r)
{
	r->inotify_fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (r->inotify_fd < 0)
		return;
	if (inotify_add_watch(r->inotify_fd, r->place.region,
			      IN_CLOSE_WRITE | IN_CLOSE_NOWRITE | IN_ATTRIB | IN_DELETE_SELF) < 0 ||
	    add(r, r->inotify_fd, EVENT_INOTIFY) < 0) {
		close(r->inotify_fd);
		r->inotify_fd = -1;
	}
}

/* The office can be lost only by being thought dead; whoever wants it looks at every turn. */
static void look_at_office(struct reaper *r)
{
	int error;
	struct thread_block *tb = session_thread(&error);

	r->in_office = tb && office_take(&tb->caller);
}

/* Not at each death: it can wait. */
static void sweep_files(const struct reaper *r)
{
	int error;
	struct thread_block *tb = session_thread(&error);

	if (tb && r->in_office && r->followup >= FOLLOWUPS)
		(void)attach_orphans_remove(tb); /* they are told of by `usysv check` */
}

int reaper_begin(struct reaper *r, const struct namespace_place *place, int region_fd,
		 unsigned char *base)
{
	int error;

	memset(r, 0, sizeof(*r));
	r->place = *place;
	r->region_fd = region_fd;
	r->base = base;
	r->inotify_fd = -1;
	r->followup = FOLLOWUPS;
	r->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (r->epoll_fd < 0)
		return -errno;
	error = session_adopt(base, place, PROC_REAPER);
	if (error == 0 && !session_thread(&error) && error == 0)
		error = -EAGAIN;
	if (error < 0) {
		close(r->epoll_fd);
		return error;
	}
	open_inotify(r);
	if (watch_begin(&r->watch, base, session_pid_view()) == 0 &&
	    add(r, r->watch.fd, EVENT_NOTICE) < 0)
		watch_end(&r->watch);
	reaper_look(r);
	return 0;
}

int reaper_watch(struct reaper *r, int fd)
{
	return add(r, fd, EVENT_WATCHED);
}

static bool drain(const struct reaper *r)
{
	_Alignas(struct inotify_event) char buffer[4096];
	bool any = false;

	while (r->inotify_fd >= 0 && read(r->inotify_fd, buffer, sizeof(buffer)) > 0)
		any = true;
	return any;
}

static void follow_up(struct reaper *r, unsigned from)
{
	if (from < r->followup)
		r->followup = from;
}

/* What is busy is soon free, or its owner is stopped. */
static void sweep(struct reaper *r, enum sweep kind)
{
	bool done = session_sweep(kind);

	if (!done)
		follow_up(r, r->was_busy ? 1 : 0);
	r->was_busy = !done;
}

static void look(struct reaper *r, enum sweep kind)
{
	int64_t pause = r->inotify_fd < 0 ? BLIND_LOOK_NS : SLOW_LOOK_NS, begin = wait_now_ns();

	look_at_office(r);
	sweep(r, kind);
	sweep_files(r);
	r->users = retire_users(r->base);
	r->gone = retire_done(r->region_fd, r->base);
	/*
	 * The look itself may open and close the region (is its owner dead?), and hears that. What
	 * others did meanwhile is not told apart and gets a slow second look.
	 */
	if (drain(r))
		follow_up(r, FOLLOWUPS - 1);
	r->swept_ns = wait_now_ns();
	if (r->followup < FOLLOWUPS) {
		if (followup_ns[r->followup] < pause)
			pause = followup_ns[r->followup];
		r->followup++;
	}
	r->rest_ns = (r->swept_ns - begin) * REST_OF_LOOK;
	if (r->rest_ns > SLOW_LOOK_NS)
		r->rest_ns = SLOW_LOOK_NS;
	r->due_ns = r->swept_ns + (pause > r->rest_ns ? pause : r->rest_ns);
	if (kind == SWEEP_ALL)
		r->all_due_ns = r->swept_ns + SLOW_LOOK_NS;
}

void reaper_look(struct reaper *r)
{
	look(r, SWEEP_ALL);
}

/* A process has closed the region for good, or somebody only looked at it. */
static void heard(struct reaper *r)
{
	int64_t apart = r->rest_ns > LOOKS_APART_NS ? r->rest_ns : LOOKS_APART_NS;

	(void)drain(r); /* what it says is known: look */
	follow_up(r, 0);
	if (r->due_ns > r->swept_ns + apart)
		r->due_ns = r->swept_ns + apart;
}

bool reaper_step(struct reaper *r, int max_wait_ms)
{
	struct epoll_event events[4];
	int64_t now, wait = r->due_ns - wait_now_ns();
	int ms = wait <= 0 ? 0 : (int)((wait + MS - 1) / MS), n;
	bool watched = false;

	if (max_wait_ms >= 0 && ms > max_wait_ms)
		ms = max_wait_ms;
	n = epoll_wait(r->epoll_fd, events, 4, ms);
	for (int i = 0; i < n; i++) {
		if (events[i].data.u32 == EVENT_WATCHED) {
			watched = true;
			continue;
		}
		if (events[i].data.u32 == EVENT_NOTICE && (watch_news(&r->watch) & WATCH_MARKED))
			sweep(r, SWEEP_MARKED); /* somebody may sleep for it */
		heard(r);
	}
	now = wait_now_ns();
	if (now >= r->due_ns)
		look(r, now >= r->all_due_ns ? SWEEP_ALL : SWEEP_DOUBTFUL);
	return watched;
}

/* Has every user that is left begun to die? */
static bool only_dying(const struct reaper *r)
{
	uint32_t hi = region_proc_count(r->base);

	for (uint32_t i = 0; i < hi; i++) {
		const struct proc_shm *p = region_proc(r->base, i);
		enum ident_state state;

		/* REG_P2/A. A reserved slot that is left over is freed by looking. */
		if (!p || PROC_STATE(load_acquire(&p->state)) != PROC_LIVE ||
		    (p->flags & PROC_REAPER))
			continue;
		state = office_state_of(p);
		if (state == IDENT_ALIVE || state == IDENT_UNKNOWN)
			return false;
	}
	return true;
}

uint32_t reaper_settle(struct reaper *r)
{
	int64_t end = wait_now_ns() + 1000 * MS;
	struct timespec pause = {0, 2 * MS};

	for (reaper_look(r); r->users > 0 && only_dying(r) && wait_now_ns() < end; reaper_look(r))
		nanosleep(&pause, NULL);
	return r->users;
}

int reaper_retire(struct reaper *r, unsigned retire_flags)
{
	int error = !(retire_flags & RETIRE_FORCE) && kin_exist(&r->place)
			    ? -EBUSY
			    : retire_namespace(&r->place, r->region_fd, r->base, retire_flags);

	if (error == 0)
		r->gone = true;
	return error;
}

bool reaper_resign(struct reaper *r)
{
	int error;
	struct thread_block *tb = session_thread(&error);

	if (!tb)
		return true;
	office_leave(&tb->caller);
	r->in_office = false;
	/* OFFICE_P1: who has entered and found the office held is counted here. */
	r->users = retire_users(r->base);
	if (r->users > 0 && !r->gone)
		look_at_office(r);
	return !r->in_office;
}

void reaper_end(struct reaper *r)
{
	int error;
	struct thread_block *tb = session_thread(&error);

	if (tb)
		office_leave(&tb->caller);
	watch_end(&r->watch);
	session_exit();
	if (r->inotify_fd >= 0)
		close(r->inotify_fd);
	close(r->epoll_fd);
	close(r->region_fd);
}
