// SPDX-License-Identifier: MIT
/*
 * A region whose pages are gone.
 *
 * Any process of the user can cut the region's file off, by accident too. What is mapped of it then
 * raises SIGBUS, in the middle of the engine, in other people's programs. The engine cannot look
 * before each access; but it bears any contents. So the handler puts zeros, nobody else's, in the
 * place of the whole region, and the engine goes on: all marks are 0, so it finds nothing and ends
 * soon. From then on the process is out of its namespace, and every call says ENOTRECOVERABLE.
 * Only a thread that has SIGBUS blocked is not helped: the kernel kills its process at the fault.
 *
 * The zeros are a sparse file's, without a name: of private memory of that size all is charged at
 * once where the kernel does not overcommit, or RLIMIT_DATA is set. Forked children have the same
 * file, but call nothing on it, for they would have to register first.
 *
 *   LOST_P1  loss of the region
 *    word      lost_word (private memory of the process)
 *    states    0 > 1; a forked child inherits it, exec begins anew
 *    writers   any thread, in the handler of its fault
 *    order     none needed: the contents speak for themselves
 *    stale-ok  0 in another thread, whose calls then find nothing
 *    death     private memory: none
 *    progress  wait-free
 *    tests     fuzz/live
 */
#include "client/lost.h"

#include <errno.h>
#include <linux/memfd.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "base/sys.h"
#include "client/report.h"
#include "client/session_priv.h"
#include "core/layout.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8u
#endif

uint32_t lost_word;

static const unsigned char *watched;

static bool is_inside(uintptr_t address, const unsigned char *base)
{
	return base && address >= (uintptr_t)base && address - (uintptr_t)base < REGION_BYTES;
}

/* The descriptor of a file of so many zeros, or -errno. */
static long zeros_file(long bytes)
{
	static const char name[] = "usysv-lost";
	struct rlimit most;
	long rc, fd;

	/* Beyond it ftruncate() raises a signal. */
	rc = sys_call(SYS_prlimit64, 0, RLIMIT_FSIZE, 0, (long)&most, 0, 0);
	if (rc < 0 || most.rlim_cur < (rlim_t)bytes)
		return -EFBIG;
	fd = sys_call(SYS_memfd_create, (long)name, MFD_CLOEXEC | MFD_NOEXEC_SEAL, 0, 0, 0, 0);
	if (fd == -EINVAL)
		fd = sys_call(SYS_memfd_create, (long)name, MFD_CLOEXEC, 0, 0, 0, 0);
	if (fd < 0)
		return fd;
	rc = sys_call(SYS_ftruncate, fd, bytes, 0, 0, 0, 0);
	if (rc == 0)
		return fd;
	sys_call(SYS_close, fd, 0, 0, 0, 0, 0);
	return rc;
}

/*
 * Made elsewhere, for no page is to be there before it is touched (under mlockall(MCL_FUTURE) a new
 * mapping that can be read is filled at once), and moved in one step, which other threads do not
 * see.
 */
static bool map_zeros(const unsigned char *base, long fd)
{
	long bytes = (long)REGION_BYTES;
	long flags =
		fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE : MAP_SHARED | MAP_NORESERVE;
	long p = sys_call(SYS_mmap, 0, bytes, PROT_NONE, flags, fd, 0);

	if (p < 0 && p > -4096) /* a limited address space: in place, then */
		return sys_call(SYS_mmap, (long)base, bytes, PROT_READ | PROT_WRITE,
				flags | MAP_FIXED, fd, 0) == (long)base;
	sys_call(SYS_munlock, p, bytes, 0, 0, 0, 0);
	sys_call(SYS_madvise, p, bytes, MADV_DONTDUMP, 0, 0, 0);
	if (sys_call(SYS_mprotect, p, bytes, PROT_READ | PROT_WRITE, 0, 0, 0) == 0 &&
	    sys_call(SYS_mremap, p, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, (long)base, 0) ==
		    (long)base)
		return true;
	sys_call(SYS_munmap, p, bytes, 0, 0, 0, 0);
	return false;
}

static bool put_zeros(const unsigned char *base)
{
	long fd = zeros_file((long)REGION_BYTES);
	bool ok = fd >= 0 && map_zeros(base, fd);

	if (fd >= 0)
		sys_call(SYS_close, fd, 0, 0, 0, 0, 0);
	return ok || map_zeros(base, -1); /* no descriptor is free, say */
}

bool lost_mend(uintptr_t address)
{
	const unsigned char *base = session_is_attached() ? session.base : NULL;

	if (!is_inside(address, base))
		return is_inside(address, watched) && put_zeros(watched);
	if (!put_zeros(base))
		return false;
	store_relaxed(&lost_word, 1); /* LOST_P1: relaxed, see there */
	report(REPORT_DAMAGE,
	       "the region of namespace '%s' (%s) has lost pages: was the file cut "
	       "off? Its programs must be started anew",
	       session.place.name, session.place.region);
	return true;
}

static void on_fault(int sig, siginfo_t *info, void *context)
{
	(void)context;
	if (info->si_code > 0 && lost_mend((uintptr_t)info->si_addr))
		return;
	(void)signal(sig, SIG_DFL);
	if (info->si_code <= 0)
		(void)raise(sig);
}

void lost_install(void)
{
	struct sigaction act;

	memset(&act, 0, sizeof(act));
	act.sa_sigaction = on_fault;
	act.sa_flags = SA_SIGINFO | SA_RESTART;
	sigfillset(&act.sa_mask);
	(void)sigaction(SIGBUS, &act, NULL); /* cannot fail */
}

void lost_watch(const unsigned char *base)
{
	watched = base;
}
