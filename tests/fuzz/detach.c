// SPDX-License-Identifier: MIT
/*
 * What shmat() and shmdt() take the place of or unmap is the program's: however the region lies
 * about sizes and files, and whatever /proc does not say, what is mapped beside a segment stays.
 *
 * Run by detach.sh, in a namespace: detach CASE.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/region.h"
#include "fuzz/inside.h"
#include "ipc/shm.h"

#define PAGES 8
/* of linux/fs.h, and what the library reads of /proc/PID/maps at a time */
#define MAP_QUERY _IOWR('f', 17, char[104])
#define MAPS_READ 2048

static unsigned char *region, *around;

_Noreturn static void wrong(const char *what)
{
	fprintf(stderr, "detach: %s (%s)\n", what, strerror(errno));
	exit(1);
}

static void need(bool ok, const char *what)
{
	if (!ok)
		wrong(what);
}

static struct segment_shm *segment_of(int id)
{
	return shm_segment(region, (uint32_t)id % OBJECT_CAPACITY);
}

static unsigned char *page(int n)
{
	return around + (size_t)n * PAGE_BYTES;
}

static bool is_mapped(int n)
{
	unsigned char vector;

	return mincore(page(n), PAGE_BYTES, &vector) == 0;
}

static void need_intact(int first, int last)
{
	for (int n = first; n <= last; n++)
		need(is_mapped(n) && *page(n) == 'x', "a page of the program's own is gone");
}

/* From now on the call fails; argument -1: always, else if it has this value. */
static void fail_call(int nr, int argument, uint32_t value, int error)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)nr, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 argument < 0 ? (uint32_t)offsetof(struct seccomp_data, nr)
				      : (uint32_t)(offsetof(struct seccomp_data, args) +
						   (size_t)argument * 8)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, argument < 0 ? (uint32_t)nr : value, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = {sizeof(code) / sizeof(code[0]), code};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter) < 0)
		exit(77);
}

static void attach_at(int id, int n, int flags)
{
	need(shmat(id, page(n), flags) == page(n), "shmat");
}

/* The size is not what it was: a first attach believes it no more than a later one. */
static void larger_segment(int id, bool attached)
{
	if (attached) {
		attach_at(id, 0, SHM_REMAP);
		need(shmdt(page(0)) == 0, "shmdt");
		need(mmap(page(0), 2 * PAGE_BYTES, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == page(0),
		     "mmap");
		*page(0) = *page(1) = 'x';
	}
	segment_of(id)->bytes = PAGES * PAGE_BYTES;
	errno = 0;
	need(shmat(id, page(0), SHM_REMAP) == (void *)-1 && /* NOLINT(performance-no-int-to-ptr) */
		     errno == ENOTRECOVERABLE,
	     "a segment of another size can be attached");
	need_intact(0, PAGES - 1);
}

/* Without /proc, all that was mapped goes, and no more. */
static void no_proc(int id)
{
	struct segment_shm *s = segment_of(id);

	attach_at(id, 1, SHM_REMAP);
	s->bytes = (PAGES - 1) * PAGE_BYTES;
	s->seal = shm_seal(s);
	fail_call(SYS_readlinkat, -1, 0, ENOENT);
	fail_call(SYS_openat, -1, 0, ENOENT);
	need(shmdt(page(1)) == 0, "shmdt");
	need(!is_mapped(1) && !is_mapped(2), "something is left");
	need_intact(0, 0);
	need_intact(3, PAGES - 1);
	need(shmdt(page(1)) < 0 && errno == EINVAL, "a second shmdt");
}

/* A file of the program's in the place of a part, which the region says to be the segment's. */
static void other_file(int id)
{
	char path[4096];
	struct stat st;
	int fd;

	snprintf(path, sizeof(path), "%s-other", inside_region_path());
	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	need(fd >= 0 && unlink(path) == 0, "a file");
	need(ftruncate(fd, 2 * PAGE_BYTES) == 0 && pwrite(fd, "x", 1, PAGE_BYTES) == 1 &&
		     fstat(fd, &st) == 0,
	     "a file");
	attach_at(id, 0, SHM_REMAP);
	need(mmap(page(1), PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd,
		  PAGE_BYTES) == page(1),
	     "mmap");
	segment_of(id)->inode = st.st_ino;
	need(shmdt(page(0)) < 0 && errno == EINVAL, "the file is taken for the segment's");
	need_intact(1, PAGES - 1);
}

static pthread_t first;

static void *other_file_later(void *id)
{
	need(pthread_join(first, NULL) == 0, "pthread_join");
	other_file(*(int *)id);
	exit(0);
}

/* The same in a thread that goes on when the first, which /proc/self shows, has ended. */
static void other_file_second(int id)
{
	pthread_t second;
	static int of_second;

	of_second = id;
	first = pthread_self();
	need(pthread_create(&second, NULL, other_file_later, &of_second) == 0, "pthread_create");
	pthread_exit(NULL);
}

/* The maps cannot be read just now: the call says so, and the count is that of the records. */
static void no_maps(int id)
{
	struct shmid_ds ds;

	attach_at(id, 0, SHM_REMAP);
	attach_at(id, 4, SHM_REMAP);
	need(munmap(page(0), PAGE_BYTES) == 0, "munmap");
	fail_call(SYS_ioctl, 1, MAP_QUERY, EIO);
	fail_call(SYS_read, 2, MAPS_READ, EIO);
	errno = 0;
	need(shmdt(page(0)) < 0 && errno == ENOMEM, "shmdt sees what it cannot");
	need(is_mapped(1), "it has unmapped what it did not see");
	need(shmctl(id, IPC_STAT, &ds) == 0 && ds.shm_nattch == 2, "nattch");
	need(shmdt(page(4)) == 0, "shmdt of what is whole");
	need_intact(2, 3);
	need_intact(6, PAGES - 1);
}

int main(int argc, char **argv)
{
	const char *what = argc == 2 ? argv[1] : "";
	int id = shmget(IPC_PRIVATE, 2 * PAGE_BYTES, 0600);

	need(id >= 0, "shmget");
	region = inside_map_region();
	around = mmap(NULL, PAGES * PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		      -1, 0);
	need(around != MAP_FAILED, "mmap");
	for (int n = 0; n < PAGES; n++)
		*page(n) = 'x';
	if (strcmp(what, "larger-at-first") == 0)
		larger_segment(id, false);
	else if (strcmp(what, "larger-later") == 0)
		larger_segment(id, true);
	else if (strcmp(what, "no-proc") == 0)
		no_proc(id);
	else if (strcmp(what, "other-file") == 0)
		other_file(id);
	else if (strcmp(what, "other-file-second") == 0)
		other_file_second(id);
	else if (strcmp(what, "no-maps") == 0)
		no_maps(id);
	else
		return 2;
	return 0;
}
