// SPDX-License-Identifier: MIT
/* Numbers and files as text; see the header. */
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/sys.h"

char *text_put_number(char *to, uint64_t n)
{
	char digits[20];
	int k = 0;

	do
		digits[k++] = (char)('0' + n % 10);
	while ((n /= 10) != 0);
	while (k > 0)
		*to++ = digits[--k];
	*to = 0;
	return to;
}

/* Not /proc/self: that of a process whose first thread has ended has no descriptors. */
void text_put_descriptor(char to[TEXT_DESCRIPTOR_BYTES], int fd)
{
	text_put_number(stpcpy(to, "/proc/thread-self/fd/"), (uint64_t)fd);
}

static long open_to_read(const char *path)
{
	return sys_call(SYS_openat, AT_FDCWD, (long)path, O_RDONLY | O_CLOEXEC, 0, 0, 0);
}

long text_read(const char *path, char *to, size_t bytes)
{
	long n, fd = open_to_read(path);

	if (fd < 0)
		return fd;
	n = sys_call(SYS_read, fd, (long)to, (long)bytes - 1, 0, 0, 0);
	sys_call(SYS_close, fd, 0, 0, 0, 0, 0);
	if (n >= 0)
		to[n] = 0;
	return n;
}

int text_open(struct text_file *f, const char *path)
{
	f->error = f->at = f->length = 0;
	f->fd = open_to_read(path);
	return f->fd < 0 ? (int)f->fd : 0;
}

void text_close(struct text_file *f)
{
	if (f->fd >= 0)
		sys_call(SYS_close, f->fd, 0, 0, 0, 0, 0);
	f->fd = -1;
}

int text_next(struct text_file *f)
{
	if (f->at == f->length) {
		long n;

		do
			n = sys_call(SYS_read, f->fd, (long)f->buffer, sizeof(f->buffer), 0, 0, 0);
		while (n == -EINTR);
		if (n < 0)
			f->error = n;
		if (n <= 0)
			return -1;
		f->at = 0;
		f->length = n;
	}
	return (unsigned char)f->buffer[f->at++];
}
