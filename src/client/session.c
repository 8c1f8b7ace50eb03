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
 *    word      session.lock (private), futex mutex: 0 free, 1 taken, 2 taken and waited for
 *    states    0 > 1 > 0; 1 > 2 > 0
 *    writers   any thread; all signals are blocked while it is held
 *    order     R of unlock pairs with A of lock; publishes the session
 *    stale-ok  2 with nobody asleep
 *    death     private memory: dies with the process. A forked child starts with it free
 *    progress  blocks
 *    tests     preload/process, conform/sem_undo
 */
#include "client/session.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/futex.h"
#include "base/ident.h"
#include "base/sys.h"
#include "client/attach.h"
#include "client/attach_file.h"
#include "client/creds.h"
#include "client/life.h"
#include "client/namespace.h"
#include "client/office.h"
#include "client/reaper_start.h"
#include "client/report.h"
#include "client/retire.h"
#include "client/usercopy.h"
#include "client/wait.h"
#include "core/procs.h"
#include "core/region.h"
#include "core/rlock.h"
#include "ipc/repair.h"
#include "ipc/sem.h"

__thread struct thread_block *thread_self
	__attribute__((tls_model("initial-exec"), visibility("hidden")));
void (*thread_flush_signals)(struct thread_block *tb);
void (*session_on_attach)(void);

_Static_assert(LIFE_NODE_BYTES + sizeof(struct thread_block) <= LIFE_PRIVATE_BYTES,
	       "a thread's block outgrew its page");

#define NO_SLOT UINT32_MAX

/* How long a call waits for another's burial of the same process: the other one may be stopped. */
#define BURY_TRIES   200
#define BURY_POLL_NS 5000000ll

static struct {
	uint32_t lock;
	bool attached;
	bool failed; /* the reason has been reported */
	int error;
	bool adopted; /* by session_adopt(): another process looks after the namespace */
	struct namespace_place place;
	unsigned char *base;
	dev_t dev;
	ino_t ino;
	uint32_t pidns;
	uint32_t flags;
	/* this process, once registered */
	bool registered;
	bool anew; /* in the slot of an image that exec replaced: its attaches are to be settled */
	pid_t pid;
	uint32_t proc_ix;
	void *token; /* the mapping that holds the byte lock */
	/* a slot whose token this process has, to register in: made by the parent before the fork,
	 * by itself before it gave up the right to open the file, or left by session_exit() */
	uint32_t own_ix;
	void *own_token;
	/* the same for the child of a fork in progress */
	uint32_t child_ix;
	void *child_token;
	char region_env[PATH_MAX + NAMESPACE_NAME_MAX + 16];
} session = {.own_ix = NO_SLOT, .child_ix = NO_SLOT};

/* ---- The session's lock ------------------------------------------------------------------ */

static void block_signals(uint64_t *old)
{
	uint64_t all = ~0ull;

	sys_call(SYS_rt_sigprocmask, SIG_SETMASK, (long)&all, (long)old, sizeof(all), 0, 0);
}

static void restore_signals(const uint64_t *old)
{
	sys_call(SYS_rt_sigprocmask, SIG_SETMASK, (long)old, 0, sizeof(*old), 0, 0);
}

static void lock_session(uint64_t *signals)
{
	uint32_t seen = 0;

	block_signals(signals);
	if (cas(&session.lock, &seen, 1)) /* SESSION_P1/A */
		return;
	while (exchange(&session.lock, 2) != 0) /* SESSION_P1/A */
		futex_wait(&session.lock, 2, NULL);
}

static void unlock_session(const uint64_t *signals)
{
	if (exchange(&session.lock, 0) == 2) /* SESSION_P1/R */
		futex_wake(&session.lock, 1);
	restore_signals(signals);
}

static pid_t real_pid(void)
{
	return (pid_t)sys_call(SYS_getpid, 0, 0, 0, 0, 0, 0);
}

/* ---- What the engine asks of this process ------------------------------------------------ */

static long open_region(void)
{
	struct stat st;
	long fd = sys_call(SYS_openat, AT_FDCWD, (long)session.place.region,
			   O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0, 0, 0);

	if (fd < 0)
		return fd;
	if (sys_call(SYS_fstat, fd, (long)&st, 0, 0, 0, 0) < 0 || st.st_dev != session.dev ||
	    st.st_ino != session.ino) {
		sys_call(SYS_close, fd, 0, 0, 0, 0, 0);
		return -ESTALE;
	}
	return fd;
}

