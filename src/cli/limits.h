/* SPDX-License-Identifier: MIT */
/* The limits of a namespace by name, as `usysv run --limit` sets them. */
#ifndef USYSV_CLI_LIMITS_H
#define USYSV_CLI_LIMITS_H

#include "core/layout.h"

#define LIMITS_MAX 10

struct limit_change {
	unsigned which;
	uint64_t value;
};

/* Reads NAME=VALUE. Null, or what is wrong with it. */
const char *limit_parse(const char *text, struct limit_change *ret);

/* Changes it for everybody in the namespace, at once. */
void limit_apply(struct limits_shm *limits, const struct limit_change *change);

/* The names, separated by ", ". */
const char *limit_names(void);

#endif
