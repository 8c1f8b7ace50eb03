// SPDX-License-Identifier: MIT
/* The families of objects as the commands show and remove them. */
#include "cli/family.h"

#include <grp.h>
#include <pwd.h>
#include <sys/ipc.h>

#include "client/calls.h"
#include "core/region.h"
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

/* ---- Semaphore sets ------------------------------------------------------------------------ */

enum { SEM_NSEMS = OBJECT_COLUMNS, SEM_OTIME };

static const struct column sem_columns[] = {
	COMMON_COLUMNS,
	[SEM_NSEMS] = {"NSEMS", "number of semaphores", COLUMN_NUMBER, true},
	[SEM_OTIME] = {"OTIME", "time of the last operation", COLUMN_TIME, true},
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

	table_number(t, SEM_NSEMS, set->nsems);
	table_time(t, SEM_OTIME, sem_otime(base, set));
}

static int sem_remove(int32_t id)
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
	MSG_RTIME
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
};

static void msg_fill(struct table *t, const unsigned char *base, const struct object_shm *o)
{
	const struct queue_shm *q = (const void *)o;

	(void)base;
	table_number(t, MSG_BYTES, (int64_t)q->bytes);
	table_number(t, MSG_MESSAGES, q->count);
	table_number(t, MSG_QBYTES, (int64_t)q->qbytes);
	table_number(t, MSG_LSPID, q->lspid);
	table_number(t, MSG_LRPID, q->lrpid);
	table_time(t, MSG_STIME, q->stime);
	table_time(t, MSG_RTIME, q->rtime);
}

static int msg_remove(int32_t id)
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
	SHM_DTIME
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
};

/* By the records alone: looking into the processes is for shmctl(2). */
static uint64_t shm_attached(const unsigned char *base, const struct object_shm *o, uint32_t ix)
{
	uint32_t procs = region_proc_count(base);
	uint64_t n = 0;

	for (uint32_t p = 0; p < procs; p++)
		n += shm_count_records(base, p, ix, o->gen);
	return n;
}

static void shm_fill(struct table *t, const unsigned char *base, const struct object_shm *o)
{
	const struct segment_shm *s = (const void *)o;
	uint32_t ix = (load_acquire(&o->live) - 1) & (OBJECT_CAPACITY - 1);

	table_number(t, SHM_BYTES, (int64_t)s->bytes);
	table_number(t, SHM_NATTCH, (int64_t)shm_attached(base, o, ix));
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

static int shm_remove(int32_t id)
{
	long r = call_shmctl(id, IPC_RMID, NULL);

	return r < 0 ? (int)r : 0;
}

const struct family_view family_views[] = {
	{FAMILY_MSG, "msg", "queues", msg_columns, sizeof(msg_columns) / sizeof(msg_columns[0]),
	 msg_fill, msg_remove},
	{FAMILY_SEM, "sem", "semaphores", sem_columns, sizeof(sem_columns) / sizeof(sem_columns[0]),
	 sem_fill, sem_remove},
	{FAMILY_SHM, "shm", "segments", shm_columns, sizeof(shm_columns) / sizeof(shm_columns[0]),
	 shm_fill, shm_remove},
};
const unsigned family_view_count = sizeof(family_views) / sizeof(family_views[0]);
