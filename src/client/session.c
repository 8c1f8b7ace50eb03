// SPDX-License-Identifier: MIT
/*
 * One process's tie to its namespace.
 *
 * Attaching maps the region; registering takes the kernel's token of a process slot (a byte lock
 * on an open file description that only a mapping keeps alive: it goes with the image, at whatever
 * kind of end, and closing descriptors does not touch it) and a thread slot with its life word.
 * No descriptor stays open. A forked child keeps the mapping of the region, finds its thread block
 * wiped, and registers at its first call; its token is made by the parent before the fork, for
 * the child may be unable to open the file afterwards (chroot, setuid).
 *
 *   SESSION_P1  state of the process
 *    word      session.attached (private)
 *    states    false <> true
 *    writers   who has the session's lock (MUTEX_P1)
 *    order     R, stored last, pairs with A of session_is_attached(), for who has not the lock
 *    stale-ok  true for a region that was left: it stays mapped
 *    death     private memory: dies with the process. A vfork child killed before the store leaves
 *              a parent that attaches anew
 *    progress  wait-free
 *    tests     preload/process, conform/sem_undo, fuzz/vfork-killed
 */
#include "client/session_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/futex.h"
#include "base/sys.h"
#include "client/attach_fork.h"
#include "client/attach_dir.h"
#include "client/creds.h"
#include "client/gone.h"
#include "client/life.h"
#include "client/lost.h"
#include "client/office.h"
#include "client/reaper_start.h"
#include "client/report.h"
#include "client/retire.h"
#include "client/spare.h"
#include "client/wait.h"
#include "core/procs.h"
#include "core/region.h"
#include "ipc/repair.h"

/* How long a new image waits for who has claimed its slot. */
#define TAKE_OVER_TRIES   100
#define TAKE_OVER_POLL_NS 1000000ll

/* How many slots are tried that somebody takes away before they are published. */
#define BARE_TRIES 100

__thread struct thread_block *thread_self
	__attribute__((tls_model("initial-exec"), visibility("hidden")));
void (*thread_flush_signals)(struct thread_block *tb);
void (*session_on_attach)(void);

_Static_assert(LIFE_NODE_BYTES + sizeof(struct thread_block) <= LIFE_PRIVATE_BYTES,
	       "a thread's block outgrew its page");

struct session_state session = {.own_ix = NO_SLOT, .child_ix = NO_SLOT};

pid_t session_pid(void)
{
	return (pid_t)sys_call(SYS_getpid, 0, 0, 0, 0, 0, 0);
}

uint32_t session_pid_view(void)
{
	const struct process_record *me = vfork_depth ? vfork_record() : &session.process;

	return me ? me->pid_view : 0;
}

struct process_record *session_registered(void)
{
	struct process_record *me = vfork_depth ? vfork_record() : &session.process;

	return me && me->registered && me->pid == session_pid() ? me : NULL;
}

/* ---- Attaching --------------------------------------------------------------------------- */

static uint32_t own_view(void)
{
	uint32_t view;

	if (ident_view(&view) == 0)
		return view;
	/* No /proc here (chroot): the parent's, unless this is the first of a new pid namespace. */
	return session_pid() == 1 ? 0 : session.process.pid_view;
}

static void set_region_env(void)
{
	char *p = session.region_env;
	const char *parts[] = {"USYSV_REGION=", session.place.name, ":", session.place.region};

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		for (const char *s = parts[i]; *s; s++)
			*p++ = *s;
	*p = 0;
}

/* A vfork child shares the memory of its parent, but not its signal handlers: it has its own, and
 * the parent gets them when it makes a call. */
static void announce(void)
{
	if (!session.announce)
		return;
	if (!vfork_depth)
		session.announce = false;
	if (session_on_attach)
		session_on_attach();
}

/* What the header says is read from the file: before that, nobody mends a fault in the mapping. */
static int note_attached(unsigned char *base, long fd)
{
	struct stat st;
	int64_t created;
	long rc = sys_call(SYS_fstat, fd, (long)&st, 0, 0, 0, 0);

	if (rc == 0)
		rc = sys_call(SYS_pread64, fd, (long)&created, sizeof(created),
			      offsetof(struct header_shm, created), 0, 0);
	if (rc < 0)
		return (int)rc;
	if (rc != sizeof(created))
		return -ENOTRECOVERABLE; /* cut off meanwhile */
	session.dev = st.st_dev;
	session.ino = st.st_ino;
	session.owner = st.st_uid;
	session.base = base;
	set_region_env();
	attach_dir_place(session.place.region, st.st_dev, st.st_ino, created);
	session.announce = true;
	/* Last, see the card. */
	store_release(&session.attached, true); /* SESSION_P1/R */
	return 0;
}

