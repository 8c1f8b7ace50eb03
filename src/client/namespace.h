/* SPDX-License-Identifier: MIT */
/*
 * Namespaces as directories and files: where they are, whether they can be trusted, making,
 * opening, listing and removing them. <base>/usysv-<uid>/<name>/region, base = $USYSV_DIR, else
 * /dev/shm, else $XDG_RUNTIME_DIR, else /tmp. The directories are mode 0700 and owned by the user;
 * anything else in their place (a symbolic link, another owner, writable by others) is refused.
 * Only tmpfs; an explicit USYSV_DIR elsewhere works with a warning.
 *
 * Async-signal-safe (raw calls, no stdio, no malloc), except namespace_list().
 */
#ifndef USYSV_CLIENT_NAMESPACE_H
#define USYSV_CLIENT_NAMESPACE_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#define NAMESPACE_NAME_MAX 64

struct namespace_place {
	char name[NAMESPACE_NAME_MAX + 1];
	char root[PATH_MAX];   /* <base>/usysv-<uid> */
	char dir[PATH_MAX];    /* <root>/<name> */
	char region[PATH_MAX]; /* <dir>/region */
};

/*
 * Where the namespace `name` is (null: $USYSV_NAMESPACE, else "default"). When name is null and
 * USYSV_REGION=NAME:/absolute/path of the same NAME is in the environment (passed on by the
 * launcher and across exec), that path is used as it is: after setuid + exec a process must not
 * silently open another user's namespace. 0; -EINVAL for a bad name; -ENAMETOOLONG: then
 * *ret_why is a clause for a message, ret->name the name, and ret->region the path that does not
 * do, if it is a path; both are cut where they are too long.
 */
int namespace_locate(const char *name, struct namespace_place *ret, const char **ret_why);

/* The same for an absolute path <base>/usysv-<uid>/<name>/region. */
int namespace_locate_path(const char *region, struct namespace_place *ret, const char **ret_why);

/* Did the user (or the launcher) choose the base directory by name? */
bool namespace_base_chosen(const struct namespace_place *place);

#define NAMESPACE_CREATE  1u /* make it if it is not there */
#define NAMESPACE_AUTO    2u /* made on a program's behalf (REGION_AUTO) */
#define NAMESPACE_PRIVATE 4u /* REGION_PRIVATE; must not exist yet */
#define NAMESPACE_LOOK    8u /* only to look at: opened read-only, a removal under way goes on */

/*
 * Opens the region file read-write, making directory and file as the flags say (built under a
 * temporary name and linked into place), and checks owner, mode, file system, size, magic, format,
 * protocol. The descriptor is close-on-exec. -ENOENT: not there. Others: as open(2); -EPERM
 * untrustworthy; -EINVAL foreign or truncated; -EPROTO another format; -ENOSPC/-ENOMEM full;
 * -EFBIG RLIMIT_FSIZE. Nothing is left behind on failure. *ret_why as above.
 */
int namespace_open(const struct namespace_place *place, unsigned flags, int *ret_fd,
		   const char **ret_why);

/* Maps the whole region (MAP_NORESERVE, not in core dumps). 0 or -errno. */
int namespace_map(int fd, unsigned char **ret_base, const char **ret_why);

/* Removes the files of a namespace (region last but one, then the directory). 0 or -errno. */
int namespace_unlink(const struct namespace_place *place);

/* Calls back with each namespace name of this user; stops when the callback returns non-zero. */
int namespace_list(int (*each)(const char *name, void *context), void *context);

#endif
