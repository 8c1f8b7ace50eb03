// SPDX-License-Identifier: MIT
/*
 * deny-ipc PROGRAM [ARG...]: runs a program whose every System V IPC call into the kernel fails
 * with EPERM, in it and in all its descendants. What works in here does not use the kernel's IPC.
 *
 * A seccomp filter does it: it looks at the number of the system call, so that no way around a
 * preloaded library stays unseen (raw system calls, static programs, the C library's own calls).
 * EPERM and not ENOSYS: usysv itself answers ENOSYS for a family that it lacks, and the two must
 * be told apart. Calls of a foreign architecture (32-bit programs) fail altogether.
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define NATIVE_ARCH AUDIT_ARCH_X86_64
#define NUMBER_MASK 0xbfffffffu /* x32 calls carry a bit */
#elif defined(__aarch64__)
#define NATIVE_ARCH AUDIT_ARCH_AARCH64
#define NUMBER_MASK 0xffffffffu
#elif defined(__riscv) && __riscv_xlen == 64
#define NATIVE_ARCH AUDIT_ARCH_RISCV64
#define NUMBER_MASK 0xffffffffu
#else
#error "add the architecture's AUDIT_ARCH_ value"
#endif

static const unsigned int denied[] = {
	SYS_semget, SYS_semop,  SYS_semtimedop, SYS_semctl, SYS_msgget, SYS_msgsnd,
	SYS_msgrcv, SYS_msgctl, SYS_shmget,     SYS_shmat,  SYS_shmdt,  SYS_shmctl,
};
enum { DENIED = sizeof(denied) / sizeof(denied[0]) };

static int install(void)
{
	struct sock_filter code[2 * DENIED + 8];
	struct sock_fprog program = {0, code};
	const struct sock_filter refuse =
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (EPERM & SECCOMP_RET_DATA));
	unsigned short n = 0;

	code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
						 offsetof(struct seccomp_data, arch));
	code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, NATIVE_ARCH, 1, 0);
	code[n++] = refuse;
	code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
						 offsetof(struct seccomp_data, nr));
	code[n++] = (struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K, NUMBER_MASK);
	for (unsigned int i = 0; i < DENIED; i++) {
		code[n++] =
			(struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, denied[i], 0, 1);
		code[n++] = refuse;
	}
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	program.len = n;
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0)
		return 0;
	/* Without CAP_SYS_ADMIN only for a tree that gains no privileges by exec. */
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		return -1;
	return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
}

int main(int argc, char **argv)
{
	if (argc < 2) {
		fprintf(stderr, "usage: deny-ipc PROGRAM [ARG...]\n");
		return 2;
	}
	if (install() != 0) {
		/* The exit status that makes a test skipped. */
		fprintf(stderr, "deny-ipc: no seccomp filter here: %s\n", strerror(errno));
		return 77;
	}
	execvp(argv[1], argv + 1);
	fprintf(stderr, "deny-ipc: %s: %s\n", argv[1], strerror(errno));
	return 127;
}
