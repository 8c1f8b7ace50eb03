// SPDX-License-Identifier: MIT
/* Mappings by /proc/PID/maps; see the header. */
#include "client/attach_maps.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

#include "base/sys.h"
#include "base/text.h"

/* struct procmap_query of linux/fs.h, which older headers lack. */
struct map_query {
	uint64_t size, flags, address;
	uint64_t start, end, vma_flags, page_bytes, offset, inode;
	uint32_t dev_major, dev_minor;
	uint32_t name_bytes, build_id_bytes;
	uint64_t name, build_id;
};
#define MAP_QUERY          _IOWR('f', 17, struct map_query)
#define MAP_QUERY_OR_NEXT  0x10
#define MAP_QUERY_OF_FILES 0x20

bool attach_maps_only_text;

int attach_maps_open(struct attach_maps *m, pid_t pid)
{
	char path[40], *p = stpcpy(path, "/proc/");

	/* the first thread may have ended */
	p = pid == 0 ? stpcpy(p, "thread-self") : text_put_number(p, (uint64_t)pid);
	stpcpy(p, "/maps");
	m->by_text = attach_maps_only_text;
	m->length = m->at = 0;
	m->fd = sys_call(SYS_openat, AT_FDCWD, (long)path, O_RDONLY | O_CLOEXEC, 0, 0, 0);
	m->error = 0;
	if (m->fd >= 0)
		return 0;
	return m->fd == -ENOENT || m->fd == -ENOTDIR || m->fd == -EACCES || m->fd == -EPERM
		       ? -ENOSYS
		       : (int)m->fd;
}

int attach_maps_close(struct attach_maps *m)
{
	sys_call(SYS_close, m->fd, 0, 0, 0, 0, 0);
	return m->error;
}

/* ---- By text ----------------------------------------------------------------------------- */

static int next_char(struct attach_maps *m)
{
	if (m->at == m->length) {
		long n;

		do
			n = sys_call(SYS_read, m->fd, (long)m->buffer, sizeof(m->buffer), 0, 0, 0);
		while (n == -EINTR);
		if (n < 0 && n != -ESRCH) /* then the process has ended */
			m->error = (int)n;
		if (n <= 0)
			return -1;
		m->length = (uint32_t)n;
		m->at = 0;
	}
	return (unsigned char)m->buffer[m->at++];
}

/* A number up to the next character that is none, which is returned. */
static int read_number(struct attach_maps *m, unsigned base, uint64_t *ret)
{
	int c;

	*ret = 0;
	while ((c = next_char(m)) >= 0) {
		unsigned digit;

		if (c >= '0' && c <= '9')
			digit = (unsigned)c - '0';
		else if (base == 16 && c >= 'a' && c <= 'f')
			digit = (unsigned)c - 'a' + 10;
		else
			break;
		*ret = *ret * base + digit;
	}
	return c;
}

/* START-END PERMS OFFSET MAJOR:MINOR INODE PATH */
static bool read_line(struct attach_maps *m, struct attach_vma *v)
{
	uint64_t dev_major, dev_minor;
	int c = read_number(m, 16, &v->start);

	if (c != '-' || read_number(m, 16, &v->end) != ' ')
		return false;
	while ((c = next_char(m)) >= 0 && c != ' ')
		;
	if (c < 0 || read_number(m, 16, &v->offset) != ' ' ||
	    read_number(m, 16, &dev_major) != ':' || read_number(m, 16, &dev_minor) != ' ')
		return false;
	c = read_number(m, 10, &v->inode);
	while (c >= 0 && c != '\n')
		c = next_char(m);
	v->dev = makedev((unsigned)dev_major, (unsigned)dev_minor);
	return c >= 0;
}

/* ---- Either way -------------------------------------------------------------------------- */

bool attach_maps_next(struct attach_maps *m, uint64_t from, bool any, struct attach_vma *ret)
{
	struct map_query q = {
		.size = sizeof(q),
		.flags = MAP_QUERY_OR_NEXT | (any ? 0 : MAP_QUERY_OF_FILES),
		.address = from,
	};

	if (!m->by_text) {
		long r = sys_call(SYS_ioctl, m->fd, MAP_QUERY, (long)&q, 0, 0, 0);

		if (r == 0) {
			*ret = (struct attach_vma){q.start, q.end, q.offset, q.inode,
						   makedev(q.dev_major, q.dev_minor)};
			return true;
		}
		if (r != -ENOTTY && r != -EINVAL) {
			if (r != -ENOENT && r != -ESRCH) /* none; none, for the process has ended */
				m->error = (int)r;
			return false;
		}
		m->by_text = true;
	}
	while (read_line(m, ret))
		if (ret->end > from && (any || ret->inode))
			return true;
	return false;
}
