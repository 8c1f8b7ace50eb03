// SPDX-License-Identifier: MIT
/*
 * System calls that fail: of a program on usysv the n-th call of each kind, for n = 1, 2, ... until
 * a run makes fewer of them. Each run must end by itself, with calls that work or say what is
 * lacking; what is left afterwards is nothing, or a namespace that is consistent, holds no object
 * and in which the next program works.
 *
 * With --early the calls count that come before main(), too: of the loader, of the library's
 * constructor, of a constructor that makes the program's first call. A program that the loader
 * cannot start, or starts without the library, has had bad luck.
 *
 * The library makes its system calls itself, so they are caught in the kernel: a seccomp filter
 * hands the kind in question to this process, which lets it through or answers with an error. The
 * filter reaches all descendants, the reaper too; that the last of them is gone ends the run.
 *
 *	faults USYSV PRELOAD FAULTS-USER [--early] [SYSTEM-CALL...]
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fuzz/faults.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

#define RUN_LIMIT_S 60
#define CALLS_MOST  400

static const struct kind {
	const char *name;
	int nr, error;
	int missing; /* one that fails with EINVAL always, as in an older kernel; 0: none */
} kinds[] = {
	{"mmap", SYS_mmap, ENOMEM, 0},
	{"mremap", SYS_mremap, ENOMEM, 0},
	{"mprotect", SYS_mprotect, ENOMEM, 0},
	{"munlock", SYS_munlock, ENOMEM, 0},
	{"madvise", SYS_madvise, ENOMEM, 0},
	{"openat", SYS_openat, EMFILE, 0},
	{"fcntl", SYS_fcntl, ENOLCK, 0},
	{"ftruncate", SYS_ftruncate, ENOSPC, 0},
	{"fstatfs", SYS_fstatfs, ENOMEM, 0},
	{"fchmod", SYS_fchmod, EPERM, 0},
	{"linkat", SYS_linkat, ENOSPC, 0},
	{"mkdirat", SYS_mkdirat, ENOSPC, 0},
	{"statx", SYS_statx, ENOMEM, 0},
	{"newfstatat", SYS_newfstatat, ENOMEM, 0},
	{"fstat", SYS_fstat, ENOMEM, 0},
	{"pread64", SYS_pread64, EIO, 0},
	{"read", SYS_read, EIO, 0},
	{"prlimit64", SYS_prlimit64, EPERM, 0},
	{"futex", SYS_futex, EAGAIN, 0}, /* the C library aborts on what it does not know */
	{"clone", SYS_clone, EAGAIN, 0},
	{"execve", SYS_execve, ENOMEM, 0},
	{"get_robust_list", SYS_get_robust_list, EPERM, 0},
	{"sched_getaffinity", SYS_sched_getaffinity, ENOSYS, 0},
	/* instead of madvise() with MADV_POPULATE_WRITE; no such page, or no such call */
	{"process_vm_readv", SYS_process_vm_readv, EFAULT, SYS_madvise},
	{"process_vm_readv-nosys", SYS_process_vm_readv, ENOSYS, SYS_madvise},
	{"clone3", SYS_clone3, EAGAIN, 0},
	{"memfd_create", SYS_memfd_create, EMFILE, 0},
	{"unlinkat", SYS_unlinkat, EPERM, 0},
	{"readlinkat", SYS_readlinkat, ENOMEM, 0},
	{"faccessat", SYS_faccessat, ENOMEM, 0},
	{"close_range", SYS_close_range, ENOSYS, 0},
	/* the reaper's notice of deaths */
	{"futex_waitv", SYS_futex_waitv, ENOSYS, 0},
	{"eventfd2", SYS_eventfd2, EMFILE, 0},
	{"epoll_ctl", SYS_epoll_ctl, ENOSPC, 0},
};

static const char *usysv, *preload, *program;
static bool is_early;
static char base[] = "/dev/shm/usysv-faults-XXXXXX";
static char said[4096];

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000ll + t.tv_nsec / 1000000;
}

/* ---- The filter ---------------------------------------------------------------------------- */

static int install(const struct kind *k)
{
	uint32_t also = (uint32_t)(k->missing ? k->missing : k->nr);
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)k->nr, 3, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, also, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, FAULTS_MARK, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
	};
	struct sock_fprog filter = {sizeof(code) / sizeof(code[0]), code};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -1;
	return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER,
			    &filter);
}

