/* SPDX-License-Identifier: MIT */
/*
 * Starts usysvd for a namespace, from inside any program, without the program noticing: no
 * SIGCHLD, no child to wait for, no descriptor, no handler of fork. (A thread that waits at
 * this moment for any child with __WALL or __WCLONE may see the process in the middle.)
 */
#ifndef USYSV_CLIENT_REAPER_START_H
#define USYSV_CLIENT_REAPER_START_H

struct namespace_place;

/*
 * Says where usysvd is looked for when /proc does not tell where this code is from: beside this
 * file. Once, before there are other threads; the text stays.
 */
void reaper_start_beside(const char *file);

/*
 * Starts usysvd, which takes the office if it is vacant (else it leaves at once). -ENOENT: usysvd
 * is not found; -EOPNOTSUPP: the caller is process 1 of its pid namespace, whose child every orphan
 * becomes, or has left its pid namespace for its children. Returns before usysvd is in office.
 * Blocks for some milliseconds; holds nothing; leaves errno alone. [signal]
 */
int reaper_start(const struct namespace_place *place);

/* The same for a program that misses a reaper, but not more often than every two seconds a process:
 * -EAGAIN then. [signal] */
int reaper_start_missed(const struct namespace_place *place);

#endif
