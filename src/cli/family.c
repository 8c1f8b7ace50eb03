// SPDX-License-Identifier: MIT
/* The families of objects as the commands show and remove them. */
#include "cli/family.h"

#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <sys/ipc.h>

#include "client/calls.h"
#include "client/office.h"
#include "core/procs.h"
#include "core/region.h"
#include "ipc/sem.h"
#include "ipc/shm.h"

/* clang-format off */
#define COMMON_COLUMNS                                                                             \
	[OBJECT_KEY] = {"KEY", "key of the object", COLUMN_TEXT, true},                            \
	[OBJECT_ID] = {"ID", "its id", COLUMN_NUMBER, true},                                       \
	[OBJECT_PERMS] = {"PERMS", "permissions", COLUMN_TEXT, true},                              \
	[OBJECT_OWNER] = {"OWNER", "owner's name or uid", COLUMN_TEXT, true},                      \
	[OBJECT_CUID] = {"CUID", "creator's uid", COLUMN_NUMBER, false},                           \
	[OBJECT_CUSER] = {"CUSER", "creator's name", COLUMN_TEXT, false},                          \
	[OBJECT_CGID] = {"CGID", "creator's gid", COLUMN_NUMBER, false},                           \
	[OBJECT_CGROUP] = {"CGROUP", "creator's group", COLUMN_TEXT, false},                       \
	[OBJECT_UID] = {"UID", "owner's uid", COLUMN_NUMBER, false},                               \
	[OBJECT_USER] = {"USER", "owner's name", COLUMN_TEXT, false},                              \
	[OBJECT_GID] = {"GID", "owner's gid", COLUMN_NUMBER, false},                               \
	[OBJECT_GROUP] = {"GROUP", "owner's group", COLUMN_TEXT, false},                           \
	[OBJECT_CTIME] = {"CTIME", "time of the last change", COLUMN_TIME, false}
/* clang-format on */

static void user(struct table *t, unsigned column, uint32_t uid, bool or_number)
{
	const struct passwd *p = getpwuid(uid);

	if (p)
		table_text(t, column, p->pw_name);
	else if (or_number)
		table_number(t, column, uid);
}

static void group(struct table *t, unsigned column, uint32_t gid)
{
	const struct group *g = getgrgid(gid);

	if (g)
		table_text(t, column, g->gr_name);
}

static void permissions(struct table *t, uint32_t mode)
{
	char text[10] = "rwxrwxrwx";

	for (int i = 0; i < 9; i++)
		if (!(mode & (0400u >> i)))
			text[i] = '-';
	table_text(t, OBJECT_PERMS, text);
}

bool family_row(const struct family_view *view, struct table *t, const unsigned char *base,
		const struct object_shm *o)
{
	char key[16];

	if (!table_row(t))
		return false;
	snprintf(key, sizeof(key), "0x%08x", (unsigned)o->key);
	table_text(t, OBJECT_KEY, key);
	table_number(t, OBJECT_ID, (int64_t)load_acquire(&o->live) - 1);
	permissions(t, o->mode);
	user(t, OBJECT_OWNER, o->uid, true);
	table_number(t, OBJECT_CUID, o->cuid);
	user(t, OBJECT_CUSER, o->cuid, false);
	table_number(t, OBJECT_CGID, o->cgid);
	group(t, OBJECT_CGROUP, o->cgid);
	table_number(t, OBJECT_UID, o->uid);
	user(t, OBJECT_USER, o->uid, false);
	table_number(t, OBJECT_GID, o->gid);
	group(t, OBJECT_GROUP, o->gid);
	table_time(t, OBJECT_CTIME, o->ctime);
	view->fill(t, base, o);
	return true;
}

const struct object_shm *family_object(const unsigned char *base, enum family family, uint32_t ix)
{
	const struct object_shm *o = region_object(base, family, ix);

	return o && load_acquire(&o->live) ? o : NULL;
}

/* ---- Who ----------------------------------------------------------------------------------- */

/* A list of processes, as text; without those that are dead and not yet buried. */
struct pids {
	FILE *out;
	char *text;
	size_t bytes;
};

static void pids_add(struct pids *l, const struct proc_shm *p)
{
	enum ident_state state;

	if (!l->out)
		l->out = open_memstream(&l->text, &l->bytes);
	if (!l->out || !p || PROC_STATE(load_acquire(&p->state)) != PROC_LIVE)
		return;
	state = office_state_of(p);
	if (state != IDENT_GONE && state != IDENT_EXITING)
		fprintf(l->out, "%s%u", ftell(l->out) > 0 ? "," : "", p->pid);
}

