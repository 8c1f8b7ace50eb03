// SPDX-License-Identifier: MIT
/*
 * The region's file is cut off right before each system call (each EVERY-th) that a program makes
 * once it has the region mapped: of a program on usysv, which goes through all families, and of
 * usysvd; and by a vfork child that was the first of its program to make a call. None may die of a
 * signal, or take long; calls work or fail.
 *
 *	cut USYSVD PRELOAD EVERY
 */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/layout.h"
#include "fuzz/children.h"

#define LIMIT_MS   30000
#define CALLS_MOST 2000

static const char *usysvd, *preload;
static char base[] = "/dev/shm/usysv-cut-XXXXXX";
static char directory[64], region[80];
static unsigned cuts, bad;

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000ll + t.tv_nsec / 1000000;
}

/* ---- The program on usysv ------------------------------------------------------------------- */

static void use(void)
{
	struct sembuf up = {0, 1, SEM_UNDO};
	struct {
		long type;
		char text[8];
	} m = {1, "text"};
	int set = semget(0x51, 1, IPC_CREAT | 0600), queue = msgget(0x51, IPC_CREAT | 0600);
	int segment = shmget(0x51, 4096, IPC_CREAT | 0600);
	void *at;

	(void)semop(set, &up, 1);
	(void)msgsnd(queue, &m, sizeof(m.text), IPC_NOWAIT);
	(void)msgrcv(queue, &m, sizeof(m.text), 0, IPC_NOWAIT);
	at = shmat(segment, NULL, 0);
	if (at != (void *)-1) /* NOLINT(performance-no-int-to-ptr) */
		(void)shmdt(at);
	(void)semctl(set, 0, IPC_RMID);
	(void)msgctl(queue, IPC_RMID, NULL);
	(void)shmctl(segment, IPC_RMID, NULL);
}

/* vfork() returns twice into the same frame, so it has one of its own. */
static __attribute__((noinline)) pid_t in_vforked(void)
{
	pid_t pid = vfork(); /* NOLINT(clang-analyzer-security.insecureAPI.vfork) */

	if (pid == 0) {
		(void)semget(IPC_PRIVATE, 1, 0600);
		if (truncate(getenv("CUT_REGION"), 0) < 0)
			_exit(4);
		use();
		_exit(0);
	}
	return pid;
}

static int be_user(const char *how)
{
	int status;

	if (strcmp(how, "stay") == 0) {
		(void)semget(IPC_PRIVATE, 1, 0600);
		raise(SIGSTOP);
		for (;;)
			pause();
	}
	if (strcmp(how, "vfork") == 0) {
		pid_t pid = in_vforked();

		if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
			return 3;
	}
	use();
	return 0;
}

/* ---- Tracing -------------------------------------------------------------------------------- */

static pid_t start(const char *how, bool traced)
{
	pid_t pid = fork();

	if (pid != 0)
		return pid;
	if (traced && ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
		_exit(77);
	if (strcmp(how, "usysvd") == 0) {
		execl(usysvd, "usysvd", "--namespace-path", directory, (char *)NULL);
	} else {
		setenv("LD_PRELOAD", preload, 1);
		execl("/proc/self/exe", "cut", "--user", how, (char *)NULL);
	}
	_exit(126);
}

static void complain(const char *how, unsigned n, const char *what, int status)
{
	bad++;
	printf("%s, cut off before call %u: %s (status %#x)\n", how, n, what, (unsigned)status);
}

/* The stopped process makes a system call; false: it has stopped for another reason, or ended. */
static bool is_at_call(int status)
{
	return WIFSTOPPED(status) && WSTOPSIG(status) == (SIGTRAP | 0x80);
}

/* Lets it go on until it is about to make the n-th call after the region was mapped; cuts. What
 * became of it then; -1: it made no more so many. */
static int cut_before(pid_t pid, unsigned n)
{
	bool entry = false, is_mapped = false;
	int status, fd;

	if (waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status) ||
	    ptrace(PTRACE_SETOPTIONS, pid, NULL, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL) < 0)
		return WIFEXITED(status) ? status : -1;
	for (int signal = 0;;) {
		struct user_regs_struct regs;

		if (ptrace(PTRACE_SYSCALL, pid, NULL, signal) < 0 ||
		    waitpid(pid, &status, 0) != pid)
			return -1;
		if (!WIFSTOPPED(status)) /* without so many calls */
			return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? -1 : status;
		signal = is_at_call(status) || WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status);
		if (!is_at_call(status))
			continue;
		entry = !entry;
		if (!entry || ptrace(PTRACE_GETREGS, pid, NULL, &regs) < 0)
			continue;
		if (is_mapped && n-- == 0)
			break;
		is_mapped |= regs.orig_rax == SYS_mmap && regs.rsi == REGION_BYTES;
	}
	fd = open(region, O_RDWR | O_CLOEXEC);
	if (fd >= 0 && ftruncate(fd, 0) == 0)
		cuts++;
	if (fd >= 0)
		close(fd);
	ptrace(PTRACE_DETACH, pid, NULL, 0);
	if (waitpid(pid, &status, 0) != pid)
		return -1;
	return status;
}