struct opening {
	unsigned flags;
	const char *why;
};

static int open_region(void *context)
{
	struct opening *o = context;
	unsigned char *base;
	int fd, rc = namespace_open(&session.place, o->flags, &fd, &o->why);

	if (rc < 0)
		return rc;
	rc = namespace_map(fd, &base, &o->why);
	if (rc == 0)
		rc = note_attached(base, fd);
	sys_call(SYS_close, fd, 0, 0, 0, 0, 0);
	return rc;
}

/* What may be otherwise at the next call: want of descriptors or memory, or an interruption. A
 * limit on file sizes stays. */
static bool is_transient(int rc)
{
	return (spare_would_help(rc) && rc != -EFBIG) || rc == -ENOMEM || rc == -EINTR ||
	       rc == -EAGAIN;
}

/* flags: NAMESPACE_*. quiet: report nothing. With the session's lock. */
static int attach(unsigned flags, bool quiet)
{
	struct opening o = {.flags = flags};
	int rc;

	if (session.attached)
		return 0;
	if (session.failed)
		return session.error;
	rc = namespace_locate(NULL, &session.place, &o.why);
	if (rc == 0)
		rc = spare_run(open_region, &o, sizeof(o));
	if (rc == 0)
		announce();
	if (rc < 0 && !quiet) {
		session.failed = !is_transient(rc);
		session.error = rc;
		report(REPORT_NAMESPACE, "cannot use namespace '%s'%s%s%s: %s%s%s",
		       session.place.name, *session.place.region ? " (" : "", session.place.region,
		       *session.place.region ? ")" : "", report_errno(-rc), o.why ? ": " : "",
		       o.why ? o.why : "");
	}
	return rc;
}

/* ---- Registering the process ------------------------------------------------------------- */

/*
 * A slot without a token, reserved and at once published. A sweeper that cannot see this pid (of
 * another pid namespace) may take the reserver for gone in between: then another slot.
 */
static int register_bare(const struct process_record *me, uint64_t start, uint32_t *ret_ix)
{
	for (int tries = 0; tries < BARE_TRIES; tries++) {
		int rc = procs_reserve(session.base, NULL, NULL, (uint32_t)me->pid, ret_ix);

		if (rc < 0)
			return rc;
		if (procs_publish(session.base, *ret_ix, (uint32_t)me->pid, start, me->pid_view,
				  session.flags | PROC_TOKENLESS))
			return 0;
	}
	return -EAGAIN;
}

/* Its end is known by its life word and its pid: a token would be its parent's, as the memory is.
 */
static int register_vfork_child(struct process_record **ret_me)
{
	struct process_record *me = vfork_record_made();
	int rc;

	if (!me)
		return -ENOMEM;
	*ret_me = me;
	if (me->registered)
		return 0;
	me->pid_view = own_view();
	rc = register_bare(me, spare_ident_start(me->pid), &me->proc_ix);
	if (rc < 0)
		return rc;
	me->registered = true;
	return 0;
}

/*
 * The slot of the image before this one. Somebody may just be settling its attaches: that is over
 * soon, or he is stopped or dead; then the slot is left to burial, when the process ends.
 */
static bool take_over(uint32_t ix, void **ret_token)
{
	struct proc_shm *p = region_known_proc(session.base, ix);

	if (!session_take_token(ix, ret_token))
		return false;
	for (int tries = 0; tries < TAKE_OVER_TRIES; tries++) {
		struct timespec deadline = wait_deadline(TAKE_OVER_POLL_NS);

		if (procs_adopt(session.base, ix))
			return true;
		futex_wait(&p->state, PROC_LIVE, &deadline);
	}
	session_drop_token(*ret_token);
	*ret_token = NULL;
	return false;
}

/* In the slot whose token this process has; the token goes if that is not to be. */
static bool register_tokened(struct process_record *me, uint32_t ix, uint64_t start)
{
	if (procs_publish(session.base, ix, (uint32_t)me->pid, start, me->pid_view, session.flags))
		return true;
	session_drop_token(me->token);
	me->token = NULL;
	return false;
}