static long lock_byte(long fd, int cmd, uint32_t ix, struct flock *lock)
{
	*lock = (struct flock){.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = ix, .l_len = 1};
	return sys_call(SYS_fcntl, fd, cmd, (long)lock, 0, 0, 0);
}

/* Is the token of this process slot free, so that its image is gone? */
static bool token_is_free(uint32_t proc_ix)
{
	struct flock lock;
	long fd = open_region();
	bool is_free;

	if (fd < 0)
		return false;
	is_free = lock_byte(fd, F_OFD_GETLK, proc_ix, &lock) == 0 && lock.l_type == F_UNLCK;
	sys_call(SYS_close, fd, 0, 0, 0, 0, 0);
	return is_free;
}

static bool is_dead(struct caller *c, uint32_t thread_ix, bool patient)
{
	uint32_t *life = region_life(c->base, thread_ix);
	struct thread_shm *t = region_thread(c->base, thread_ix);
	struct proc_shm *p;

	if (!life || !t)
		return false;
	if (load_acquire(life) & LIFE_DIED) /* LIFE_P1/A */
		return true;
	if (!patient || thread_ix == c->thread_ix)
		return false;
	p = region_proc(c->base, t->proc_ix);
	if (!p)
		return false;
	if (p->pidns && p->pidns == session.pidns && p->pid && t->tid &&
	    !ident_thread_exists((pid_t)p->pid, (pid_t)t->tid))
		return true;
	return t->proc_ix != session.proc_ix && !(p->flags & PROC_TOKENLESS) &&
	       token_is_free(t->proc_ix);
}

static bool is_process_dead(struct caller *c, uint32_t proc_ix)
{
	struct proc_shm *p = region_proc(c->base, proc_ix);
	enum ident_state state;

	if (!p || proc_ix == session.proc_ix)
		return false;
	if (p->pidns == 0 || p->pidns != session.pidns)
		return !(p->flags & PROC_TOKENLESS) && token_is_free(proc_ix);
	state = ident_process((pid_t)p->pid, p->start);
	return state == IDENT_GONE || state == IDENT_EXITING;
}

static bool is_image_gone(struct caller *c, uint32_t proc_ix)
{
	struct proc_shm *p = region_proc(c->base, proc_ix);

	return p && proc_ix != session.proc_ix && !(p->flags & PROC_TOKENLESS) &&
	       token_is_free(proc_ix);
}

static void drop_segment(struct caller *c, int32_t key, int32_t id)
{
	(void)c;
	attach_file_drop(key, id);
}

static bool must_probe(struct caller *c)
{
	return ((struct thread_block *)c->context)->probe != 0;
}

static int copy_in(struct caller *c, void *to, const void *user, size_t n)
{
	return usercopy_in(to, user, n, must_probe(c));
}

static int copy_out(struct caller *c, void *user, const void *from, size_t n)
{
	return usercopy_out(user, from, n, must_probe(c));
}

static const struct caller_ops session_ops = {
	.is_dead = is_dead,
	.is_process_dead = is_process_dead,
	.is_image_gone = is_image_gone,
	.copy_in = copy_in,
	.copy_out = copy_out,
	.repair = repair_lock,
	.drop_segment = drop_segment,
};

/* ---- Attaching --------------------------------------------------------------------------- */

