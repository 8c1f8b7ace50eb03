// SPDX-License-Identifier: MIT
/*
 * Asked when the region cannot be found at its path: was it removed (`rm -r`), or does this process
 * only see another tree (chroot)? The descriptor is closed long since; /proc/self/maps shows behind
 * the path of a mapped file whether it still has a name.
 */
#include "client/gone.h"

#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/sys.h"

#define DELETED " (deleted)"

struct reader {
	long fd;
	long length, at;
	char buffer[2048];
};

static int next_char(struct reader *r)
{
	if (r->at == r->length) {
		r->at = 0;
		r->length = sys_call(SYS_read, r->fd, (long)r->buffer, sizeof(r->buffer), 0, 0, 0);
		if (r->length <= 0) {
			r->length = 0;
			return -1;
		}
	}
	return (unsigned char)r->buffer[r->at++];
}

static int hex_digit(int c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Reads one line: where its mapping starts, and whether it ends in DELETED. False: no more. */
static bool next_line(struct reader *r, uint64_t *ret_start, bool *ret_deleted)
{
	size_t matched = 0;
	bool in_start = true;
	int c;

	*ret_start = 0;
	while ((c = next_char(r)) >= 0 && c != '\n') {
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
	struct reader r = {.fd = sys_call(SYS_openat, AT_FDCWD, (long)"/proc/self/maps",
					  O_RDONLY | O_CLOEXEC, 0, 0, 0)};
	bool deleted = false;
	uint64_t start;

	if (r.fd < 0)
		return false;
	while (next_line(&r, &start, &deleted) && start < (uintptr_t)address)
		;
	sys_call(SYS_close, r.fd, 0, 0, 0, 0, 0);
	return start == (uintptr_t)address && deleted;
}