static void kill_child(pid_t pid)
{
	kill(pid, SIGKILL);
}

/* All that is left, adopted ones too, must end, and not of a signal but ours; killed: they are
 * helped. */
static void reap(const char *how, unsigned n, bool killed)
{
	int64_t end = now_ms() + LIMIT_MS;
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) >= 0) {
		if (pid == 0 && now_ms() > end) {
			complain(how, n, "not all have ended", 0);
			return;
		}
		if (pid == 0 && killed)
			(void)children_each(kill_child);
		if (pid == 0)
			usleep(1000);
		else if (WIFSIGNALED(status) && WTERMSIG(status) != SIGKILL)
			complain(how, n, "somebody else has got a signal", status);
	}
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	return remove(path);
}

static void clear_base(void)
{
	nftw(base, remove_one, 8, FTW_DEPTH | FTW_PHYS);
	mkdir(base, 0700);
}

static void clear_up(void)
{
	nftw(base, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* False: the program makes no more so many calls. */
static bool one_cut(const char *how, unsigned n)
{
	pid_t stays = -1, pid;
	int status = 0;

	if (strcmp(how, "usysvd") == 0) {
		stays = start("stay", false);
		if (stays < 0 || waitpid(stays, &status, WUNTRACED) != stays ||
		    !WIFSTOPPED(status)) {
			complain(how, n, "nobody is in the namespace", status);
			return false;
		}
	}
	pid = start(how, true);
	status = pid < 0 ? -1 : cut_before(pid, n);
	if (status > 0 && WIFSIGNALED(status))
		complain(how, n, "it has got a signal", status);
	if (stays > 0)
		kill(stays, SIGKILL);
	reap(how, n, stays < 0);
	clear_base();
	if (status > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 77)
		exit(77);
	return status >= 0 && bad < 10;
}

static void cut_by_vfork_child(void)
{
	pid_t pid = start("vfork", false);
	int status = 0;

	if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
		complain("vfork", 0, "it or its child has come to a bad end", status);
	reap("vfork", 0, true);
	clear_base();
}

int main(int argc, char **argv)
{
	static const char *const programs[] = {"user", "usysvd"};
	unsigned every;

	if (argc == 3 && strcmp(argv[1], "--user") == 0)
		return be_user(argv[2]);
	every = argc == 4 ? (unsigned)atoi(argv[3]) : 0; /* NOLINT(cert-err34-c) */
	if (every == 0 || !mkdtemp(base))
		return 2;
	usysvd = argv[1];
	preload = argv[2];
	atexit(clear_up);
	snprintf(directory, sizeof(directory), "%s/usysv-%u/default", base, (unsigned)geteuid());
	snprintf(region, sizeof(region), "%s/region", directory);
	setenv("USYSV_DIR", base, 1);
	setenv("CUT_REGION", region, 1);
	unsetenv("USYSV_NAMESPACE");
	unsetenv("USYSV_REGION");
	unsetenv("LD_PRELOAD");
	prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	cut_by_vfork_child();
	for (int k = 0; k < 2; k++) {
		unsigned n = 0;

		while (n < CALLS_MOST && one_cut(programs[k], n))
			n += every;
		printf("%s: %u calls\n", programs[k], n);
	}
	printf("%u cuts, %u bad\n", cuts, bad);
	return bad || cuts < 120 / every;
}
