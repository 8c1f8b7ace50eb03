// SPDX-License-Identifier: MIT
/*
 * A table in private memory; see the header. It goes the way of the mappings it tells of: a forked
 * child has a copy, a vfork child shares it as it shares the mappings, exec ends it. Killed in the
 * middle, a vfork child leaves an entry that is there or is not, for `bytes` makes it count.
 */
#include "client/attach_own.h"

#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "base/atomic.h"
#include "base/sys.h"

#define BLOCK_BYTES 4096

struct own {
	uint64_t address, bytes; /* 0 bytes: free */
};

struct block {
	struct block *next;
	struct own entry[BLOCK_BYTES / sizeof(struct own) - 1];
};
#define ENTRIES (sizeof(((struct block *)NULL)->entry) / sizeof(struct own))

static struct block *blocks;

/* The first that overlaps the range; 0 bytes: that begins there. Null: none. */
static struct own *find(uint64_t address, uint64_t bytes)
{
	for (struct block *b = blocks; b; b = b->next)
		for (size_t i = 0; i < ENTRIES; i++) {
			struct own *o = &b->entry[i];

			if (o->bytes &&
			    (bytes ? o->address < address + bytes && address < o->address + o->bytes
				   : o->address == address))
				return o;
		}
	return NULL;
}

static struct own *find_free(void)
{
	for (struct block *b = blocks; b; b = b->next)
		for (size_t i = 0; i < ENTRIES; i++)
			if (!b->entry[i].bytes)
				return &b->entry[i];
	return NULL;
}

bool attach_own_reserve(void)
{
	struct block *b;
	long r;

	if (find_free())
		return true;
	r = sys_call(SYS_mmap, 0, BLOCK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		     -1, 0);
	if (r < 0 && r > -4096)
		return false;
	b = (struct block *)r;
	b->next = blocks;
	crash_barrier();
	blocks = b;
	return true;
}

void attach_own_add(uint64_t address, uint64_t bytes)
{
	struct own *o;

	while ((o = find(address, bytes)) != NULL)
		o->bytes = 0;
	o = find_free();
	if (!o)
		return;
	o->address = address;
	crash_barrier();
	o->bytes = bytes;
}

uint64_t attach_own_bytes(uint64_t address)
{
	const struct own *o = find(address, 0);

	return o ? o->bytes : 0;
}

void attach_own_drop(uint64_t address)
{
	struct own *o = find(address, 0);

	if (o)
		o->bytes = 0;
}
