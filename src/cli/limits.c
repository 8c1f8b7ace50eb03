// SPDX-License-Identifier: MIT
/* Limits by name. Bounds are those of the kernel's files in /proc/sys/kernel. */
#include "cli/limits.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/atomic.h"

#define IDS_MAX OBJECT_CAPACITY

static const struct {
	const char *name;
	size_t offset;
	uint64_t most;
} known[LIMITS_MAX] = {
#define LIMIT(name, most)                                                                          \
	{                                                                                          \
#name, offsetof(struct limits_shm, name), most                                     \
	}
	LIMIT(semmsl, INT_MAX), LIMIT(semmns, INT_MAX),   LIMIT(semopm, INT_MAX),
	LIMIT(semmni, IDS_MAX), LIMIT(msgmax, INT_MAX),   LIMIT(msgmnb, INT_MAX),
	LIMIT(msgmni, IDS_MAX), LIMIT(shmmax, ULONG_MAX), LIMIT(shmall, ULONG_MAX),
	LIMIT(shmmni, IDS_MAX),
#undef LIMIT
};

const char *limit_names(void)
{
	return "semmsl, semmns, semopm, semmni, msgmax, msgmnb, msgmni, shmmax, shmall, shmmni";
}

const char *limit_parse(const char *text, struct limit_change *ret)
{
	const char *equals = strchr(text, '=');
	unsigned which;
	char *end;

	if (!equals)
		return "expected NAME=VALUE";
	for (which = 0; which < LIMITS_MAX; which++)
		if (strlen(known[which].name) == (size_t)(equals - text) &&
		    strncmp(known[which].name, text, (size_t)(equals - text)) == 0)
			break;
	if (which == LIMITS_MAX)
		return "there is no such limit";
	if (!isdigit((unsigned char)equals[1]))
		return "the value is not a number";
	errno = 0;
	unsigned long long value = strtoull(equals + 1, &end, 0);
	if (*end)
		return "the value is not a number";
	if (errno == ERANGE || value > known[which].most)
		return "the value is too large";
	ret->which = which;
	ret->value = value;
	return NULL;
}

void limit_apply(struct limits_shm *limits, const struct limit_change *change)
{
	uint64_t *word =
		(uint64_t *)(void *)((unsigned char *)limits + known[change->which].offset);

	store_release(word, change->value);
}
