// SPDX-License-Identifier: MIT
/*
 * A program that uses System V semaphores, for the tests of the commands. It knows nothing of
 * usysv.
 *
 *   user hold [KEY]  makes a set (or opens that of the key), says its id, waits for the end of its
 *                    standard input
 *   user sleep ID    says "asleep", takes what is not there, says how that ended
 *   user get KEY     says the id of an existing set, or the error
 *   user limits      says semmsl, semmns, semopm and semmni
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/sem.h>
#include <unistd.h>

union semun_arg {
	int val;
	struct semid_ds *buf;
	unsigned short *array;
	struct seminfo *info;
};

static const char *name_of(int error)
{
	switch (error) {
	case 0:
		return "0";
	case EIDRM:
		return "EIDRM";
	case EINVAL:
		return "EINVAL";
	case ENOENT:
		return "ENOENT";
	default:
		return strerror(error);
	}
}

static int say_error(void)
{
	puts(name_of(errno));
	return 1;
}

static int hold(const char *key)
{
	key_t k = key ? (key_t)strtoul(key, NULL, 0) : IPC_PRIVATE;
	int id = semget(k, 3, 0600 | IPC_CREAT);
	char c;

	if (id < 0)
		return say_error();
	printf("%d\n", id);
	fflush(stdout);
	while (read(STDIN_FILENO, &c, 1) > 0)
		;
	return 0;
}

static int sleep_on(const char *id)
{
	struct sembuf op = {0, -1, 0};
	int r;

	puts("asleep");
	fflush(stdout);
	r = semop(atoi(id), &op, 1);
	puts(name_of(r < 0 ? errno : 0));
	return 0;
}

static int get(const char *key)
{
	int id = semget((key_t)strtoul(key, NULL, 0), 0, 0);

	if (id < 0)
		return say_error();
	printf("%d\n", id);
	return 0;
}

static int limits(void)
{
	struct seminfo info;
	union semun_arg arg = {.info = &info};

	if (semctl(0, 0, IPC_INFO, arg) < 0)
		return say_error();
	printf("%d %d %d %d\n", info.semmsl, info.semmns, info.semopm, info.semmni);
	return 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (strcmp(what, "hold") == 0)
		return hold(argc > 2 ? argv[2] : NULL);
	if (strcmp(what, "sleep") == 0 && argc > 2)
		return sleep_on(argv[2]);
	if (strcmp(what, "get") == 0 && argc > 2)
		return get(argv[2]);
	if (strcmp(what, "limits") == 0)
		return limits();
	fprintf(stderr, "user: hold [KEY] | sleep ID | get KEY | limits\n");
	return 2;
}