static void pids_show(struct pids *l, struct table *t, unsigned column)
{
	if (l->out && fclose(l->out) == 0)
		table_text(t, column, l->text);
	free(l->text);
}

static uint32_t index_of(const struct object_shm *o)
{
	return (load_acquire(&o->live) - 1) & (OBJECT_CAPACITY - 1);
}

static void sleepers(struct table *t, unsigned column, const unsigned char *base,
		     enum family family, const struct object_shm *o)
{
	uint32_t groups = region_group_count(base), ix = index_of(o);
	struct pids l = {0};

	for (uint32_t g = 0; g < groups; g++)
		for (uint32_t k = 0; k < GROUP_THREADS; k++) {
			const struct thread_shm *s = region_thread(base, g * GROUP_SPAN + k);

			if (s &&
			    wait_is_of(s, WAIT_REQUEST(load_acquire(&s->st)), family, ix, o->gen))
				pids_add(&l, region_proc(base, s->proc_ix));
		}
	pids_show(&l, t, column);
}

/* ---- Semaphore sets ------------------------------------------------------------------------ */

enum { SEM_NSEMS = OBJECT_COLUMNS, SEM_OTIME, SEM_SLEEPERS, SEM_OWERS };

static const struct column sem_columns[] = {
	COMMON_COLUMNS,
	[SEM_NSEMS] = {"NSEMS", "number of semaphores", COLUMN_NUMBER, true},
	[SEM_OTIME] = {"OTIME", "time of the last operation", COLUMN_TIME, true},
	[SEM_SLEEPERS] = {"SLEEPERS", "processes that sleep on it", COLUMN_TEXT, true},
	[SEM_OWERS] = {"UNDO", "processes whose end changes it (SEM_UNDO)", COLUMN_TEXT, true},
};

/* Each semaphore has the time of its own last operation; the set's is the latest. */
static int64_t sem_otime(const unsigned char *base, const struct set_shm *set)
{
	uint64_t bytes = (uint64_t)set->nsems * set->stride;
	const unsigned char *cells;
	int64_t latest = 0;

	if (set->stride < SEM_CELL_BYTES || set->stride % SEM_CELL_BYTES != 0)
		return 0; /* just being removed */
	cells = region_block(base, set->words_ref, bytes);
	for (uint32_t i = 0; cells && i < set->nsems; i++) {
		const struct sem_shm *s = (const void *)(cells + (uint64_t)i * set->stride);
		int64_t otime = load_acquire(&s->otime);

		if (otime > latest)
			latest = otime;
	}
	return latest;
}

static void sem_fill(struct table *t, const unsigned char *base, const struct object_shm *o)
{
	const struct set_shm *set = (const void *)o;
	uint32_t procs = region_proc_count(base), ix = index_of(o);
	struct pids owers = {0};

	table_number(t, SEM_NSEMS, set->nsems);
	table_time(t, SEM_OTIME, sem_otime(base, set));
	sleepers(t, SEM_SLEEPERS, base, FAMILY_SEM, o);
	for (uint32_t p = 0; p < procs; p++)
		if (sem_undo_owes(base, p, ix, o->gen, set->nsems))
			pids_add(&owers, region_proc(base, p));
	pids_show(&owers, t, SEM_OWERS);
}

static int remove_set(int32_t id)
{
	long r = call_semctl(id, 0, IPC_RMID, 0);

	return r < 0 ? (int)r : 0;
}

/* ---- Message queues ------------------------------------------------------------------------ */

enum {
	MSG_BYTES = OBJECT_COLUMNS,
	MSG_MESSAGES,
	MSG_QBYTES,
	MSG_LSPID,
	MSG_LRPID,
	MSG_STIME,
	MSG_RTIME,
	MSG_SLEEPERS
};

static const struct column msg_columns[] = {
	COMMON_COLUMNS,
	[MSG_BYTES] = {"USEDBYTES", "bytes of all messages", COLUMN_NUMBER, true},
	[MSG_MESSAGES] = {"MSGS", "number of messages", COLUMN_NUMBER, true},
	[MSG_QBYTES] = {"QBYTES", "room for bytes of messages", COLUMN_NUMBER, false},
	[MSG_LSPID] = {"LSPID", "process that sent last", COLUMN_NUMBER, false},
	[MSG_LRPID] = {"LRPID", "process that received last", COLUMN_NUMBER, false},
	[MSG_STIME] = {"SEND", "time of the last message sent", COLUMN_TIME, true},
	[MSG_RTIME] = {"RECV", "time of the last message received", COLUMN_TIME, true},
	[MSG_SLEEPERS] = {"SLEEPERS", "processes that sleep on it", COLUMN_TEXT, true},
};