/* A descriptor over a socket; -1 to receive. */
static int pass(int socket, int fd)
{
	char byte = 0;
	union {
		char space[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = {0};
	struct iovec one = {&byte, 1};
	struct msghdr m = {.msg_iov = &one,
			   .msg_iovlen = 1,
			   .msg_control = &control,
			   .msg_controllen = sizeof(control)};
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	if (fd < 0) {
		if (recvmsg(socket, &m, MSG_CMSG_CLOEXEC) <= 0)
			return -1;
		c = CMSG_FIRSTHDR(&m);
		if (c)
			memcpy(&fd, CMSG_DATA(c), sizeof(fd));
		return fd;
	}
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	return sendmsg(socket, &m, 0) == 1 ? 0 : -1;
}

_Noreturn static void run_program(const struct kind *k, const char *mode, int socket, int output)
{
	int fd;

	/* Before the filter, which its own calls would meet. */
	setenv("USYSV_DIR", base, 1);
	setenv("LD_PRELOAD", preload, 1);
	unsetenv("USYSV_NAMESPACE");
	unsetenv("USYSV_REGION");
	/* What the library does not reach meets no objects of others. */
	if (is_early && k) {
		(void)unshare(CLONE_NEWIPC);
		setenv("FAULTS_EARLY", "1", 1);
	}
	dup2(output, 1);
	dup2(output, 2);
	if (k) {
		fd = install(k);
		if (fd < 0 || pass(socket, fd) < 0)
			_exit(77);
		/* They are closed by the next image: close() may be the kind. */
		(void)fcntl(fd, F_SETFD, FD_CLOEXEC);
		(void)fcntl(socket, F_SETFD, FD_CLOEXEC);
	}
	execl(program, program, mode, (char *)NULL);
	_exit(126);
}

/* Answers for one call. False: there was none after all. */
static void answer(int listener, const struct kind *k, int n, bool *inside, int *count)
{
	union {
		struct seccomp_notif call;
		char space[256];
	} from = {0};
	union {
		struct seccomp_notif_resp answer;
		char space[256];
	} to = {0};

	if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &from.call) < 0)
		return; /* killed meanwhile */
	to.answer.id = from.call.id;
	to.answer.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
	if (from.call.data.nr == FAULTS_MARK && from.call.data.args[0] == FAULTS_MARK_WHICH) {
		*inside = from.call.data.args[1] == FAULTS_BEGIN;
	} else if (k->missing && from.call.data.nr == k->missing) {
		/* Of madvise() only what an older kernel does not know. */
		if (*inside && from.call.data.args[2] == MADV_POPULATE_WRITE) {
			to.answer.flags = 0;
			to.answer.error = -EINVAL;
		}
	} else if (from.call.data.nr == k->nr && *inside && ++*count == n) {
		to.answer.flags = 0;
		to.answer.error = -k->error;
	}
	(void)ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &to.answer); /* may be gone, too */
}

static void take_output(int fd)
{
	size_t have = strlen(said);
	ssize_t n;

	while ((n = read(fd, said + have, sizeof(said) - 1 - have)) > 0)
		have += (size_t)n;
	said[have] = 0;
}

/*
 * One run, in which the n-th call fails: its wait status, with *ret_count such calls. -1: not
 * finished, or somebody of it is left.
 */
static int run(const struct kind *k, int n, const char *mode, int *ret_count)
{
	int sockets[2], output[2], listener = -1, status = -1;
	int64_t end = now_ms() + RUN_LIMIT_S * 1000;
	bool inside = is_early, ended = false, gone = false;
	pid_t pid;

	*ret_count = 0;
	said[0] = 0;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) < 0 ||
	    pipe2(output, O_CLOEXEC | O_NONBLOCK) < 0)
		return -1;
	pid = fork();
	if (pid == 0) {
		setpgid(0, 0);
		run_program(k, mode, sockets[1], output[1]);
	}
	close(sockets[1]);
	close(output[1]);
	if (k) {
		listener = pass(sockets[0], -1);
		gone = listener < 0;
	} else {
		gone = true;
	}
	while ((!ended || !gone) && now_ms() < end) {
		struct pollfd p = {.fd = listener, .events = POLLIN};

		if (gone)
			usleep(2000);
		else if (poll(&p, 1, 20) > 0 && (p.revents & POLLIN))
			answer(listener, k, n, &inside, ret_count);
		else if (p.revents & POLLHUP)
			gone = true;
		take_output(output[0]);
		if (!ended && waitpid(pid, &status, WNOHANG) == pid)
			ended = true;
	}
	if (!ended) {
		kill(-pid, SIGKILL);
		waitpid(pid, &status, 0);
	}
	take_output(output[0]);
	close(sockets[0]);
	close(output[0]);
	if (listener >= 0)
		close(listener);
	return ended && gone ? status : -1;
}

/* ---- What is left -------------------------------------------------------------------------- */

