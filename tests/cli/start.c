// SPDX-License-Identifier: MIT
/*
 * A program that is preloaded without the launcher: its first call starts usysvd, which it must not
 * notice. Says what it noticed, and fails then.
 *
 *   start plain        with a handler for SIGCHLD, and a child of its own
 *   start subreaper    as the one who inherits orphans
 *   start threads      while another thread waits for any child
 *   start second       in a thread that goes on when the first has ended
 *   start forks-away   after unshare(CLONE_NEWPID), when whatever child comes first is the process
 *                      1 of another namespace; status 77: not permitted
 */
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/prctl.h>
#include <sys/sem.h>
#include <sys/wait.h>
#include <unistd.h>

static int failures;
static volatile sig_atomic_t child_signals; /* set by the handler */

static void expect(bool ok, const char *what)
{
	if (!ok) {
		printf("FAILED: %s\n", what);
		failures++;
	}
}

static void on_child(int signal)
{
	(void)signal;
	child_signals++;
}

static void on_fork(void)
{
	printf("FAILED: a handler of pthread_atfork ran\n");
	failures++;
}

static int open_descriptors(void)
{
	DIR *dir = opendir("/proc/thread-self/fd");
	int n = 0;

	while (dir && readdir(dir))
		n++;
	if (dir)
		closedir(dir);
	return n;
}

static void *waits(void *arg)
{
	int *result = arg;

	/* There is one child, which lives until it is told to end. */
	*result = (int)waitpid(-1, NULL, 0);
	return NULL;
}

static int fork_away(void)
{
	int id, status = -1;
	pid_t first;

	if (unshare(CLONE_NEWPID) < 0)
		return 77;
	id = semget(IPC_PRIVATE, 1, 0600);
	expect(id >= 0, "semget");
	first = fork();
	if (first == 0) {
		struct sembuf up = {0, 1, 0};
		pid_t second;

		expect(getpid() == 1, "the first child is not the first");
		expect(semop(id, &up, 1) == 0, "semop of the first child");
		second = fork();
		if (second == 0) {
			expect(semop(id, &up, 1) == 0, "semop of the second child");
			_exit(failures > 0);
		}
		expect(second > 0 && waitpid(second, &status, 0) == second && status == 0,
		       "the second child");
		_exit(failures > 0);
	}
	expect(first > 0, "fork");
	expect(waitpid(first, &status, 0) == first && status == 0, "the first child");
	expect(semctl(id, 0, GETVAL) == 2, "the value");
	semctl(id, 0, IPC_RMID);
	return failures > 0;
}

static int use(const char *mode)
{
	bool subreaper = strcmp(mode, "subreaper") == 0, threads = strcmp(mode, "threads") == 0;
	struct sigaction action;
	sigset_t before, after;
	char cwd_before[4096], cwd_after[4096];
	pthread_t waiter;
	int ends[2], descriptors, waited = 0, is_subreaper = 0;
	pid_t child;

	memset(&action, 0, sizeof(action));
	action.sa_handler = on_child;
	action.sa_flags = SA_RESTART;
	sigaction(SIGCHLD, &action, NULL);
	if (subreaper)
		prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	if (pipe(ends) < 0)
		return 2;
	child = fork();
	if (child == 0) {
		char c;

		close(ends[1]);
		_exit(read(ends[0], &c, 1) < 0);
	}
	close(ends[0]);
	if (threads && pthread_create(&waiter, NULL, waits, &waited) != 0)
		return 2;
	pthread_atfork(on_fork, on_fork, on_fork);
	descriptors = open_descriptors();
	sigprocmask(SIG_SETMASK, NULL, &before);
	if (!getcwd(cwd_before, sizeof(cwd_before)))
		return 2;

	errno = 0;
	int id = semget(IPC_PRIVATE, 1, 0600);
	expect(id >= 0, "semget");
	expect(errno == 0, "errno has changed");

	/* Until usysvd has surely started and settled: the test's script saw it in office. */
	char line[16];
	printf("made\n");
	fflush(stdout);
	expect(fgets(line, sizeof(line), stdin) != NULL, "the script has nothing to say");

	sigprocmask(SIG_SETMASK, NULL, &after);
	expect(memcmp(&before, &after, sizeof(long)) == 0, "the signal mask has changed");
	expect(open_descriptors() == descriptors, "descriptors are open");
	expect(getcwd(cwd_after, sizeof(cwd_after)) && strcmp(cwd_before, cwd_after) == 0,
	       "the working directory has changed");
	expect(child_signals == 0, "SIGCHLD came");
	prctl(PR_GET_CHILD_SUBREAPER, &is_subreaper, 0, 0, 0);
	expect(is_subreaper == subreaper, "it is a subreaper no more");
	if (!threads)
		expect(waitpid(-1, NULL, WNOHANG | __WALL) == 0, "there is another child");
	close(ends[1]);
	if (threads)
		pthread_join(waiter, NULL);
	else
		waited = (int)waitpid(-1, NULL, __WALL);
	expect(waited == child, "another child was waited for");
	expect(waitpid(-1, NULL, WNOHANG | __WALL) < 0 && errno == ECHILD, "a child is left");
	semctl(id, 0, IPC_RMID);
	return failures > 0;
}

static void *go_on(void *first)
{
	exit(pthread_join(*(pthread_t *)first, NULL) == 0 ? use("plain") : 2);
}

int main(int argc, char **argv)
{
	static pthread_t first;
	const char *mode = argc > 1 ? argv[1] : "plain";
	pthread_t second;

	if (strcmp(mode, "forks-away") == 0)
		return fork_away();
	if (strcmp(mode, "second") != 0)
		return use(mode);
	first = pthread_self();
	if (pthread_create(&second, NULL, go_on, &first) != 0)
		return 2;
	pthread_exit(NULL);
}
