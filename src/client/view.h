/* SPDX-License-Identifier: MIT */
/*
 * The namespace as files of /proc: /proc/sysvipc/{msg,sem,shm} and the limits and next ids in
 * /proc/sys/kernel, in the kernel's formats. What can be read and written here is text; descriptors
 * are the preload's business (preload/procview.c).
 *
 * A view creates no namespace: where there is none, it shows what a new one would. All functions
 * leave errno alone and are async-signal-safe. None is called inside a section.
 */
#ifndef USYSV_CLIENT_VIEW_H
#define USYSV_CLIENT_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define VIEW_NONE (-1)

/* What a write of a limit can hold, as in the kernel. */
#define VIEW_WRITE_MAX 4095

/* How many views there are, and the absolute path of each. */
extern const int view_count;
const char *view_path(int view);

/* Type, permissions and owner as stat(2) shows them. */
void view_stat(int view, mode_t *ret_mode, uid_t *ret_uid, gid_t *ret_gid);

/* access(2), for the effective ids: 0, or -EACCES. mode: R_OK | W_OK | X_OK. */
int view_access(int view, int mode);

/* Hands the present text over in pieces, until put() returns less than 0, which is returned then.
 */
int view_text(int view, int (*put)(void *context, const char *text, size_t bytes), void *context);

/*
 * Takes what was written to the file at its beginning: the namespace (created if need be) has the
 * new values when this returns. How much of it was looked at, or what the kernel says: -EINVAL,
 * -ERANGE, -EPERM; -EIO for what is no limit; or why there is no namespace. As with the kernel,
 * values before a bad one count.
 */
int view_write(int view, const char *text, size_t bytes);

#endif
