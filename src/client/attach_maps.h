/* SPDX-License-Identifier: MIT */
/*
 * What a process has mapped of files, asked of /proc/PID/maps: the PROCMAP_QUERY call where the
 * kernel has it (Linux 6.11), else by reading the text. Async-signal-safe; leaves errno alone.
 */
#ifndef USYSV_CLIENT_ATTACH_MAPS_H
#define USYSV_CLIENT_ATTACH_MAPS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct attach_vma {
	uint64_t start, end;
	uint64_t offset, inode;
	dev_t dev;
};

struct attach_maps {
	long fd;
	bool by_text;
	int error; /* -errno of what failed first; 0: nothing, so far */
	uint32_t length, at;
	char buffer[512];
};

/* pid: also that of a thread; 0: this process. 0 or -errno: -ENOSYS where /proc does not show it at
 * all, -EMFILE and others for now. */
int attach_maps_open(struct attach_maps *m, pid_t pid);

/* 0, or -errno when it is not known whether what was found is all. */
__attribute__((warn_unused_result)) int attach_maps_close(struct attach_maps *m);

/*
 * The first mapping that reaches beyond `from` (any: also of no file). Addresses must be asked for
 * in rising order. False: there is none, or it is not known, which attach_maps_close() says
 * (-EBADF: another thread has closed the descriptor), for spare_run() to try again.
 */
bool attach_maps_next(struct attach_maps *m, uint64_t from, bool any, struct attach_vma *ret);

/* For tests: read the text although the call is there. */
extern bool attach_maps_only_text;

#endif
