// SPDX-License-Identifier: MIT
/*
 * Messages on standard error, from inside other people's programs: one write of one line, no
 * stdio, no allocation, no lock, errno untouched. A closed pipe must not kill the program
 * (SIGPIPE is taken back), a full one must not stop it (the message is dropped), and a damaged
 * table must not flood it: each kind is said once a process.
 */
#include "client/report.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/sys.h"

#define LINE_BYTES          1024
#define KERNEL_SIGSET_BYTES (_NSIG / 8)

static uint32_t said[REPORT_COUNT];

struct line {
	char text[LINE_BYTES];
	size_t length;
};

static void add_char(struct line *line, char c)
{
	/* Room is kept for the end of the line. */
	if (line->length < sizeof(line->text) - 1)
		line->text[line->length++] = c;
}

static void add_text(struct line *line, const char *s)
{
	for (s = s ? s : "(null)"; *s; s++)
		add_char(line, *s);
}

static void add_number(struct line *line, unsigned value, unsigned base)
{
	char digits[16];
	int n = 0;

	do
		digits[n++] = "0123456789abcdef"[value % base];
	while ((value /= base) != 0);
	while (n > 0)
		add_char(line, digits[--n]);
}

static void add_formatted(struct line *line, const char *format, va_list ap)
{
	for (const char *f = format; *f; f++) {
		int d;

		if (*f != '%') {
			add_char(line, *f);
			continue;
		}
		switch (*++f) {
		case 's':
			add_text(line, va_arg(ap, const char *));
			break;
		case 'd':
			d = va_arg(ap, int);
			if (d < 0)
				add_char(line, '-');
			add_number(line, d < 0 ? 0u - (unsigned)d : (unsigned)d, 10);
			break;
		case 'u':
			add_number(line, va_arg(ap, unsigned), 10);
			break;
		case 'x':
			add_number(line, va_arg(ap, unsigned), 16);
			break;
		case '\0':
			return;
		default:
			add_char(line, *f);
			break;
		}
	}
}

/* Writes to standard error if that can be done at once; SIGPIPE of our making goes no further. */
static void write_line(const struct line *line)
{
	struct pollfd out = {.fd = STDERR_FILENO, .events = POLLOUT};
	struct timespec now = {0, 0};
	uint64_t pipe_bit = 1ull << (SIGPIPE - 1), before = 0, pending = 0;

	if (sys_call(SYS_ppoll, (long)&out, 1, (long)&now, 0, 0, 0) != 1 ||
	    !(out.revents & POLLOUT))
		return;
	sys_call(SYS_rt_sigprocmask, SIG_BLOCK, (long)&pipe_bit, (long)&before, KERNEL_SIGSET_BYTES,
		 0, 0);
	sys_call(SYS_rt_sigpending, (long)&pending, KERNEL_SIGSET_BYTES, 0, 0, 0, 0);
	if (sys_call(SYS_write, STDERR_FILENO, (long)line->text, (long)line->length, 0, 0, 0) ==
		    -EPIPE &&
	    !(pending & pipe_bit))
		sys_call(SYS_rt_sigtimedwait, (long)&pipe_bit, 0, (long)&now, KERNEL_SIGSET_BYTES,
			 0, 0);
	sys_call(SYS_rt_sigprocmask, SIG_SETMASK, (long)&before, 0, KERNEL_SIGSET_BYTES, 0, 0);
}

/*
 *   REPORT_P1  each kind of message once
 *    word      said[kind] (private memory of the process)
 *    states    0 > 1
 *    writers   any thread
 *    order     none needed: AR of the exchange decides who speaks
 *    stale-ok  none
 *    death     private memory: none
 *    progress  wait-free
 *    tests     preload/report
 */
void report(enum report_kind kind, const char *format, ...)
{
	struct line line;
	va_list ap;

	if (exchange(&said[kind], 1u)) /* REPORT_P1/AR */
		return;
	line.length = 0;
	add_text(&line, "usysv: ");
	va_start(ap, format);
	add_formatted(&line, format, ap);
	va_end(ap);
	line.text[line.length++] = '\n';
	write_line(&line);
}

void report_damage(void)
{
	report(REPORT_DAMAGE,
	       "the region of this namespace is damaged; look at it with `usysv check'");
}

static const struct {
	int error;
	const char *text;
} error_texts[] = {
	{EPERM, "not permitted"},
	{ENOENT, "does not exist"},
	{EINTR, "interrupted"},
	{EIO, "input/output error"},
	{EAGAIN, "no resources at the moment"},
	{ENOMEM, "out of memory or address space"},
	{EACCES, "permission denied"},
	{EFAULT, "bad address"},
	{EBUSY, "in use"},
	{EEXIST, "exists already"},
	{ENODEV, "not supported by the file system"},
	{ENOTDIR, "not a directory"},
	{EISDIR, "a directory is in its place"},
	{EINVAL, "invalid"},
	{ENFILE, "too many open files in the system"},
	{EMFILE, "too many open files in this process"},
	{EFBIG, "larger than the file size limit"},
	{ENOSPC, "no space left on the file system"},
	{EROFS, "read-only file system"},
	{EMLINK, "too many links"},
	{ENAMETOOLONG, "name too long"},
	{ENOSYS, "not supported by the kernel"},
	{ELOOP, "a symbolic link is in its place"},
	{EPROTO, "another format"},
	{EOVERFLOW, "value too large"},
	{EOPNOTSUPP, "not supported"},
	{ETIMEDOUT, "timed out"},
	{EDQUOT, "disk quota exceeded"},
	{ENOTRECOVERABLE, "damaged"},
	{EIDRM, "removed"},
	{ENOEXEC, "not a program"},
	{ESRCH, "no such process"},
	{ENXIO, "no such device"},
};

const char *report_errno(int error)
{
	if (error < 0)
		error = -error;
	for (size_t i = 0; i < sizeof(error_texts) / sizeof(error_texts[0]); i++)
		if (error_texts[i].error == error)
			return error_texts[i].text;
	return "unexpected error";
}