static void msg_fill(struct table *t, const unsigned char *base, const struct object_shm *o)
{
	const struct queue_shm *q = (const void *)o;

	table_number(t, MSG_BYTES, (int64_t)q->bytes);
	table_number(t, MSG_MESSAGES, q->count);
	table_number(t, MSG_QBYTES, (int64_t)q->qbytes);
	table_number(t, MSG_LSPID, q->lspid);
	table_number(t, MSG_LRPID, q->lrpid);
	table_time(t, MSG_STIME, q->stime);
	table_time(t, MSG_RTIME, q->rtime);
	sleepers(t, MSG_SLEEPERS, base, FAMILY_MSG, o);
}

static int remove_queue(int32_t id)
{
	long r = call_msgctl(id, IPC_RMID, NULL);

	return r < 0 ? (int)r : 0;
}

/* ---- Segments ------------------------------------------------------------------------------ */

enum {
	SHM_BYTES = OBJECT_COLUMNS,
	SHM_NATTCH,
	SHM_STATUS,
	SHM_CPID,
	SHM_LPID,
	SHM_ATIME,
	SHM_DTIME,
	SHM_ATTACHED
};

static const struct column shm_columns[] = {
	COMMON_COLUMNS,
	[SHM_BYTES] = {"SIZE", "size in bytes", COLUMN_NUMBER, true},
	[SHM_NATTCH] = {"NATTCH", "attaches on record", COLUMN_NUMBER, true},
	[SHM_STATUS] = {"STATUS", "dest: removed, goes with the last detach; locked", COLUMN_TEXT,
			true},
	[SHM_CPID] = {"CPID", "process of the creator", COLUMN_NUMBER, false},
	[SHM_LPID] = {"LPID", "process of the last attach or detach", COLUMN_NUMBER, false},
	[SHM_ATIME] = {"ATIME", "time of the last attach", COLUMN_TIME, false},
	[SHM_DTIME] = {"DTIME", "time of the last detach", COLUMN_TIME, false},
	[SHM_ATTACHED] = {"ATTACHED", "processes that have it attached", COLUMN_TEXT, true},
};

/* By the records alone: looking into the processes is for shmctl(2). */
static void shm_attached(struct table *t, const unsigned char *base, const struct object_shm *o)
{
	uint32_t procs = region_proc_count(base), ix = index_of(o);
	struct pids l = {0};
	uint64_t all = 0;

	for (uint32_t p = 0; p < procs; p++) {
		uint32_t n = shm_count_records(base, p, ix, o->gen);

		all += n;
		if (n)
			pids_add(&l, region_proc(base, p));
	}
	table_number(t, SHM_NATTCH, (int64_t)all);
	pids_show(&l, t, SHM_ATTACHED);
}

static void shm_fill(struct table *t, const unsigned char *base, const struct object_shm *o)
{
	const struct segment_shm *s = (const void *)o;

	table_number(t, SHM_BYTES, (int64_t)s->bytes);
	shm_attached(t, base, o);
	if (o->mode & (SEGMENT_DEST | SEGMENT_LOCKED))
		table_text(t, SHM_STATUS,
			   !(o->mode & SEGMENT_LOCKED) ? "dest"
			   : o->mode & SEGMENT_DEST    ? "dest,locked"
						       : "locked");
	table_number(t, SHM_CPID, s->cpid);
	table_number(t, SHM_LPID, s->lpid);
	table_time(t, SHM_ATIME, s->atime);
	table_time(t, SHM_DTIME, s->dtime);
}

static int remove_segment(int32_t id)
{
	long r = call_shmctl(id, IPC_RMID, NULL);

	return r < 0 ? (int)r : 0;
}

const struct family_view family_views[] = {
	{FAMILY_MSG, "msg", "queues", msg_columns, sizeof(msg_columns) / sizeof(msg_columns[0]),
	 msg_fill, remove_queue},
	{FAMILY_SEM, "sem", "semaphores", sem_columns, sizeof(sem_columns) / sizeof(sem_columns[0]),
	 sem_fill, remove_set},
	{FAMILY_SHM, "shm", "segments", shm_columns, sizeof(shm_columns) / sizeof(shm_columns[0]),
	 shm_fill, remove_segment},
};
const unsigned family_view_count = sizeof(family_views) / sizeof(family_views[0]);
