/* SPDX-License-Identifier: MIT */
/*
 * The office of the reaper: at most one process of a namespace has it, and is then the one who
 * wakes up to look for the dead. Others may do the same work at any time; the office only spares
 * them the trouble. Its holder is a registered process with PROC_REAPER.
 *
 *   OFFICE_P1  the reaper's office
 *    word      header_shm.reaper_link: thread index + 1, 0 = vacant
 *    states    0 > reaper > 0; dead or former reaper > reaper
 *    writers   any reaper, by CAS from the value that it judged; 0: its holder
 *    order     AR by CAS. Who enters registers and then looks for a reaper, by a read-modify-write
 *              that changes nothing (office_held); a reaper who leaves gives the office up by CAS
 *              and then counts who has registered. The two are ordered at this word: the one that
 *              comes first is seen by the other, registration or vacancy
 *    stale-ok  names a dead thread, or a slot that somebody else uses by now: judged vacant, unless
 *              the new user is a reaper too, who then is in office and finds that out by looking
 *    death     holder anywhere: vacant as soon as the kernel says so
 *    tests     storm/resign, storm/storm
 */
#ifndef USYSV_CLIENT_OFFICE_H
#define USYSV_CLIENT_OFFICE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/ident.h"
#include "core/caller.h"
#include "core/layout.h"

/* Has somebody alive the office? [signal] */
bool office_held(struct caller *c);

/* Takes it for the calling thread of a reaper, if it is vacant. True: it is the caller's. */
bool office_take(struct caller *c);

/* Gives it up, if it is the caller's. */
void office_leave(struct caller *c);

/* The state of a registered process, as far as its numbers mean anything to the caller. [signal] */
enum ident_state office_state_of(const struct proc_shm *p);

/* How the reaper in office sees pids: its ident_view(); 0 when unknown, or the office is vacant. */
uint32_t office_view(const unsigned char *base);

/* Pid of the reaper in office, 0 without one; by the registry and /proc, for who only looks. One
 * that cannot be judged counts. */
uint32_t office_pid(const unsigned char *base);

#endif
