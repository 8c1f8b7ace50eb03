// SPDX-License-Identifier: MIT
/* Is there room for a segment? See the header. Only looks, so that a death changes nothing. */
#include "client/attach_room.h"

#include <alloca.h>
#include <errno.h>
#include <string.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>

#include "base/sys.h"
#include "client/attach_dir.h"
#include "client/attach_file.h"
#include "client/hugefile.h"
#include "client/session_priv.h"
#include "ipc/shm.h"

#define ROOM_TRIES 10

/* Of a file system no segment gets all: the region, too, grows with processes, sets and queues, and
 * calls on what is there must not fail for a segment that has been granted. */
#define REGION_MAX_BYTES (4ull << 20)
#define REGION_SHARE     16 /* of a small one */

static uint64_t less_region(uint64_t room, uint64_t whole)
{
	uint64_t share = whole / REGION_SHARE;

	share = share < REGION_MAX_BYTES ? share : REGION_MAX_BYTES;
	return room > share ? room - share : 0;
}

/* Bytes of the file system that segments may take, UINT64_MAX: unknown. */
static uint64_t free_bytes(void)
{
	const char *directory = attach_dir_path();
	size_t length = directory ? strlen(directory) : 0;
	char *path = alloca(length + 1); /* the stack may be a small one of signal handlers */
	struct statfs fs;
	struct sysinfo memory;
	int door = attach_dir_door(), saved = errno;
	uint64_t bytes = UINT64_MAX;
	long r;

	if (!length)
		return UINT64_MAX;
	/* The file system is that of the namespace's directory, which is there in any case. */
	memcpy(path, directory, length + 1);
	path[length - ATTACH_TAG_BYTES + 1] = 0; /* its last slash stays */
	r = door >= 0 ? sys_call(SYS_fstatfs, door, (long)&fs, 0, 0, 0, 0)
		      : sys_call(SYS_statfs, (long)path, (long)&fs, 0, 0, 0, 0);
	if (r == 0 && fs.f_blocks != 0)
		bytes = less_region((uint64_t)fs.f_bavail * (uint64_t)fs.f_bsize,
				    (uint64_t)fs.f_blocks * (uint64_t)fs.f_bsize);
	else if (r == 0 &&
		 sysinfo(&memory) == 0) /* without a limit: as the kernel's own segments */
		bytes = ((uint64_t)memory.totalram + memory.totalswap) * memory.mem_unit;
	errno = saved;
	return bytes;
}

/* All that segments may still grow to; not exact: as if they had nothing yet. */
static uint64_t promised(const unsigned char *base, bool exact)
{
	uint32_t hi = region_object_count(base, FAMILY_SHM);
	uint64_t sum = 0;

	for (uint32_t ix = 0; ix < hi; ix++) {
		const struct segment_shm *s = shm_known_segment(base, ix);
		uint64_t whole, has;

		if (!load_acquire(&s->object.live) || /* ID_P1/A */
		    (s->flags & SEGMENT_NORESERVE) || shm_huge_shift(s))
			continue;
		whole = shm_mapped_bytes(s->bytes);
		has = exact ? attach_file_pages(s) * PAGE_BYTES : 0;
		sum += whole > has ? whole - has : 0;
	}
	return sum;
}

bool attach_room_is_enough(const unsigned char *base, uint64_t bytes)
{
	uint64_t whole = shm_mapped_bytes(bytes), room = free_bytes(), most, before;
	bool fits;

	if (room == UINT64_MAX)
		return true;
	if (whole < bytes || whole > room)
		return false;
	if (promised(base, false) <= room - whole)
		return true;
	/* A page that is taken in between counts as promised and as gone: once more. */
	for (int tries = 0; tries < ROOM_TRIES; tries++) {
		before = room;
		most = promised(base, true);
		room = free_bytes();
		fits = whole <= room && most <= room - whole;
		if (fits || room == before)
			return fits;
	}
	return false;
}

bool attach_room_has_huge(uint32_t shift, uint64_t bytes, bool reserve)
{
	uint64_t rest = (1ull << shift) - 1;
	struct hugefile h = {shift, (bytes + rest) & ~rest, reserve, session.owner};

	return bytes <= INT64_MAX - rest && hugefile_try(&h) == 0;
}
