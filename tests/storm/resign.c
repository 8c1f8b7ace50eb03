// SPDX-License-Identifier: MIT
/*
 * A reaper that leaves because nobody is there, while somebody enters who has just seen it in
 * office: it stays, for no other has been started.
 *
 *   resign PRELOAD
 */
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/sem.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "client/namespace.h"
#include "client/office.h"
#include "client/retire.h"
#include "reaper/loop.h"

#define DEADLINE_S 60

static char base_dir[PATH_MAX];
static struct reaper reaper;
static pid_t user;

static void clean_up(void)
{
	if (user > 0) {
		kill(user, SIGKILL);
		waitpid(user, NULL, 0);
	}
	if (reaper.base)
		(void)reaper_retire(&reaper, RETIRE_FORCE); /* else the directory is left */
	rmdir(base_dir);
}

static void expect(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "resign: not so: %s\n", what);
	clean_up();
	exit(1);
}

static void start_user(const char *preload)
{
	time_t end = time(NULL) + DEADLINE_S;

	user = fork();
	if (user == 0) {
		setenv("LD_PRELOAD", preload, 1);
		execl("/proc/self/exe", "resign", "--user", (char *)NULL);
		_exit(126);
	}
	while (retire_users(reaper.base) == 0 && time(NULL) < end)
		usleep(1000);
	expect(retire_users(reaper.base) > 0, "a user enters");
}

int main(int argc, char **argv)
{
	static struct namespace_place place;
	const char *why = "";
	int fd = -1;

	if (argc == 2 && strcmp(argv[1], "--user") == 0) {
		if (semget(IPC_PRIVATE, 1, 0600) < 0)
			return 1;
		alarm(2 * DEADLINE_S); /* for the case that nobody ends it */
		for (;;)
			pause();
	}
	if (argc != 2) {
		fprintf(stderr, "usage: resign PRELOAD\n");
		return 2;
	}
	snprintf(base_dir, sizeof(base_dir), "%s/usysv-resign-XXXXXX",
		 access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
	if (!mkdtemp(base_dir))
		return 2;
	setenv("USYSV_DIR", base_dir, 1);
	setenv("USYSV_NAMESPACE", "resign", 1);
	unsetenv("USYSV_REGION");
	unsetenv("LD_PRELOAD");
	expect(namespace_locate(NULL, &place, &why) == 0 &&
		       namespace_open(&place, NAMESPACE_CREATE, &fd, &why) == 0,
	       "there is a namespace");
	unsigned char *base;
	expect(namespace_map(fd, &base, &why) == 0 && reaper_begin(&reaper, &place, fd, base) == 0,
	       "there is a reaper");
	expect(reaper.in_office && office_pid(base) == (uint32_t)getpid(), "it is in office");
	expect(reaper_resign(&reaper), "it resigns while nobody is there");
	expect(office_pid(base) == 0, "the office is vacant");
	reaper_look(&reaper);
	expect(reaper.in_office, "it is in office again");
	start_user(argv[1]);
	expect(!reaper_resign(&reaper), "it stays when somebody has entered");
	expect(office_pid(base) == (uint32_t)getpid(), "it is in office still");
	clean_up();
	return 0;
}
