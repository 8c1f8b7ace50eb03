// SPDX-License-Identifier: MIT
/* Who was started for a namespace; see the header. */
#include "reaper/kin.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Does the file hold this string, with its terminating byte, at the start of an entry? */
static bool file_has(const char *path, const char *wanted)
{
	size_t length = strlen(wanted) + 1, have = 0;
	bool at_start = true, found = false;
	char text[8192 + PATH_MAX];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return false;
	while (!found && (n = read(fd, text + have, sizeof(text) - have)) > 0) {
		char *entry = text, *end = text + have + n;

		while (entry < end) {
			char *stop = memchr(entry, 0, (size_t)(end - entry));

			if (!stop)
				break;
			if (at_start && (size_t)(stop - entry) + 1 == length &&
			    memcmp(entry, wanted, length) == 0)
				found = true;
			at_start = true;
			entry = stop + 1;
		}
		have = (size_t)(end - entry);
		if (have == sizeof(text)) { /* an entry longer than any we look for */
			have = 0;
			at_start = false;
		}
		memmove(text, entry, have);
	}
	close(fd);
	return found;
}

bool kin_exist(const struct namespace_place *place)
{
	char wanted[sizeof("USYSV_REGION=:") + NAMESPACE_NAME_MAX + PATH_MAX], path[64];
	DIR *proc = opendir("/proc");
	struct dirent *e;
	bool found = false;

	if (!proc)
		return false;
	snprintf(wanted, sizeof(wanted), "USYSV_REGION=%s:%s", place->name, place->region);
	while (!found && (e = readdir(proc))) {
		long pid = strtol(e->d_name, NULL, 10);

		if (pid <= 0 || pid == getpid())
			continue;
		snprintf(path, sizeof(path), "/proc/%ld/environ", pid);
		found = file_has(path, wanted);
	}
	closedir(proc);
	return found;
}