int session_register_process(struct process_record **ret_me)
{
	struct process_record *me = *ret_me = &session.process;
	pid_t pid = session_pid();
	uint64_t start;
	int32_t left;
	uint32_t ix;

	if (vfork_depth)
		return register_vfork_child(ret_me);
	if (me->registered && me->pid == pid)
		return 0;
	me->registered = false;
	me->pid = pid;
	me->pid_view = own_view();
	start = me->pid_view ? spare_ident_start(pid) : 0;
	left = start ? procs_find(session.base, (uint32_t)pid, start) : -1;
	if (left >= 0 && take_over((uint32_t)left, &me->token)) {
		ix = (uint32_t)left;
		region_known_proc(session.base, ix)->flags = session.flags;
		me->anew = true;
	} else {
		bool token = session.own_ix != NO_SLOT;

		if (token) {
			ix = session.own_ix;
			me->token = session.own_token;
			session.own_ix = NO_SLOT;
			session.own_token = NULL;
		} else {
			token = session_reserve(pid, false, &me->token, &ix) == 0;
		}
		/* Out of reach (after setuid or chroot, in a child forked by other means): life
		 * words and pids must do. */
		if (!token || !register_tokened(me, ix, start)) {
			int rc = register_bare(me, start, &ix);

			if (rc < 0)
				return rc;
		}
	}
	me->proc_ix = ix;
	me->registered = true;
	return 0;
}

/* ---- Registering a thread ---------------------------------------------------------------- */

bool session_slot_is_free(uint32_t thread_ix)
{
	return !(CLAIM_GEN(load_acquire(&region_known_thread(session.base, thread_ix)->claim)) &
		 1); /* REG_P1/A */
}

/* A free slot in the process's groups, else in a new group. */
static int find_thread_slot(uint32_t proc_ix, uint32_t *ret_ix)
{
	uint32_t groups = region_group_count(session.base);
	uint32_t group;
	int rc;

	for (group = 0; group < groups; group++) {
		if (!procs_owns_group(session.base, proc_ix, group))
			continue;
		for (uint32_t k = 0; k < GROUP_THREADS; k++)
			if (session_slot_is_free(group * GROUP_SPAN + k)) {
				*ret_ix = group * GROUP_SPAN + k;
				return 0;
			}
	}
	rc = procs_take_group(session.base, proc_ix, &group);
	*ret_ix = group * GROUP_SPAN;
	return rc;
}

static int register_thread(struct process_record *me)
{
	struct thread_block *tb;
	bool is_marked = false;
	void *memory;
	uint32_t ix;
	int rc = find_thread_slot(me->proc_ix, &ix);

	if (rc == 0)
		rc = life_begin(session.base, ix, &memory, &is_marked);
	if (rc < 0)
		return rc;
	tb = (struct thread_block *)(void *)((unsigned char *)memory + LIFE_NODE_BYTES);
	tb->caller = (struct caller){.base = session.base,
				     .thread_ix = ix,
				     .proc_ix = me->proc_ix,
				     .pid = (uint32_t)me->pid,
				     .creds = creds_current(),
				     .ops = &session_ops,
				     .context = tb};
	procs_enter_thread(session.base, ix, me->proc_ix,
			   (uint32_t)sys_call(SYS_gettid, 0, 0, 0, 0, 0, 0), is_marked);
	tb->probe = 1; /* until the first copy has looked at the mask */
	if (vfork_depth)
		me->block = tb;
	thread_self = tb;
	tb->ready = 1;
	return 0;
}

/* Own threads that ended without a word leave their slots to the living. */
static void look_around(struct thread_block *tb, enum sweep kind)
{
	bool busy;

	repair_sweep(&tb->caller, time(NULL), kind, &busy);
	if (!session.adopted && !office_held(&tb->caller))
		(void)reaper_start_missed(&session.place);
}

/* Has the region's file been removed, by other means than a command of ours? */
static bool region_is_gone(void)
{
	long fd = session_open_region();

	if (fd >= 0)
		sys_call(SYS_close, fd, 0, 0, 0, 0, 0);
	return (fd == -ENOENT || fd == -ESTALE) && gone_mapped_file(session.base);
}

/*
 * Out of a region that was removed, before anything of this process is in it. Its mapping stays,
 * for other threads look into the region without the session's lock (session_reap(),
 * session_has_attaches()). This is rare.
 */
static void leave_region(struct process_record *me)
{
	store_release(&session.attached, false); /* SESSION_P1/R */
	me->registered = false;
	session_drop_token(me->token);
	session_drop_token(session.own_token);
	me->token = session.own_token = NULL;
	session.own_ix = NO_SLOT;
}

/* Attached, but there is no room to register. What attach() has reported, this does not repeat. */
static void report_outside(int rc)
{
	report(REPORT_NAMESPACE, "cannot enter namespace '%s' (%s): %s%s", session.place.name,
	       session.place.region, report_errno(-rc),
	       rc == -ENOMEM ? ": is memory limited (ulimit -d, -v, control group), or the file "
			       "system full?"
			     : "");
}

