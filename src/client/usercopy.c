// SPDX-License-Identifier: MIT
/*
 * Copies from and to memory that a program named; see the header.
 *
 * The instructions that touch such memory are single assembly statements, each with a row in the
 * section us_ex: where it is, and where to go on when it faults. On x86-64 these are moves of 2 to
 * 16 bytes, in pairs that overlap for sizes in between (so that a sembuf array costs two loads),
 * and `rep movsb` for what is long. Elsewhere there are no such rows; the range is probed first,
 * and then copied by memcpy.
 *
 * A store that faults in the middle leaves what came before it, as the kernel's copies do.
 *
 * Probing asks the kernel about one word of each page by futex operations that have no effect:
 * FUTEX_CMP_REQUEUE that moves nobody reads it, FUTEX_WAKE_OP with "or 0" writes it, atomically,
 * with what it held. Memory that another thread unmaps in between can still fault.
 */
#include "client/usercopy.h"

#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/sys.h"
#include "client/thread.h"

bool usercopy_handlers;

/* Below is never memory of a program's; above (64-bit) is the kernel's. Spares null pointers and
 * -1 the fault. */
#define LOWEST_ADDRESS 4096u

static inline bool is_plausible(const void *user, size_t n)
{
	uintptr_t start = (uintptr_t)user;

#if UINTPTR_MAX > UINT32_MAX
	return n <= INTPTR_MAX &&
	       start - LOWEST_ADDRESS <= (uintptr_t)INTPTR_MAX - LOWEST_ADDRESS &&
	       start + n <= (uintptr_t)INTPTR_MAX;
#else
	return start >= LOWEST_ADDRESS && start + n >= start;
#endif
}

static bool probe_word(uint32_t *word, bool write)
{
	uint32_t mine = 0;
	long result;

	if (write)
		result = sys_call(SYS_futex, (long)&mine, FUTEX_WAKE_OP | FUTEX_PRIVATE_FLAG, 0, 0,
				  (long)word, FUTEX_OP(FUTEX_OP_OR, 0, FUTEX_OP_CMP_LT, -2048));
	else
		result = sys_call(SYS_futex, (long)word, FUTEX_CMP_REQUEUE | FUTEX_PRIVATE_FLAG, 0,
				  0, (long)&mine, 0);
	return result != -EFAULT;
}

static bool probe_range(uintptr_t start, size_t n, bool write)
{
	uintptr_t page = 4096, at = start & ~(uintptr_t)3;

	for (;;) {
		if (!probe_word((uint32_t *)at, write))
			return false;
		at = (at & ~(page - 1)) + page;
		if (at - start >= n)
			return true;
	}
}

/*
 * `probe` says that the thread may have SIGSEGV or SIGBUS blocked. Not every way to unblock them is
 * seen, so the mask itself decides, and clears the suspicion.
 */
static __attribute__((noinline)) bool must_probe_slow(void)
{
	uint64_t mask = 0, faults = (1ull << (SIGSEGV - 1)) | (1ull << (SIGBUS - 1));

	if (!usercopy_handlers)
		return true;
	sys_call(SYS_rt_sigprocmask, SIG_BLOCK, 0, (long)&mask, _NSIG / 8, 0, 0);
	if (mask & faults)
		return true;
	if (thread_self)
		thread_self->probe = 0;
	return false;
}

static inline bool must_probe(bool probe)
{
	return __builtin_expect(probe | !usercopy_handlers, 0) && must_probe_slow();
}

#if defined(__x86_64__) && !defined(__ILP32__)

#include <emmintrin.h>

#define HAVE_TABLE 1

struct exception {
	int32_t pc, fixup; /* relative to the member's own address */
};

extern const struct exception table_start[] __asm__("__start_us_ex")
	__attribute__((visibility("hidden")));
extern const struct exception table_stop[] __asm__("__stop_us_ex")
	__attribute__((visibility("hidden")));

/* The instruction at local label 1 goes on at label `to` when it faults. */
#define ROW(to)                                                                                    \
	".pushsection us_ex, \"a\"\n\t"                                                            \
	".balign 4\n\t"                                                                            \
	".long 1b - .\n\t"                                                                         \
	".long %l[" to "] - .\n\t"                                                                 \
	".popsection"

#define LOAD(mov, constraint, value, from)                                                         \
	__asm__ __volatile__ goto("1:\t" mov " %[src], %[dst]\n\t" ROW("fault")                    \
				  : [dst] "=" constraint(value)                                    \
				  : [src] "m"(*(const char *)(from))                               \
				  : "memory"                                                       \
				  : fault)

#define STORE(mov, constraint, value, to)                                                          \
	__asm__ __volatile__ goto("1:\t" mov " %[src], %[dst]\n\t" ROW("fault")                    \
				  :                                                                \
				  : [dst] "m"(*(char *)(to)), [src] constraint(value)              \
				  : "memory"                                                       \
				  : fault)

/* Longer than this, `rep movsb` is as fast as vectors. */
#define VECTOR_MOST 1024u

