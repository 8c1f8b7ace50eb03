/* SPDX-License-Identifier: MIT */
/*
 * What valgrind's Memcheck is told of the region; nothing, at the cost of a few instructions, where
 * a program does not run under it.
 *
 * Memcheck keeps notes of each byte that a program may access, and reads all that is mapped
 * readable and writable when it looks for leaks. The region is mostly holes, and reading a hole
 * allocates its page. So the region counts as not accessible there, and that it is accessed all
 * the same is no error.
 *
 * A client request is a sequence of instructions without effect that valgrind knows; see its
 * valgrind.h and memcheck.h, which are not needed for building this.
 */
#ifndef USYSV_BASE_MEMCHECK_H
#define USYSV_BASE_MEMCHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum memcheck_request {
	MEMCHECK_NOACCESS = 'M' << 24 | 'C' << 16,
	MEMCHECK_DEFINED = MEMCHECK_NOACCESS + 2,
	MEMCHECK_IGNORE = MEMCHECK_NOACCESS + 14, /* report no access */
};

/* 0 where nobody listens. */
static inline long memcheck_ask(enum memcheck_request request, const void *start, size_t bytes)
{
	volatile uintptr_t args[6] = {(uintptr_t)request, (uintptr_t)start, bytes};
	long ret = 0;

#if defined(__x86_64__) && !defined(__ILP32__)
	__asm__ __volatile__("rolq $3, %%rdi; rolq $13, %%rdi; rolq $61, %%rdi; rolq $51, %%rdi\n\t"
			     "xchgq %%rbx, %%rbx"
			     : "+d"(ret)
			     : "a"(args)
			     : "cc", "memory");
#elif defined(__aarch64__)
	register long x3 __asm__("x3") = 0;
	register volatile uintptr_t *x4 __asm__("x4") = args;

	__asm__ __volatile__("ror x12, x12, #3; ror x12, x12, #13\n\t"
			     "ror x12, x12, #51; ror x12, x12, #61\n\t"
			     "orr x10, x10, x10"
			     : "+r"(x3)
			     : "r"(x4)
			     : "cc", "memory");
	ret = x3;
#else
	(void)args;
#endif
	return ret;
}

static inline bool memcheck_listens(void)
{
	return memcheck_ask(MEMCHECK_DEFINED, NULL, 0) != 0;
}

/* A word is about to be given to a system call, at which Memcheck looks, too. The whole line: a
 * value of which it knows a part has no other part, to it. */
static inline void memcheck_will_pass(const void *word)
{
	const char *line = (const char *)word - (uintptr_t)word % 64;

	(void)memcheck_ask(MEMCHECK_DEFINED, line, 64); /* nobody may listen */
}

#endif
