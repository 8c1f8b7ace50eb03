// SPDX-License-Identifier: MIT
/* For programs in a namespace that read and write its region themselves: see inside.h. */
#include "fuzz/inside.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/region.h"

_Noreturn static void lacking(const char *what)
{
	fprintf(stderr, "%s: %s\n", program_invocation_short_name, what);
	exit(1);
}

const char *inside_region_path(void)
{
	const char *where = getenv("USYSV_REGION");
	const char *path = where ? strchr(where, ':') : NULL;

	if (!path)
		lacking("not in a namespace of usysv");
	return path + 1;
}

unsigned char *inside_map_region(void)
{
	int fd = open(inside_region_path(), O_RDWR | O_CLOEXEC);
	void *region;

	if (fd < 0)
		lacking("the region cannot be opened");
	region = mmap(NULL, (size_t)REGION_BYTES, PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_NORESERVE, fd, 0);
	close(fd);
	if (region == MAP_FAILED)
		lacking("the region cannot be mapped");
	return region;
}

uint32_t inside_slot_of(const unsigned char *region, pid_t pid)
{
	for (uint32_t i = 0; i < region_proc_count(region); i++) {
		const struct proc_shm *p = region_known_proc(region, i);

		if (p->state == PROC_LIVE && p->pid == (uint32_t)pid && p->first_thread_link)
			return i;
	}
	lacking("a process has no slot");
}

uint32_t inside_thread_of(const unsigned char *region, pid_t pid)
{
	return region_known_proc(region, inside_slot_of(region, pid))->first_thread_link - 1;
}

pid_t inside_start_stopped(void)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		(void)msgget(IPC_PRIVATE, 0600);
		raise(SIGSTOP);
		_exit(0);
	}
	if (waitpid(pid, &status, WUNTRACED) != pid || !WIFSTOPPED(status))
		lacking("nobody is stopped");
	return pid;
}
