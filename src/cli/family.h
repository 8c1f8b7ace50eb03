/* SPDX-License-Identifier: MIT */
/* What the commands know of each family of objects: one entry of a table. */
#ifndef USYSV_CLI_FAMILY_H
#define USYSV_CLI_FAMILY_H

#include "cli/table.h"
#include "core/layout.h"

/* Columns that every family has, first in its list and in this order. */
enum object_column {
	OBJECT_KEY,
	OBJECT_ID,
	OBJECT_PERMS,
	OBJECT_OWNER,
	OBJECT_CUID,
	OBJECT_CUSER,
	OBJECT_CGID,
	OBJECT_CGROUP,
	OBJECT_UID,
	OBJECT_USER,
	OBJECT_GID,
	OBJECT_GROUP,
	OBJECT_CTIME,
	OBJECT_COLUMNS
};

struct family_view {
	enum family family;
	const char *name;  /* as in `usysv rm sem:1` */
	const char *title; /* of the list, and in JSON */
	const struct column *columns;
	unsigned column_count;
	/* Fills the columns after OBJECT_COLUMNS. */
	void (*fill)(struct table *t, const unsigned char *base, const struct object_shm *o);
	/* Removes an object as a program does; 0 or -errno. The caller has a session. */
	int (*remove)(int32_t id);
};

extern const struct family_view family_views[];
extern const unsigned family_view_count;

/* Adds a row for an object; false: no memory. */
bool family_row(const struct family_view *view, struct table *t, const unsigned char *base,
		const struct object_shm *o);

/* The object in this slot, if one is there now. */
const struct object_shm *family_object(const unsigned char *base, enum family family, uint32_t ix);

#endif
