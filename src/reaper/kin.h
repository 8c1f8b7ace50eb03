/* SPDX-License-Identifier: MIT */
/*
 * Programs that belong to a namespace although they have not made a call yet: a daemon whose parent
 * has ended, a program between fork and exec. Their environment names the region; /proc shows it at
 * any moment, also while the next image is being loaded.
 */
#ifndef USYSV_REAPER_KIN_H
#define USYSV_REAPER_KIN_H

#include <stdbool.h>

#include "client/namespace.h"

/* Is there a process, other than this one, that was started for the namespace? What cannot be
 * looked at (no /proc, another user's) does not count. */
bool kin_exist(const struct namespace_place *place);

#endif
