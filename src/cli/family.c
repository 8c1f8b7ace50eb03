// SPDX-License-Identifier: MIT
/* The families of objects as the commands show and remove them. */
#include "cli/family.h"

#include <grp.h>
#include <pwd.h>
#include <sys/ipc.h>

#include "client/calls.h"
#include "core/region.h"

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

const struct family_view family_views[] = {
	{FAMILY_SEM, "sem", "semaphores", sem_columns, sizeof(sem_columns) / sizeof(sem_columns[0]),
	 sem_fill, sem_remove},
};
const unsigned family_view_count = sizeof(family_views) / sizeof(family_views[0]);
