// SPDX-License-Identifier: MIT
/*
 * A program that locks its memory and goes on with System V IPC. It says what came of it, which is
 * to be the same on the kernel's and on usysv's. It knows nothing of usysv.
 *
 *   memlock HOW KIB WHEN
 *
 * HOW: current, future, both, onfault (both, when touched); cleared (future, then current);
 * syscall, dlsym (both, by these ways).
 * KIB: so much may be locked, without privilege; 0: any amount, as root. WHEN: first (before the
 * first call), between.
 */
#include <dlfcn.h>
#include <errno.h>
#include <linux/capability.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BYTES (1u << 20)
#define PAGE  4096u

static void say(const char *what, long result)
{
	if (result == -1)
		printf("%s: %s\n", what, strerror(errno));
	else
		printf("%s: done\n", what);
}

/* How much of a mapping is there: all, none or some of it. */
static void say_resident(const char *what, void *start)
{
	static unsigned char there[BYTES / PAGE];
	unsigned pages = 0;

	if (start == MAP_FAILED || mincore(start, BYTES, there) < 0) {
		say(what, -1);
		return;
	}
	for (unsigned i = 0; i < BYTES / PAGE; i++)
		pages += there[i] & 1;
	printf("%s: %s\n", what, pages == 0 ? "none" : pages == BYTES / PAGE ? "all" : "some");
}

static void *map(void)
{
	return mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void use(void)
{
	struct sembuf up = {0, 1, SEM_UNDO}, down = {0, -1, 0};
	struct {
		long type;
		char text[4000];
	} m = {1, "text"};
	int set = semget(IPC_PRIVATE, 2, 0600), queue = msgget(IPC_PRIVATE, 0600), i;

	say("semop", semop(set, &up, 1));
	say("semop", semop(set, &down, 1));
	for (i = 0; i < 4; i++)
		say("msgsnd", msgsnd(queue, &m, sizeof(m.text), 0));
	say("msgrcv", msgrcv(queue, &m, sizeof(m.text), 0, 0));
	say("semctl", semctl(set, 0, IPC_RMID));
	say("msgctl", msgctl(queue, IPC_RMID, NULL));
}

static void *attach(void)
{
	int segment = shmget(IPC_PRIVATE, BYTES, 0600);
	void *at = shmat(segment, NULL, 0);

	say("shmctl", shmctl(segment, IPC_RMID, NULL));
	return at;
}

static void limit(unsigned long kib)
{
	struct rlimit most = {kib << 10, kib << 10};
	struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct data[2];

	if (kib == 0)
		return;
	if (setrlimit(RLIMIT_MEMLOCK, &most) < 0 || syscall(SYS_capget, &header, data) < 0)
		exit(2);
	data[0].effective &= ~(1u << CAP_IPC_LOCK);
	if (syscall(SYS_capset, &header, data) < 0)
		exit(2);
}

static int lock(const char *how)
{
	int both = MCL_CURRENT | MCL_FUTURE;
	int (*found)(int);

	if (strcmp(how, "current") == 0)
		return mlockall(MCL_CURRENT);
	if (strcmp(how, "future") == 0)
		return mlockall(MCL_FUTURE);
	if (strcmp(how, "onfault") == 0)
		return mlockall(both | MCL_ONFAULT);
	if (strcmp(how, "cleared") == 0)
		return mlockall(MCL_FUTURE) < 0 ? -1 : mlockall(MCL_CURRENT);
	if (strcmp(how, "syscall") == 0)
		return (int)syscall(SYS_mlockall, both);
	if (strcmp(how, "dlsym") == 0) {
		*(void **)&found = dlsym(dlopen("libc.so.6", RTLD_LAZY), "mlockall");
		return found ? found(both) : -1;
	}
	return mlockall(both);
}

int main(int argc, char **argv)
{
	void *before = map(), *segment = NULL;
	bool first = argc > 3 && strcmp(argv[3], "first") == 0;

	if (argc != 4)
		return 2;
	limit(strtoul(argv[2], NULL, 0));
	if (!first) {
		use();
		segment = attach();
	}
	say("mlockall", lock(argv[1]));
	say_resident("mapped before", before);
	if (segment)
		say_resident("attached before", segment);
	say_resident("mapped after", map());
	use();
	say_resident("attached after", attach());
	use();
	errno = 0;
	say("mlockall", mlockall(MCL_CURRENT | MCL_FUTURE | 64));
	say("munlockall", munlockall());
	use();
	return 0;
}
