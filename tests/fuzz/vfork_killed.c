// SPDX-License-Identifier: MIT
/*
 * A vfork child that is killed in the middle of a call of the library runs in its parent's memory:
 * what it had locked there must not stay locked. A seccomp filter of the child's own kills it at
 * its first system call of a kind; for each kind that registering and attaching make, before the
 * parent has made a call, after, and as the first process of a pid namespace: there it has another
 * id than its parent knows. Then the parent uses all families.
 *
 * Run by vfork_killed.sh, in a namespace and with a time limit, once a case: vfork-killed CASE;
 * without one, how many.
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static const int kinds[] = {SYS_openat,     SYS_fstat,  SYS_mmap,      SYS_madvise,
			    SYS_mremap,     SYS_munmap, SYS_mprotect,  SYS_get_robust_list,
			    SYS_newfstatat, SYS_gettid, SYS_ftruncate, SYS_fcntl};
#define KINDS ((int)(sizeof(kinds) / sizeof(kinds[0])))
enum when { BEFORE, AFTER, IN_PID_NAMESPACE, WHENS };

static int set, queue, segment;

/* Raw calls only: this runs in the parent's memory. Any of them kills that is of the kind. */
static void be_killed_at(int nr)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)nr, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = {sizeof(code) / sizeof(code[0]), code};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter) < 0)
		_exit(77);
}

static void call_all(void)
{
	struct sembuf up = {0, 1, SEM_UNDO};
	void *at;

	set = semget(0x51, 1, IPC_CREAT | 0600);
	(void)semop(set, &up, 1);
	segment = shmget(0x51, 4096, IPC_CREAT | 0600);
	at = shmat(segment, NULL, 0);
	if (at != (void *)-1) /* NOLINT(performance-no-int-to-ptr) */
		(void)shmdt(at);
}

/* vfork() returns twice into the same frame, so it has one of its own. */
static __attribute__((noinline)) pid_t start_victim(int nr)
{
	pid_t pid = vfork(); /* NOLINT(clang-analyzer-security.insecureAPI.vfork) */

	if (pid == 0) {
		be_killed_at(nr);
		call_all();
		_exit(0);
	}
	return pid;
}

static void must(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "vfork-killed: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void use(void)
{
	struct sembuf down = {0, -1, IPC_NOWAIT}, up = {0, 1, 0};
	struct {
		long type;
		char text[4];
	} m = {1, "abc"};
	void *at;

	set = semget(0x51, 1, IPC_CREAT | 0600);
	must(set >= 0, "semget");
	must(semop(set, &up, 1) == 0 && semop(set, &down, 1) == 0, "semop");
	/* What the victim added, if it came so far, is taken back by now. */
	must(semctl(set, 0, GETVAL) == 0, "the victim's SEM_UNDO");
	queue = msgget(0x51, IPC_CREAT | 0600);
	must(queue >= 0 && msgsnd(queue, &m, 4, 0) == 0 && msgrcv(queue, &m, 4, 0, 0) == 4,
	     "a message");
	segment = shmget(0x51, 4096, IPC_CREAT | 0600);
	at = shmat(segment, NULL, 0);
	must(segment >= 0 && at != (void *)-1, "shmat"); /* NOLINT(performance-no-int-to-ptr) */
	must(shmdt(at) == 0, "shmdt");
	must(semctl(set, 0, IPC_RMID) == 0 && msgctl(queue, IPC_RMID, NULL) == 0 &&
		     shmctl(segment, IPC_RMID, NULL) == 0,
	     "IPC_RMID");
}

static int try_kind(int nr, enum when when)
{
	int status;
	pid_t pid;

	if (when != BEFORE)
		use();
	if (when == IN_PID_NAMESPACE && unshare(CLONE_NEWPID) < 0)
		return 0; /* nobody may, without privileges */
	pid = start_victim(nr);
	must(pid > 0, "vfork");
	must(waitpid(pid, &status, 0) == pid, "waitpid");
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		return 77;
	/* It may have come to its end without a call of this kind. */
	must(WIFSIGNALED(status) || WEXITSTATUS(status) == 0, "the child's end");
	printf("%d: %s%s\n", nr, WIFSIGNALED(status) ? "killed" : "not reached",
	       when == IN_PID_NAMESPACE ? " in its namespace" : "");
	use();
	return 0;
}

int main(int argc, char **argv)
{
	int n;

	if (argc < 2) {
		printf("%d\n", KINDS * WHENS);
		return 0;
	}
	n = atoi(argv[1]); /* NOLINT(cert-err34-c) */
	if (n < 0 || n >= KINDS * WHENS)
		return 2;
	return try_kind(kinds[n / WHENS], (enum when)(n % WHENS));
}
