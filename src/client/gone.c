// SPDX-License-Identifier: MIT
/*
 * Asked when the region cannot be found at its path: was it removed (`rm -r`), or does this process
 * only see another tree (chroot)? The descriptor is closed long since; /proc/thread-self/maps shows
 * behind the path of a mapped file whether it still has a name.
 */
#include "client/gone.h"

#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

#define DELETED " (deleted)"

static int hex_digit(int c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Reads one line: where its mapping starts, and whether it ends in DELETED. False: no more. */
static bool next_line(struct text_file *f, uint64_t *ret_start, bool *ret_deleted)
{
	size_t matched = 0;
	bool in_start = true;
	int c;

	*ret_start = 0;
	while ((c = text_next(f)) >= 0 && c != '\n') {
		if (in_start && hex_digit(c) >= 0)
			*ret_start = *ret_start << 4 | (uint64_t)hex_digit(c);
		else
			in_start = false;
		if (matched < sizeof(DELETED) - 1 && c == DELETED[matched])
			matched++;
		else
			matched = c == DELETED[0];
	}
	*ret_deleted = matched == sizeof(DELETED) - 1;
	return c >= 0;
}

bool gone_mapped_file(const unsigned char *address)
{
	struct text_file f;
	bool deleted = false;
	uint64_t start;

	if (text_open(&f, "/proc/thread-self/maps") < 0)
		return false;
	while (next_line(&f, &start, &deleted) && start < (uintptr_t)address)
		;
	text_close(&f);
	return start == (uintptr_t)address && deleted;
}
