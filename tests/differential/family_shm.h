/* SPDX-License-Identifier: MIT */
/*
 * The shared memory family: what its three files share.
 *
 * Addresses. Each process has a window, addresses that are the same everywhere and that nobody
 * else chooses: fixed attaches and everything that is done to mappings behind the back of the
 * calls happen there. Attaches wherever the system likes are remembered under a number (the
 * argument `at`), and looked at as memory, not as addresses.
 *
 * Linux sets times and pid of a segment whenever a mapping begins or ends, usysv only in calls
 * that it sees (doc/COMPAT.md, shm-munmap-times). What that leaves open is called blurred here, is
 * noted for each segment, and shows as ~.
 *
 * Linux never joins two mappings of a segment, and tells two attaches of one segment apart;
 * mappings of a file are joined when they become alike, and look alike (shm-nattch). So nothing is
 * done to mappings that would make two neighbours alike.
 */
#ifndef DIFFERENTIAL_FAMILY_SHM_H
#define DIFFERENTIAL_FAMILY_SHM_H

#include <sys/shm.h>

#include "shared.h"

#ifndef SHM_STAT_ANY
#define SHM_STAT_ANY 15
#endif
#ifndef SHM_EXEC
#define SHM_EXEC 0100000
#endif
#ifndef SHM_NORESERVE
#define SHM_NORESERVE 010000
#endif

/* Arguments of the operations are described in the table of family_shm.c. */
enum {
	SHM_OP_GET,
	SHM_OP_AT,
	SHM_OP_DT,
	SHM_OP_CTL,
	SHM_OP_READ,
	SHM_OP_WRITE,
	SHM_OP_MUNMAP,
	SHM_OP_MPROTECT,
	SHM_OP_MREMAP,
	SHM_OP_MMAP,
	SHM_OP_COUNT,
};

/* Where an address is. */
enum where {
	WHERE_NULL,
	WHERE_WINDOW, /* so many pages into the window */
	WHERE_ATTACH, /* so many pages into a remembered attach */
	WHERE_TAKEN,  /* where something else is */
	WHERE_LOW,    /* in page 0 */
	WHERE_TOP,    /* so many pages below the end of user space */
	WHERE_WRAP,   /* so many pages below the end of all addresses */
	WHERE_COUNT,
};

enum how_to_remap {
	REMAP_MOVE,
	REMAP_DUPLICATE,
	REMAP_RESIZE,
};

enum {
	WINDOW_PAGES = 24, /* pages of the window in which mappings are changed */
	PIECES_MAX = 256,
	SHM_PAGE_BYTES = 4096,
};

#if defined(__x86_64__)
#define WINDOW_ADDRESS 0x110000000000UL
#elif __SIZEOF_POINTER__ == 8
#define WINDOW_ADDRESS 0x2000000000UL
#else
#define WINDOW_ADDRESS 0x60000000UL
#endif

/* A mapping of a segment, or in the window also of nothing. */
struct piece {
	uint64_t start;
	uint64_t end;
	uint64_t offset;
	int id; /* -1: of no segment */
	char perms[5];
};

/* Reads the mappings of a process, 0 for the calling one; their number. */
unsigned shm_pieces(pid_t pid, struct piece *pieces, unsigned max);

bool shm_in_window(uint64_t address);

/* What is not known of a segment; bits. */
enum {
	BLUR_ATIME = 1,
	BLUR_DTIME = 2,
	BLUR_LPID = 4,
	BLUR_ALL = 7,
};

unsigned shm_blur_of(const struct shared *shared, int id);
void shm_sharpen(struct shared *shared, int id, unsigned what);
/* A process ends, in whatever way, or its image does. */
void shm_process_ends(struct shared *shared, unsigned process_ix);
void shm_process_forks(struct shared *shared, unsigned process_ix);

/* A segment was detached from this address; -1: none is attached there. */
int shm_attached_at(uint64_t address);

void shm_call_read(struct hands *hands, const struct step *step, struct outcome *outcome);
void shm_call_write(struct hands *hands, const struct step *step, struct outcome *outcome);
void shm_call_munmap(struct hands *hands, const struct step *step, struct outcome *outcome);
void shm_call_mprotect(struct hands *hands, const struct step *step, struct outcome *outcome);
void shm_call_mremap(struct hands *hands, const struct step *step, struct outcome *outcome);
void shm_call_mmap(struct hands *hands, const struct step *step, struct outcome *outcome);

/* The address that arguments stand for; false: there is none, and the outcome says so. */
bool shm_address(struct hands *hands, int64_t where, int64_t page, int64_t byte, int64_t at,
		 uint64_t *ret_address, struct text *text);

/* The mappings of all processes. */
void shm_dump_pieces(const struct shared *shared, struct text *text, struct object_hint *hints);

bool shm_generate(struct world *world, struct step *step);
void shm_choose_style(struct world *world);

#endif
