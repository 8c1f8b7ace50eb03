/* SPDX-License-Identifier: MIT */
/* What building the region and using it share. */
#ifndef TESTS_FUZZ_HOSTILE_PRIV_H
#define TESTS_FUZZ_HOSTILE_PRIV_H

#include "core/caller.h"
#include "core/region.h"
#include "ipc/shm.h"

#define NOW         1700000000
#define GUARD_BYTES GIB(320) /* 2^32 references of 64 bytes, and some more */
#define ACTORS      20u
#define RANGES      64u
#define USER_BYTES  (64u << 10)
#define FLAG_CREAT  01000
#define FLAG_UNDO   010000
#define FLAG_NOWAIT 04000

struct actor {
	struct caller c;
	bool dead;
	struct shm_attach attach;
	bool attaching;
};

/* A part of the region that is in use, as it was built. */
struct range {
	uint64_t off, bytes;
	unsigned char *content;
};

struct hostile {
	unsigned char *base;
	struct actor actor[ACTORS];
	struct range range[RANGES];
	uint32_t range_count;
	uint32_t threads; /* indexes that the built region knows */
	_Alignas(64) unsigned char user[USER_BYTES];
};
extern struct hostile hostile;
extern const struct caller_ops hostile_ops;

/* The region and the actors as they were built. */
void hostile_restore(void);

/* Calls of actor i. */
int hostile_semop(uint32_t i, int32_t id, const struct semop_shm *sops, uint32_t n);
int hostile_send(uint32_t i, int32_t id, long type, uint64_t bytes, uint32_t flags);
int hostile_receive(uint32_t i, int32_t id, int64_t type, uint64_t bytes, uint32_t flags);

#endif
