// SPDX-License-Identifier: MIT
/*
 * A program that uses System V shared memory in huge pages, for huge.sh. It knows nothing of usysv.
 *
 *   huge make N    makes and attaches N private segments, says their ids, ends
 *   huge hold      makes and attaches one, says its id, waits for the end of its standard input
 *   huge storm     says its pid, then makes, attaches and removes segments until it is killed
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/shm.h>
#include <unistd.h>

#ifndef SHM_HUGETLB
#define SHM_HUGETLB 04000
#endif
#define FAILED ((void *)-1)

static int make(char **ret)
{
	int id = shmget(IPC_PRIVATE, 5000, SHM_HUGETLB | 0600);
	char *p = id < 0 ? FAILED : shmat(id, NULL, 0);

	if (p == FAILED) {
		fprintf(stderr, "huge: %s: %s\n", id < 0 ? "shmget" : "shmat", strerror(errno));
		exit(1);
	}
	p[0] = 1;
	*ret = p;
	return id;
}

static int storm(void)
{
	printf("%d\n", (int)getpid());
	fflush(stdout);
	for (;;) {
		char *p;
		int id = make(&p);

		if (shmctl(id, IPC_RMID, NULL) < 0 || shmdt(p) < 0)
			return 1;
	}
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	char *p, c;

	if (strcmp(what, "storm") == 0)
		return storm();
	for (int n = argc > 2 ? atoi(argv[2]) : 1; n > 0; n--)
		printf("%d\n", make(&p));
	fflush(stdout);
	if (strcmp(what, "hold") == 0)
		while (read(STDIN_FILENO, &c, 1) > 0)
			;
	return 0;
}