static uint32_t pid_namespace(void)
{
	struct stat st;

	if (sys_call(SYS_newfstatat, AT_FDCWD, (long)"/proc/self/ns/pid", (long)&st, 0, 0, 0) < 0)
		return 0;
	return (uint32_t)st.st_ino;
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

static int note_attached(unsigned char *base, long fd)
{
	struct stat st;
	long rc = sys_call(SYS_fstat, fd, (long)&st, 0, 0, 0, 0);

	if (rc < 0)
		return (int)rc;
	session.dev = st.st_dev;
	session.ino = st.st_ino;
	session.base = base;
	session.attached = true;
	set_region_env();
	attach_file_place(session.place.region, st.st_dev,
			  (uint32_t)(st.st_ino ^ (uint64_t)st.st_ino >> 32 ^
				     (uint64_t)region_header(base)->created * 2654435761u));
	if (session_on_attach)
		session_on_attach();
	return 0;
}

/* flags: NAMESPACE_*. quiet: report nothing. With the session's lock. */
static int attach(unsigned flags, bool quiet)
{
	const char *why = NULL;
	unsigned char *base;
	int fd, rc;

	if (session.attached)
		return 0;
	if (session.failed)
		return session.error;
	rc = namespace_locate(NULL, &session.place, &why);
	if (rc == 0)
		rc = namespace_open(&session.place, flags, &fd, &why);
	if (rc == 0) {
		rc = namespace_map(fd, &base, &why);
		if (rc == 0)
			rc = note_attached(base, fd);
		sys_call(SYS_close, fd, 0, 0, 0, 0, 0);
	}
	if (rc < 0 && !quiet) {
		session.failed = true;
		session.error = rc;
		report(REPORT_NAMESPACE, "cannot use namespace '%s' (%s): %s%s%s",
		       session.place.name, session.place.region, report_errno(-rc),
		       why ? ": " : "", why ? why : "");
	}
	return rc;
}

/* ---- Registering the process ------------------------------------------------------------- */

/* Takes the token of slot ix in a mapping that nothing but this image keeps. */
static void *take_token(uint32_t ix)
{
	struct flock lock;
	long fd = open_region(), page;

	if (fd < 0)
		return NULL;
	page = -1;
	if (lock_byte(fd, F_OFD_SETLK, ix, &lock) == 0)
		page = sys_call(SYS_mmap, 0, PAGE_BYTES, PROT_READ, MAP_SHARED, fd, 0);
	sys_call(SYS_close, fd, 0, 0, 0, 0, 0);
	return page < 0 && page > -4096 ? NULL : (void *)page;
}

static void keep_from_children(void *token)
{
	if (token)
		sys_call(SYS_madvise, (long)token, PAGE_BYTES, MADV_DONTFORK, 0, 0, 0);
}

static void drop_token(void *token)
{
	if (token)
		sys_call(SYS_munmap, (long)token, PAGE_BYTES, 0, 0, 0, 0);
}

static bool own_slot(void *context, uint32_t ix)
{
	void **token = context;

	*token = take_token(ix);
	keep_from_children(*token);
	return *token != NULL;
}

/* For a child about to be forked: that one inherits the mapping. */
static bool own_slot_of_child(void *context, uint32_t ix)
{
	void **token = context;

	*token = take_token(ix);
	return *token != NULL;
}

static int register_process(void)
{
	pid_t pid = real_pid();
	uint64_t start;
	int32_t left;
	uint32_t ix;
	int rc = 0;

	if (session.registered && session.pid == pid)
		return 0;
	session.registered = false;
	session.pid = pid;
	session.pidns = pid_namespace();
	start = ident_start(pid);
	left = session.pidns && start ? procs_find(session.base, (uint32_t)pid, start) : -1;
	if (left >= 0 && own_slot(&session.token, (uint32_t)left)) {
		ix = (uint32_t)left;
		procs_adopt(session.base, ix);
		region_proc(session.base, ix)->flags = session.flags;
		session.anew = true;
	} else if (session.own_ix != NO_SLOT) {
		ix = session.own_ix;
		session.token = session.own_token;
		session.own_ix = NO_SLOT;
		session.own_token = NULL;
		procs_publish(session.base, ix, (uint32_t)pid, start, session.pidns, session.flags);
	} else {
		/* Out of reach (after setuid or chroot, in a child forked by other means): life
		 * words and pids must do. */
		long fd = open_region();

		session.token = NULL;
		if (fd >= 0)
			sys_call(SYS_close, fd, 0, 0, 0, 0, 0);
		rc = procs_reserve(session.base, fd >= 0 ? own_slot : NULL, &session.token,
				   (uint32_t)pid, &ix);
		if (rc < 0)
			return rc;
		procs_publish(session.base, ix, (uint32_t)pid, start, session.pidns,
			      session.flags | (fd < 0 ? PROC_TOKENLESS : 0));
	}
	session.proc_ix = ix;
	session.registered = true;
	return 0;
}

/* ---- Registering a thread ---------------------------------------------------------------- */

static bool slot_is_free(uint32_t thread_ix)
{
	return !(CLAIM_GEN(load_acquire(&region_thread(session.base, thread_ix)->claim)) &
		 1); /* REG_P1/A */
}

/* A free slot in the process's groups, else in a new group. */
static int find_thread_slot(uint32_t *ret_ix)
{
	uint32_t groups = load_acquire(&region_header(session.base)->group_hi); /* REGION_P1/A */
	uint32_t group;
	int rc;

	for (group = 0; group < groups; group++) {
		if (!procs_owns_group(session.base, session.proc_ix, group))
			continue;
		for (uint32_t k = 0; k < GROUP_THREADS; k++)
			if (slot_is_free(group * GROUP_SPAN + k)) {
				*ret_ix = group * GROUP_SPAN + k;
				return 0;
			}
	}
	rc = procs_take_group(session.base, session.proc_ix, &group);
	*ret_ix = group * GROUP_SPAN;
	return rc;
}

static int register_thread(void)
{
	struct thread_block *tb;
	void *memory;
	uint32_t ix;
	int rc = find_thread_slot(&ix);

	if (rc == 0)
		rc = life_begin(session.base, ix, &memory);
	if (rc < 0)
		return rc;
	tb = (struct thread_block *)(void *)((unsigned char *)memory + LIFE_NODE_BYTES);
	tb->caller = (struct caller){.base = session.base,
				     .thread_ix = ix,
				     .proc_ix = session.proc_ix,
				     .pid = (uint32_t)session.pid,
				     .creds = creds_current(),
				     .ops = &session_ops,
				     .context = tb};
	procs_enter_thread(session.base, ix, session.proc_ix,
			   (uint32_t)sys_call(SYS_gettid, 0, 0, 0, 0, 0, 0));
	tb->probe = 1; /* until the first copy has looked at the mask */
	thread_self = tb;
	tb->ready = 1;
	return 0;
}

/* Own threads that ended without a word leave their slots to the living. */
static void look_around(struct thread_block *tb)
{
	bool busy;

	repair_sweep(&tb->caller, time(NULL), false, &busy);
	if (!session.adopted && !office_held(&tb->caller))
		(void)reaper_start(&session.place);
}

struct thread_block *session_thread_slow(int *ret_error)
{
	uint64_t signals;
	int rc;

	lock_session(&signals);
	for (int tries = 0;; tries++) {
		rc = attach(NAMESPACE_CREATE | NAMESPACE_AUTO, false);
		if (rc == 0)
			rc = register_process();
		if (rc < 0 || retire_cancel(session.base) || session.adopted || tries == 100)
			break;
		/* It was removed while this process entered: out again, and into a new one. */
		drop_token(session.token);
		sys_call(SYS_munmap, (long)session.base, (long)REGION_BYTES, 0, 0, 0, 0);
		session.attached = session.registered = false;
	}
	if (rc == 0)
		rc = register_thread();
	if (rc == 0 && session.anew) {
		session.anew = false;
		attach_begin_anew(thread_self);
	}
	unlock_session(&signals);
	*ret_error = rc;
	if (rc < 0)
		return NULL;
	section_enter(thread_self);
	look_around(thread_self);
	section_leave(thread_self);
	return thread_self;
}

bool session_attached(void)
{
	return session.attached;
}

void session_attach_early(void)
{
	uint64_t signals;

	lock_session(&signals);
	if (!session.attached && !session.failed)
		(void)attach(0, true);
	/* Registering opens the file again: what that is for, too. */
	if (session.attached && !(session.registered && session.pid == real_pid()) &&
	    session.own_ix == NO_SLOT &&
	    procs_reserve(session.base, own_slot, &session.own_token,
			  (uint32_t)real_pid(), &session.own_ix) < 0)
		session.own_ix = NO_SLOT;
	if (session.attached && (creds_current()->euid == 0 || creds_current()->cap_sys_admin))
		attach_file_keep_door();
	unlock_session(&signals);
}

void session_creds_changed(void)
{
	creds_invalidate();
}

const char *session_region_env(void)
{
	return session.attached ? session.region_env : NULL;
}

int session_adopt(unsigned char *base, const char *path, uint32_t proc_flags)
{
	uint64_t signals;
	long fd;
	int rc;

	lock_session(&signals);
	strncpy(session.place.region, path, sizeof(session.place.region) - 1);
	fd = sys_call(SYS_openat, AT_FDCWD, (long)path, O_RDWR | O_CLOEXEC, 0, 0, 0);
	rc = (int)fd;
	if (fd >= 0) {
		session.flags = proc_flags;
		session.adopted = true;
		rc = note_attached(base, fd);
		sys_call(SYS_close, fd, 0, 0, 0, 0, 0);
	}
	if (rc == 0)
		rc = register_process();
	unlock_session(&signals);
	return rc;
}

/* ---- fork -------------------------------------------------------------------------------- */

/*
 * The lock is held over the fork: a registration half made in another thread would be cut in two
 * in the child. The child's token is locked, mapped and inherited; the parent unmaps its copy.
 */
static uint64_t fork_signals;

void session_fork_prepare(void)
{
	struct thread_block *tb = NULL;
	uint32_t ix;
	uint64_t signals;
	long fd;
	int error;

	/* Whose attaches the child will have, registers: only then can it be written down. */
	if (session.registered && session.pid == real_pid() &&
	    load_acquire(&region_proc(session.base, session.proc_ix)->attach_ref)) /* SHM_A1/A */
		tb = session_thread(&error);
	lock_session(&signals);
	fork_signals = signals;
	session.child_ix = NO_SLOT;
	session.child_token = NULL;
	attach_fork_begin();
	if (!session.attached)
		return;
	fd = open_region();
	if (fd < 0)
		return; /* the child registers without a token */
	sys_call(SYS_close, fd, 0, 0, 0, 0, 0);
	if (procs_reserve(session.base, own_slot_of_child, &session.child_token,
			  (uint32_t)real_pid(), &ix) == 0) {
		session.child_ix = ix;
		if (tb)
			attach_fork_record(tb, ix);
	}
}

void session_fork_parent(void)
{
	uint64_t signals = fork_signals;

	drop_token(session.child_token);
	session.child_ix = NO_SLOT;
	session.child_token = NULL;
	attach_fork_parent();
	unlock_session(&signals);
}

void session_fork_child(void)
{
	uint64_t signals = fork_signals;

	session.registered = false;
	session.token = NULL;
	session.own_ix = session.child_ix;
	session.own_token = session.child_token;
	session.child_ix = NO_SLOT;
	session.child_token = NULL;
	keep_from_children(session.own_token);
	attach_fork_child();
	/* What it has attached it must be known by: its end is to be seen. */
	if (session.own_ix != NO_SLOT &&
	    load_acquire(&region_proc(session.base, session.own_ix)->attach_ref)) /* SHM_A1/A */
		(void)register_process();
	store_release(&session.lock, 0); /* SESSION_P1/R: the child has one thread */
	restore_signals(&signals);
}

/* ---- Ends -------------------------------------------------------------------------------- */

void session_exit(void)
{
	struct thread_block *tb;
	int error;

	if (!session.registered || session.pid != real_pid())
		return;
	tb = session_thread(&error);
	if (!tb)
		return;
	section_enter(tb);
	while (repair_exit_process(&tb->caller, time(NULL)) == OUTCOME_BUSY)
		wait_busy_in_section(tb);
	rlock_settle(&tb->caller);
	section_leave(tb);
	if (slot_is_free(tb->caller.thread_ix)) {
		/* Given back whole. A later call registers anew. */
		uint64_t signals;

		lock_session(&signals);
		tb->ready = 0;
		session.registered = false;
		drop_token(session.token);
		session.token = NULL;
		unlock_session(&signals);
	}
}

/*
 * Buries a process and, when it is dead but somebody else is at it, waits until that is done: who
 * has learnt of a death must find its SEM_UNDO applied.
 */
static void bury(struct thread_block *tb, uint32_t proc_ix)
{
	struct caller *c = &tb->caller;
	struct proc_shm *p = region_proc(c->base, proc_ix);
	uint64_t gen = CLAIM_GEN(load_acquire(&p->claim)); /* REG_P1/A */
	bool dead = c->ops->is_process_dead(c, proc_ix);

	for (int tries = 0; tries < BURY_TRIES; tries++) {
		struct timespec deadline;
		int rc;

		section_enter(tb);
		rc = repair_bury_process(c, proc_ix, time(NULL));
		if (rc == OUTCOME_BUSY)
			wait_busy_in_section(tb);
		rlock_settle(c);
		section_leave(tb);
		if (rc == OUTCOME_BUSY)
			continue;
		if (!dead || CLAIM_GEN(load_acquire(&p->claim)) != gen) /* REG_P1/A */
			return;
		deadline = wait_deadline(BURY_POLL_NS);
		futex_wait(&p->state, PROC_LIVE, &deadline); /* woken by unclaim_process() */
	}
}

void session_reap(pid_t pid)
{
	struct thread_block *tb;
	int32_t ix;
	int error;

	if (!session.attached || pid <= 0)
		return;
	ix = procs_find(session.base, (uint32_t)pid, 0);
	if (ix < 0)
		return;
	tb = session_thread(&error);
	if (!tb || (uint32_t)ix == tb->caller.proc_ix)
		return;
	bury(tb, (uint32_t)ix);
	attach_sweep(tb);
}

uint32_t session_visible_pid(uint32_t proc_ix)
{
	const struct proc_shm *p = region_proc(session.base, proc_ix);

	return p && p->pidns && p->pidns == session.pidns ? p->pid : 0;
}

void session_bury(struct thread_block *tb, uint32_t proc_ix)
{
	bury(tb, proc_ix);
}

/*
 * Made by a parent that had attaches, for a child that did not come to be or died at once. The
 * session's lock keeps other threads of this process out, the word other processes.
 */
static void free_reserved_for_child(struct thread_block *tb, uint32_t ix, uint32_t word)
{
	struct proc_shm *p = region_proc(session.base, ix);
	uint32_t mine = PROC_WORD(PROC_RESERVED, (uint32_t)session.pid);
	uint64_t signals;

	lock_session(&signals);
	if (load_acquire(&p->attach_ref) && cas(&p->state, &word, mine)) { /* SHM_A1/A, REG_P2/R */
		section_enter(tb);
		while (repair_bury_reserved(&tb->caller, ix) == OUTCOME_BUSY)
			wait_busy_in_section(tb);
		rlock_settle(&tb->caller);
		section_leave(tb);
		procs_unreserve(session.base, ix, mine);
	}
	unlock_session(&signals);
}

/* Slots reserved by who is gone without having used them. */
static void free_reserved(struct thread_block *tb)
{
	uint32_t hi = load_acquire(&region_header(session.base)->proc_hi); /* REGION_P1/A */

	for (uint32_t ix = 0; ix < hi; ix++) {
		uint32_t word = load_acquire(&region_proc(session.base, ix)->state); /* REG_P2/A */

		if (PROC_STATE(word) != PROC_RESERVED || !token_is_free(ix))
			continue;
		if (load_acquire(&region_proc(session.base, ix)->attach_ref)) /* SHM_A1/A */
			free_reserved_for_child(tb, ix, word);
		else if (ident_process((pid_t)PROC_RESERVER(word), 0) != IDENT_ALIVE)
			procs_unreserve(session.base, ix, word);
	}
}

void session_sweep(void)
{
	struct thread_block *tb;
	bool busy = true;
	int error;

	if (!session.attached)
		return;
	tb = session_thread(&error);
	if (!tb)
		return;
	free_reserved(tb);
	section_enter(tb);
	for (int tries = 0; busy && tries < 1000; tries++) {
		repair_sweep(&tb->caller, time(NULL), true, &busy);
		if (busy)
			wait_busy_in_section(tb);
	}
	rlock_settle(&tb->caller);
	section_leave(tb);
	attach_sweep(tb);
}

void session_leave_undo(void)
{
	struct thread_block *tb;
	int error;

	if (!session.registered || session.pid != real_pid() || ident_threads(session.pid) != 1)
		return;
	tb = session_thread(&error);
	if (!tb)
		return;
	section_enter(tb);
	while (sem_undo_exit(&tb->caller, tb->caller.proc_ix, time(NULL), false) == OUTCOME_BUSY)
		wait_busy_in_section(tb);
	rlock_settle(&tb->caller);
	section_leave(tb);
}

void session_check_reaper(struct thread_block *tb)
{
	section_enter(tb);
	look_around(tb);
	section_leave(tb);
}