/* Attaches and registers the process; `me` is its record when that succeeds. */
static int enter_namespace(struct process_record **ret_me)
{
	for (int tries = 0;; tries++) {
		/* In memory that a vfork child borrows the parent's region stays as it is; and a
		 * child stays where what it has attached is written down. */
		bool is_first = !vfork_depth && !session_registered() && !attach_fork_is_heir();
		int rc = attach(NAMESPACE_CREATE | NAMESPACE_AUTO, false);
		bool stays;

		if (rc == 0)
			rc = session_register_process(ret_me);
		if (rc < 0 || session.adopted || tries == 100)
			return rc;
		stays = retire_cancel(session.base);
		if (!is_first || (stays && !region_is_gone()))
			return 0;
		/* It was removed while this process entered: out again, and into a new one. */
		leave_region(*ret_me);
	}
}

struct thread_block *session_thread_slow(int *ret_error)
{
	struct process_record *me = NULL;
	uint64_t signals;
	int rc;

	*ret_error = lost_region() ? -ENOTRECOVERABLE : -EINTR;
	/* Ours already: a handler that could not be put off has come between. */
	if (lost_region() || !session_lock(&signals))
		return NULL;
	announce(); /* if a vfork child was the first to attach */
	rc = enter_namespace(&me);
	if (rc == 0)
		rc = register_thread(me);
	if (rc == 0 && me->anew) {
		me->anew = false;
		attach_begin_anew(thread_self);
	}
	announce();
	session_unlock(&signals);
	*ret_error = rc;
	if (rc < 0) {
		report_outside(rc);
		return NULL;
	}
	section_enter(thread_self);
	look_around(thread_self, SWEEP_MARKED);
	section_leave(thread_self);
	return thread_self;
}

bool session_attached(void)
{
	return session_is_attached();
}

/* Is there a record of this process, of an image that exec replaced? */
static bool old_image_left(pid_t pid)
{
	uint64_t start = own_view() ? spare_ident_start(pid) : 0;

	return start && procs_find(session.base, (uint32_t)pid, start) >= 0;
}

void session_attach_early(void)
{
	struct process_record *me;
	uint64_t signals;

	if (lost_region() || !session_lock(&signals))
		return;
	if (!session.attached && !session.failed)
		(void)attach(0, true);
	/* Registering opens the file again: what that is for, too. What the image before this one
	 * left can be taken over now only. */
	if (session.attached && !vfork_depth && !session_registered() &&
	    session.own_ix == NO_SLOT) {
		if (old_image_left(session_pid()))
			(void)session_register_process(&me);
		else if (session_reserve(session_pid(), false, &session.own_token,
					 &session.own_ix) < 0)
			session.own_ix = NO_SLOT;
	}
	if (session.attached && (creds_current()->euid == 0 || creds_current()->cap_sys_admin))
		attach_dir_keep_door();
	session_unlock(&signals);
}

void session_creds_changed(void)
{
	creds_invalidate();
}

const char *session_region_env(void)
{
	return session_is_attached() ? session.region_env : NULL;
}

bool session_owner(uid_t *ret)
{
	if (!session_is_attached())
		return false;
	*ret = session.owner;
	return true;
}

bool session_has_attaches(void)
{
	struct process_record *me = session_is_attached() ? session_registered() : NULL;

	return me &&
	       load_acquire(
		       &region_known_proc(session.base, me->proc_ix)->attach_ref); /* SHM_A1/A */
}

int session_adopt(unsigned char *base, const struct namespace_place *place, uint32_t proc_flags)
{
	struct process_record *me;
	uint64_t signals;
	long fd;
	int rc;

	if (!session_lock(&signals))
		return -EINTR;
	session.place = *place;
	fd = sys_call(SYS_openat, AT_FDCWD, (long)place->region, O_RDWR | O_CLOEXEC, 0, 0, 0);
	rc = (int)fd;
	if (fd >= 0) {
		session.flags = proc_flags;
		session.adopted = true;
		rc = note_attached(base, fd);
		sys_call(SYS_close, fd, 0, 0, 0, 0, 0);
	}
	if (rc == 0)
		announce();
	if (rc == 0)
		rc = session_register_process(&me);
	session_unlock(&signals);
	return rc;
}

void session_check_reaper(struct thread_block *tb)
{
	section_enter(tb);
	look_around(tb, SWEEP_DOUBTFUL);
	section_leave(tb);
}
