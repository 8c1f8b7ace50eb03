/* SPDX-License-Identifier: MIT */
/*
 * Makes a script that shows a difference as small as it can.
 */
#ifndef DIFFERENTIAL_SHRINK_H
#define DIFFERENTIAL_SHRINK_H

#include "session.h"

/* Replaces script and verdict by a smaller script and what it shows. */
void shrink(struct session *session, struct script *script, struct verdict *verdict,
	    int seconds_max, unsigned tries_max);

#endif
