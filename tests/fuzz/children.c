// SPDX-License-Identifier: MIT
/* Children by /proc; see the header. */
#include "fuzz/children.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

unsigned children_each(void (*see)(pid_t pid))
{
	DIR *d = opendir("/proc");
	struct dirent *e;
	unsigned n = 0;

	while (d && (e = readdir(d)) != NULL) {
		char path[300], text[512], *p;
		ssize_t length;
		int fd, parent;

		if (!isdigit((unsigned char)e->d_name[0]))
			continue;
		snprintf(path, sizeof(path), "/proc/%s/stat", e->d_name);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		length = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
		if (fd >= 0)
			close(fd);
		if (length <= 0)
			continue;
		text[length] = 0;
		p = strrchr(text, ')');
		if (!p || sscanf(p + 1, " %*c %d", &parent) != 1 || parent != getpid())
			continue;
		n++;
		see(atoi(e->d_name)); /* NOLINT(cert-err34-c) */
	}
	if (d)
		closedir(d);
	return n;
}