static int command(const char *text)
{
	char line[8192];
	int status;

	snprintf(line, sizeof(line), "USYSV_DIR='%s' '%s' %s >/dev/null 2>&1 </dev/null", base,
		 usysv, text);
	status = system(line); /* NOLINT(cert-env33-c) */
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static bool is_empty(const char *folder)
{
	DIR *d = opendir(folder);
	struct dirent *e;
	int n = 0;

	while (d && (e = readdir(d)) != NULL)
		n += e->d_name[0] != '.' || strncmp(e->d_name, ".new", 4) == 0;
	if (d)
		closedir(d);
	return n == 0;
}

/* Waits for the namespace to go, which its reaper, if there is one, sees to. */
static bool goes(void)
{
	int64_t end = now_ms() + 300;

	while (!is_empty(base) && now_ms() < end)
		usleep(5000);
	return is_empty(base);
}

static int bad;

static void complain(const struct kind *k, int n, const char *what)
{
	bad++;
	printf("%s, call %d fails: %s\n", k->name, n, what);
	if (said[0])
		printf("    it said: %.1500s\n", said);
	fflush(stdout);
}

static void check_left(const struct kind *k, int n)
{
	int count, status;

	if (goes())
		return;
	if (command("check -n default --repair") != 0)
		complain(k, n, "an inconsistent namespace is left");
	status = run(NULL, 0, "NEVER", &count);
	if (status != 0)
		complain(k, n, "the next program does not work");
	if (!goes() && command("rm default") != 0) {
		complain(k, n, "what is left cannot be removed");
		(void)command("rm --force default");
	}
	if (!goes())
		complain(k, n, "files are left");
}

/* Did the program not start, or not on usysv? That is the loader's word. */
static bool is_bad_luck(int status)
{
	return is_early &&
	       ((WIFEXITED(status) && WEXITSTATUS(status) >= 126) ||
		strstr(said, "cannot be preloaded") || strstr(said, "error while loading"));
}

/* The loader itself does not look at each result. */
static bool is_killed_without_library(const struct kind *k, int n)
{
	const char *with = preload;
	int status, count;

	preload = "";
	status = run(k, n, "ANY", &count);
	preload = with;
	return status != -1 && WIFSIGNALED(status);
}

/* Returns the number of calls of this kind. */
static int try_kind(const struct kind *k)
{
	int n = 1, count = 0, stayed_out = 0, unlucky = 0;

	for (; n <= CALLS_MOST; n++) {
		int status = run(k, n, "ANY", &count);

		if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
			return -1;
		if (status == -1)
			complain(k, n, "the run does not end");
		else if (is_bad_luck(status) ||
			 (is_early && WIFSIGNALED(status) && is_killed_without_library(k, n)))
			unlucky++;
		else if (WIFSIGNALED(status))
			complain(k, n, strsignal(WTERMSIG(status)));
		else if (WEXITSTATUS(status) == FAULTS_STAYED_OUT)
			stayed_out++;
		else if (WEXITSTATUS(status) != 0)
			complain(k, n, "wrong");
		if (WIFEXITED(status) && WEXITSTATUS(status) == FAULTS_STAYED_OUT &&
		    !strstr(said, "usysv: "))
			complain(k, n, "nothing says why");
		check_left(k, n);
		if (count < n)
			break;
	}
	printf("%-22s %3d calls, %d of them needed to enter", k->name, n - 1, stayed_out);
	if (unlucky)
		printf(", %d by the loader", unlucky);
	printf("\n");
	fflush(stdout);
	return n - 1;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	return remove(path);
}

static void clear_up(void)
{
	(void)command("rm --force default");
	nftw(base, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* None named: all. */
static bool is_wanted(const char *name, char **names)
{
	if (!*names)
		return true;
	for (; *names; names++)
		if (strcmp(*names, name) == 0)
			return true;
	return false;
}

int main(int argc, char **argv)
{
	int done = 0, first = 4;

	if (argc < 4)
		return 2;
	if (argc > 4 && strcmp(argv[4], "--early") == 0) {
		is_early = true;
		first++;
	}
	usysv = argv[1];
	preload = argv[2];
	program = argv[3];
	if (!mkdtemp(base)) {
		printf("SKIP: no folder in /dev/shm\n");
		return 77;
	}
	atexit(clear_up);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (!is_wanted(kinds[i].name, argv + first))
			continue;
		if (try_kind(&kinds[i]) < 0) {
			printf("SKIP: seccomp cannot hand system calls over here\n");
			return 77;
		}
		done++;
	}
	printf("%d kinds, %d bad\n", done, bad);
	return bad || !done;
}