/* Either side may fault. */
static int copy_long(char *to, const char *from, size_t n)
{
	__asm__ __volatile__ goto("1:\trep movsb\n\t" ROW("fault")
				  : "+D"(to), "+S"(from), "+c"(n)
				  :
				  : "memory"
				  : fault);
	return 0;
fault:
	return -EFAULT;
}

/* n > 32: whole vectors of 16 and a last one that may overlap. */
static int copy_in_vectors(char *to, const char *from, size_t n)
{
	__m128i a, b, last;
	size_t i;

	LOAD("movdqu", "x", last, from + n - 16);
	for (i = 0; i + 32 <= n; i += 32) {
		LOAD("movdqu", "x", a, from + i);
		LOAD("movdqu", "x", b, from + i + 16);
		memcpy(to + i, &a, 16);
		memcpy(to + i + 16, &b, 16);
	}
	if (i + 16 < n) {
		LOAD("movdqu", "x", a, from + i);
		memcpy(to + i, &a, 16);
	}
	memcpy(to + n - 16, &last, 16);
	return 0;
fault:
	return -EFAULT;
}

static int copy_out_vectors(char *to, const char *from, size_t n)
{
	__m128i a;
	size_t i;

	for (i = 0; i + 16 <= n; i += 16) {
		memcpy(&a, from + i, 16);
		STORE("movdqu", "x", a, to + i);
	}
	memcpy(&a, from + n - 16, 16);
	STORE("movdqu", "x", a, to + n - 16);
	return 0;
fault:
	return -EFAULT;
}

static inline int copy_in(char *to, const char *from, size_t n)
{
	if (n > 32)
		return n <= VECTOR_MOST ? copy_in_vectors(to, from, n) : copy_long(to, from, n);
	if (n >= 16) {
		__m128i a, b;

		LOAD("movdqu", "x", a, from);
		LOAD("movdqu", "x", b, from + n - 16);
		memcpy(to, &a, 16);
		memcpy(to + n - 16, &b, 16);
	} else if (n >= 8) {
		uint64_t a, b;

		LOAD("movq", "r", a, from);
		LOAD("movq", "r", b, from + n - 8);
		memcpy(to, &a, 8);
		memcpy(to + n - 8, &b, 8);
	} else if (n >= 4) {
		uint32_t a, b;

		LOAD("movl", "r", a, from);
		LOAD("movl", "r", b, from + n - 4);
		memcpy(to, &a, 4);
		memcpy(to + n - 4, &b, 4);
	} else {
		for (size_t i = 0; i < n; i++) {
			uint8_t a;

			LOAD("movb", "q", a, from + i);
			to[i] = (char)a;
		}
	}
	return 0;
fault:
	return -EFAULT;
}

static inline int copy_out(char *to, const char *from, size_t n)
{
	if (n > 32)
		return n <= VECTOR_MOST ? copy_out_vectors(to, from, n) : copy_long(to, from, n);
	if (n >= 16) {
		__m128i a, b;

		memcpy(&a, from, 16);
		memcpy(&b, from + n - 16, 16);
		STORE("movdqu", "x", a, to);
		STORE("movdqu", "x", b, to + n - 16);
	} else if (n >= 8) {
		uint64_t a, b;

		memcpy(&a, from, 8);
		memcpy(&b, from + n - 8, 8);
		STORE("movq", "r", a, to);
		STORE("movq", "r", b, to + n - 8);
	} else if (n >= 4) {
		uint32_t a, b;

		memcpy(&a, from, 4);
		memcpy(&b, from + n - 4, 4);
		STORE("movl", "r", a, to);
		STORE("movl", "r", b, to + n - 4);
	} else {
		for (size_t i = 0; i < n; i++)
			STORE("movb", "q", (uint8_t)from[i], to + i);
	}
	return 0;
fault:
	return -EFAULT;
}

uintptr_t usercopy_fixup(uintptr_t pc)
{
	for (const struct exception *e = table_start; e < table_stop; e++)
		if ((uintptr_t)&e->pc + (uintptr_t)(intptr_t)e->pc == pc)
			return (uintptr_t)&e->fixup + (uintptr_t)(intptr_t)e->fixup;
	return 0;
}

#else

#define HAVE_TABLE 0

static inline int copy_in(char *to, const char *from, size_t n)
{
	memcpy(to, from, n);
	return 0;
}

static inline int copy_out(char *to, const char *from, size_t n)
{
	memcpy(to, from, n);
	return 0;
}

uintptr_t usercopy_fixup(uintptr_t pc)
{
	(void)pc;
	return 0;
}

#endif

int usercopy_in(void *to, const void *user, size_t n, bool probe)
{
	if (n == 0)
		return 0;
	if (!is_plausible(user, n))
		return -EFAULT;
	if ((!HAVE_TABLE || must_probe(probe)) && !probe_range((uintptr_t)user, n, false))
		return -EFAULT;
	return copy_in(to, user, n);
}

int usercopy_out(void *user, const void *from, size_t n, bool probe)
{
	if (n == 0)
		return 0;
	if (!is_plausible(user, n))
		return -EFAULT;
	if ((!HAVE_TABLE || must_probe(probe)) && !probe_range((uintptr_t)user, n, true))
		return -EFAULT;
	return copy_out(user, from, n);
}
