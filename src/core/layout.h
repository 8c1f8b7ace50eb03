/* SPDX-License-Identifier: MIT */
/*
 * Every structure that lies in the region, the map of the region, and the bits of its words.
 *
 * The region is one sparse file of fixed map: flat arrays in reserved ranges, so that a lookup is
 * an index and nothing ever moves. A range has a published high-water mark; nothing beyond it is
 * touched, for even reading a hole of a mapped tmpfs file allocates a page, which is SIGBUS when
 * the file system is full. Pages are made real before the mark moves over them.
 *
 * The layout is an ABI between processes, their C libraries and their word sizes: fixed-width
 * types, no pointers, 64-bit members aligned to 8. REGION_FORMAT is derived from it, and
 * REGION_PROTOCOL counts changes of meaning; a process with another value of either stays out.
 *
 * Suffixes: _off byte offset in the region; _ref the same in units of 64 bytes, 0 = none; _ix
 * index of a slot; _link index + 1, 0 = none.
 */
#ifndef USYSV_CORE_LAYOUT_H
#define USYSV_CORE_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

#define REGION_MAGIC    0x317673797375ull /* "usysv1" */
#define REGION_PROTOCOL 2u

#define REF_UNIT 64u

enum family { FAMILY_MSG, FAMILY_SEM, FAMILY_SHM, FAMILY_COUNT };

/* ---- The map (64-bit format) ------------------------------------------------------------- */

#define KIB(n) ((uint64_t)(n) << 10)
#define MIB(n) ((uint64_t)(n) << 20)
#define GIB(n) ((uint64_t)(n) << 30)

#define PAGE_BYTES 4096u

#define PROC_CAPACITY      65536u
#define GROUP_CAPACITY     131072u /* groups of threads, one page each */
#define GROUP_SPAN         8u      /* thread indexes a group spans, of which ... */
#define GROUP_THREADS      5u      /* ... these exist */
#define THREAD_CAPACITY    (GROUP_CAPACITY * GROUP_SPAN)
#define OBJECT_CAPACITY    32768u /* of one family */
#define OBJECT_SHIFT       15
#define BUCKET_CAPACITY    32768u
#define BUCKETS_AT_FIRST   1024u
#define OBJECT_SLOT_BYTES  256u
#define CHUNK_BYTES        65536u
#define CHUNK_CAPACITY     262144u /* of one arena: 16 GiB */
#define ARENA_POOLS        16u
#define ARENA_CLASSES      15u
#define ARENA_CLASS_SPAN   0xfeu /* head of a run of whole chunks */
#define ARENA_CLASS_TAKEN  0xffu /* between the arena and a pool, named by a thread */
#define ARENA_CLASS_INSIDE 0xfdu /* a chunk inside a span */
#define CHUNK_BLOCKS       1024u

enum arena_id { ARENA_GENERAL, ARENA_SEM, ARENA_COUNT };

#define HEADER_OFF    0ull
#define PROCS_OFF     MIB(1)  /* 8 MiB */
#define OWNERS_OFF    MIB(10) /* 1 MiB: owner words of the groups */
#define TABLES_OFF    MIB(12) /* a MiB a family: buckets, then the index bitmap */
#define TABLE_BYTES   MIB(1)
#define BITMAP_OFF    KIB(512) /* within a family's part */
#define OBJECTS_OFF   MIB(16)  /* 8 MiB a family */
#define OBJECTS_BYTES MIB(8)
#define GROUPS_OFF    MIB(64)  /* 512 MiB */
#define CHUNKS_OFF    MIB(640) /* 64 MiB an arena: chunk descriptors */
#define CHUNKS_BYTES  MIB(64)
#define ARENAS_OFF    GIB(4) /* 16 GiB an arena */
#define ARENA_BYTES   GIB(16)
#define REGION_BYTES  (ARENAS_OFF + ARENA_COUNT * ARENA_BYTES)

/* ---- Locks ------------------------------------------------------------------------------- */

/*
 * Robust lock (card RLOCK_P1): thread index + 1 of the owner in the low 20 bits, W when somebody
 * may sleep on it. Zero at birth and never initialised again.
 */
typedef uint32_t rlock_shm;
#define RLOCK_OWNER 0x000fffffu
#define RLOCK_W     0x80000000u

/* ---- Registry ---------------------------------------------------------------------------- */

/*
 * The claim word of a thread or process slot (card REG_P1): own generation (odd while owned),
 * the claimer's generation and index + 1 (0 = nobody claims it); 24, 20 and 20 bits.
 */
#define CLAIM_CLAIMER(w)     ((uint32_t)((w)&0xfffff))
#define CLAIM_CLAIMER_GEN(w) ((uint32_t)((w) >> 20 & 0xfffff))
#define CLAIM_GEN(w)         ((uint32_t)((w) >> 40))
#define CLAIM_WORD(gen, cgen, c)                                                                   \
	((uint64_t)((gen)&0xffffff) << 40 | (uint64_t)((cgen)&0xfffff) << 20 | (c))

/* state word: the low byte, and above it the pid of who reserved the slot */
enum proc_state {
	PROC_FREE,
	PROC_LIVE,          /* in use; dead or alive, the kernel says */
	PROC_RESERVED,      /* for itself or for a child, with the token, not registered yet */
	PROC_RESERVED_BARE, /* for itself, without a token: registered in a moment */
};
#define PROC_STATE(w)        ((w)&0xffu)
#define PROC_RESERVER(w)     ((w) >> 8)
#define PROC_WORD(state, by) ((uint32_t)(by) << 8 | (state))

struct proc_shm {
	_Alignas(64) uint64_t claim;
	uint32_t state;
	uint32_t pid;
	_Alignas(8) uint64_t start; /* ident_start() */
	uint32_t undo_lock;         /* robust lock: undo_ref and the links of the records */
	uint32_t undo_ref;          /* this process's undo records, a superset of those in use */
	_Alignas(8) uint64_t undo_clock;
	uint32_t flags;
	uint32_t pid_view;          /* how pid and start are to be read: ident_view(); 0 unknown */
	uint32_t first_thread_link; /* a thread of it: marked dead, the process may be */
	uint32_t attach_ref;        /* blocks of attach records (card SHM_A1) */
	uint32_t spare[16];
};
#define PROC_REAPER    1u /* a reaper: not counted as a user of the namespace */
#define PROC_TOKENLESS 2u /* it could not take the kernel's token: that it is free says nothing */

/* Life word, watch word: the thread's id while it lives; the kernel marks it at its death. */
#define LIFE_DIED    0x40000000u /* FUTEX_OWNER_DIED */
#define LIFE_WAITERS 0x80000000u /* FUTEX_WAITERS */

/* Names of blocks that a thread owns, or is just taking or giving (card ARENA_P1). */
enum name { NAME_POCKET, NAME_FLY, NAME_SIDE, NAME_SOPS, NAME_COUNT };

/* What a thread is doing under the lock that `held` names (stored last, cleared first). */
enum op {
	OP_NONE,
	OP_CREATE, /* op_ix: the index being filled */
	OP_PURGE,  /* op_ix: the removed object's slot, this thread's alone (no lock held) */
	OP_SEND,
	OP_RECEIVE,
	OP_WAIT,
	OP_SET,
	OP_REMOVE,
	OP_ADMIT, /* a sleeping sender's message goes into its queue */
};

enum wait_state {
	WAIT_FREE,
	WAIT_WAITING, /* queued, spinning */
	WAIT_ASLEEP,  /* queued, in the kernel */
	WAIT_GRANTED, /* performed or failed: see result */
	WAIT_REMOVED, /* the object is gone */
};
/* state word of a waiter: request number in the upper 28 bits */
#define WAIT_STATE(w)    ((w)&15u)
#define WAIT_REQUEST(w)  ((w) >> 4)
#define WAIT_WORD(rq, s) ((uint32_t)(rq) << 4 | (s))

#define SEMOPS_INLINE 8
#define WHO_GROUPS    32

struct semop_shm {
	uint16_t num;
	int16_t op;
	int16_t flags;
};

/* A node of a tree of message types (ipc/msg_tree.h). */
struct tree_shm {
	uint32_t left, right;
	_Alignas(8) int64_t key;
};

/* One semaphore that a thread holds (card SEM_H1). */
struct hold_shm {
	_Alignas(8) uint64_t old_word;
	_Alignas(8) uint64_t new_word;
	_Alignas(8) int64_t otime;
	uint32_t cell;     /* in the semaphore arena, units of 16 bytes */
	uint32_t undo_ref; /* record whose adj[undo_ix] changes too; 0 = none */
	uint16_t undo_ix;
	int16_t adj;
	uint32_t spare;
};
#define HOLD_MAX       4
#define HOLD_COUNT(h)  ((h)&7u)
#define HOLD_COMMITTED 8u

struct thread_shm {
	/* claim, lock, names: written by the thread, or in its name under its claim */
	_Alignas(64) uint64_t claim;
	uint32_t held;    /* offset of the lock wanted, held, or owed a wake; 0 = none */
	uint32_t proc_ix; /* whose thread */
	uint32_t tid;
	uint32_t name_ref[NAME_COUNT];
	uint32_t chunk_link;       /* (arena << 24 | chunk) + 1 between arena and pool; 0 = none */
	uint32_t victim_link;      /* thread that this one is burying */
	uint32_t victim_proc_link; /* process slot whose records it gives back, or fills */
	uint32_t op, op_ix, op_family;
	uint32_t op_chosen; /* OP_CREATE: the index came from the cursor, not from next_id */
	/* semaphores */
	_Alignas(64) uint32_t hold;
	uint32_t owes_wake;     /* set index + 1: waiters told but perhaps not woken */
	uint32_t undo_reserved; /* undo record being linked */
	uint32_t spare3;
	struct hold_shm ent[HOLD_MAX];
	/* the waiter: the request of a sleeping call */
	_Alignas(64) uint32_t st;
	int32_t result;
	uint32_t family;
	uint32_t object_ix;
	uint32_t object_gen;
	uint32_t next_link, prev_link;
	uint32_t pid; /* sempid of the request */
	_Alignas(8) uint64_t arrival;
	uint32_t spare4;
	uint16_t nsops;
	uint16_t blocking; /* index of the operation that blocks it */
	uint32_t undo_ref;
	uint8_t alters, spare5, listed, spare0;
	struct semop_shm sop[SEMOPS_INLINE];
	/* messages: what a sleeper wants, and its place in the index of its queue */
	_Alignas(64) struct tree_shm msg; /* key: the type wanted or sent */
	_Alignas(8) uint64_t msg_bytes;   /* receiver: the most that it takes; sender: the size */
	uint32_t msg_kind;
	uint32_t msg_block_ref; /* sender: its message, which NAME_POCKET names too */
	uint32_t msg_changes;   /* queue_shm.changes when it queued */
	uint32_t msg_same_next_link, msg_same_prev_link; /* exact: same type; others: by arrival */
	uint32_t msg_last_link; /* exact, the oldest: the youngest. Others: other end of the run */
	uint32_t spare1[4];
	/* IPC_SET */
	_Alignas(64) _Alignas(8) uint64_t set_qbytes;
	_Alignas(8) int64_t set_time;
	uint32_t set_uid, set_gid, set_mode, set_changes;
	/* messages: the operation under the lock of a queue */
	_Alignas(8) int64_t op_time;
	uint32_t op_block_ref;
	uint32_t op_pid;
	uint32_t op_waiter_link; /* the receiver that is handed the block ... */
	uint32_t op_waiter_request;
	_Alignas(64) uint32_t op_waiter_tid;
	uint32_t op_sender_link; /* ... and the sleeper whose it is */
	uint32_t op_sender_request;
	uint32_t op_forward;    /* others have been told of it: repair finishes it */
	uint32_t msg_owes_wake; /* queue index + 1: waiters told but perhaps not woken */
	uint32_t pocket_bytes;  /* capacity of the block that NAME_POCKET names, if a queue's */
	uint32_t pocket_uses;   /* counts what changes the pocket or its contents */
	/* whose call sleeps: IPC_SET asks for its permission again */
	uint32_t who_euid, who_fsgid;
	uint32_t who_is_capable;  /* CAP_IPC_OWNER */
	uint32_t who_group_count; /* more than there is room for: it must look itself */
	uint32_t who_group[WHO_GROUPS];
	/* claims (card REG_P1), beside victim_link and victim_proc_link */
	uint32_t repairs_link; /* thread whose lock this one is setting right */
	uint32_t claims_over;  /* claims that it has given up, counted */
	uint32_t spare2[19];
};

#define THREAD_BYTES 768u
/* At the very end of the group's page: the life word of its first thread is the last, the next
 * one's before it, and so on; before them all the group's watch word. */
#define LIFE_WORDS_END PAGE_BYTES
#define WATCH_WORD_OFF (LIFE_WORDS_END - (GROUP_THREADS + 1) * 4u)

/* ---- Ids --------------------------------------------------------------------------------- */

/* A family's table (card ID_P1); all but next_id under its lock. */
struct table_shm {
	_Alignas(64) uint32_t lock;
	uint32_t hi;          /* slots that exist, published */
	uint32_t bucket_mask; /* published; readers that miss ask again under the lock */
	int32_t next_id;      /* what the next creation should get; -1 = no wish */
	uint32_t in_use;      /* derived */
	uint32_t cursor;      /* where the search for an index begins */
	int32_t last_ix;      /* the last index taken by that search; -1 at first */
	uint32_t seq;
	_Alignas(8) uint64_t total; /* derived: semaphores of all sets, pages of all segments */
	uint32_t generation;        /* last one given to an object */
	uint32_t spare[3];
};

/* What every object has; the first line of its slot. */
struct object_shm {
	_Alignas(64) uint32_t live; /* id + 1; 0 = none. The publishing word */
	uint32_t gen;               /* 24 bits, never 0 while live */
	int32_t key;
	uint32_t hash_link;
	uint32_t mode, uid, gid, cuid, cgid;
	uint32_t lock;
	_Alignas(8) int64_t ctime;
};

/* ---- Semaphores -------------------------------------------------------------------------- */

/* The word of a semaphore (card SEM_W1). */
#define SEM_TAG           0x3fffffull /* pid of the last operation; if HELD the holder's thread */
#define SEM_HELD          (1ull << 22)
#define SEM_CONT          (1ull << 23) /* somebody sleeps on the low half; beside HELD only */
#define SEM_SLOW          (1ull << 24) /* the word belongs to the set's lock */
#define SEM_GEN_SHIFT     25
#define SEM_GEN_MASK      0xffffffull
#define SEM_VALUE_SHIFT   49
#define SEM_WORD_GEN(w)   ((uint32_t)((w) >> SEM_GEN_SHIFT & SEM_GEN_MASK))
#define SEM_WORD_VALUE(w) ((int)((w) >> SEM_VALUE_SHIFT))
#define SEM_WORD_TAG(w)   ((uint32_t)((w)&SEM_TAG))
#define SEM_WORD(value, gen, tag)                                                                  \
	((uint64_t)(value) << SEM_VALUE_SHIFT | (uint64_t)(gen) << SEM_GEN_SHIFT | (tag))
#define SEMVAL_MAX 32767

struct sem_shm {
	_Alignas(16) uint64_t word;
	_Alignas(8) int64_t otime; /* written by who holds the word, HELD or SLOW */
};
#define SEM_CELL_BYTES 16u

/* Beside each semaphore, under the set's lock only. */
struct semq_shm {
	uint32_t named; /* queued requests that name this semaphore */
	uint32_t alter_head, alter_tail, zero_head, zero_tail; /* single-operation sleepers */
	uint16_t next_value;                                   /* shadow of the outcome */
	int16_t next_adj;
	uint32_t used;    /* the shadow concerns this semaphore */
	uint32_t touched; /* by a request just performed whose operations are no longer at hand */
};

enum sem_intent {
	INTENT_NONE,
	INTENT_SELF,   /* an operation performed under the lock by its own thread */
	INTENT_GRANT,  /* a sleeper's operation, performed on its behalf */
	INTENT_FAIL,   /* a sleeper's request that ended with an error */
	INTENT_SETVAL, /* SETVAL and SETALL: the used semaphores get new values */
	INTENT_SET,    /* IPC_SET: owner and mode from the thread's slot */
	INTENT_EXIT,   /* an undo record applied */
	INTENT_RMID,
};

struct set_shm {
	struct object_shm object;
	uint32_t nsems;
	uint32_t stride;    /* bytes between semaphores: 16, or 64 in small sets */
	uint32_t words_ref; /* in the semaphore arena */
	uint32_t side_ref;  /* struct semq_shm[nsems], in the general arena */
	/* under the lock */
	_Alignas(64) uint32_t intent; /* enum sem_intent; the commit of what is below */
	uint32_t intent_thread;
	uint32_t intent_request;
	int32_t intent_result;
	uint32_t intent_pid;
	uint32_t intent_undo_ref;
	_Alignas(8) int64_t intent_time;
	uint32_t intent_otime_ix; /* semaphore whose otime becomes intent_time; ~0 none */
	uint32_t undo_ref;        /* undo records of this set: the truth */
	_Alignas(8) uint64_t arrival;
	uint32_t alter_head, alter_tail; /* every altering request once a complex one waits */
	uint32_t const_head, const_tail; /* complex requests that only wait for zero */
	uint32_t complex_count;          /* requests of several operations in the lists */
	uint32_t const_count;            /* of these, the ones that only wait for zero */
	uint32_t waiting;                /* requests in all lists */
	uint32_t seal;                   /* over what a set is as long as it lives: sem_seal() */
	uint32_t spare[6];
};

/* Undo record of one process for one set (card UNDO_P1). */
struct undo_shm {
	uint32_t gen;        /* the set's generation; 0 = reusable */
	uint32_t owner_link; /* thread that reserved it while gen is 0 */
	uint32_t proc_ix;
	uint32_t set_ix;
	uint32_t next_in_proc_ref;
	uint32_t next_in_set_ref;
	uint32_t capacity; /* entries that the block has room for */
	uint32_t nsems;
	_Alignas(8) uint64_t stamp; /* by undo_clock: most recently used first at exit */
	int16_t adj[];
};

/* ---- Messages ---------------------------------------------------------------------------- */

/* Head of a message; its text follows (cards MSG_P1 and MSG_I1). */
struct msg_shm {
	uint32_t next_ref; /* the truth; in a cache: the next free block */
	uint32_t prev_ref;
	uint32_t same_ref; /* the next of the same type */
	uint32_t last_ref; /* in the tree: the youngest of this type */
	uint32_t run_ref;  /* first or last of a run of one type: the other end of it */
	uint32_t bytes;    /* of text */
	uint32_t capacity; /* of the block; in a cache */
	uint32_t spare;
	struct tree_shm tree; /* key: the type. Last, so that it lies before the text */
};

#define QUEUE_CACHES     4u
#define QUEUE_CACHE_MOST 8u /* blocks of one cache */

struct queue_shm {
	struct object_shm object;
	/* under the lock: the messages. head_ref and the links are the truth, the rest derived */
	_Alignas(64) uint32_t head_ref;
	uint32_t tail_ref;
	uint32_t root_ref; /* tree by type: the oldest message of each */
	uint32_t count;
	_Alignas(8) uint64_t bytes;
	_Alignas(8) uint64_t qbytes;
	_Alignas(8) int64_t stime;
	_Alignas(8) int64_t rtime;
	uint32_t lspid, lrpid;
	uint32_t changes; /* IPC_SETs so far: sleepers of before look at their permission again */
	uint32_t spare0;
	/* the sleepers: derived from the threads' waiters */
	_Alignas(64) uint32_t receiver_head_link;
	uint32_t receiver_tail_link;
	uint32_t exact_root_link;
	uint32_t other_head_link, other_tail_link;
	uint32_t sender_head_link, sender_tail_link;
	uint32_t waiting; /* in all lists */
	_Alignas(8) uint64_t arrival;
	_Alignas(8) uint64_t smallest; /* no sleeping sender's message is smaller */
	uint32_t spare1[4];
	/* free blocks kept for the next messages: chains by next_ref, the truth */
	_Alignas(64) uint32_t cache_ref[QUEUE_CACHES];
	uint32_t cache_count[QUEUE_CACHES];
	uint32_t spare2[8];
};

/* ---- Shared memory ----------------------------------------------------------------------- */

/* Beside the permissions in object_shm.mode, where IPC_STAT shows them too */
#define SEGMENT_DEST   01000u /* removed, but still attached: goes with the last detach */
#define SEGMENT_LOCKED 02000u /* SHM_LOCK */

/* A segment (card SHM_L1). Its memory is a file beside the region, made at its first attach. */
struct segment_shm {
	struct object_shm object;
	_Alignas(64) _Alignas(8) uint64_t bytes;
	_Alignas(8) int64_t atime;
	_Alignas(8) int64_t dtime;
	_Alignas(8) uint64_t inode; /* of the file, once it is made */
	uint32_t made;
	int32_t id, key; /* of the file's name: key as it was at first, id also when it is gone */
	uint32_t flags;
	uint32_t cpid, lpid;
	uint32_t creator_tid;
	uint32_t lock_uid;                /* whose RLIMIT_MEMLOCK it counts against */
	_Alignas(64) uint32_t attach_seq; /* begins and ends of attaches so far */
	uint32_t intent;                  /* IPC_SET: owner and mode from the thread's slot */
	_Alignas(8) uint64_t next_byte;   /* of the file, for the next attach to lock */
	_Alignas(8) int64_t intent_time;
	_Alignas(8) uint64_t device; /* of the file, once it is made, if it is in huge pages */
	uint32_t seal;               /* over what a segment is as long as it lives: shm_seal() */
	uint32_t spare[21];
};
#define SEGMENT_NORESERVE  1u /* the file system's room was not asked for */
#define SEGMENT_HUGE_SHIFT 8  /* 6 bits from there: of the huge pages' size; 0: small ones */

enum attach_state {
	ATTACH_FREE,
	ATTACH_MAKING, /* the mapping is on its way */
	ATTACH_LIVE,
	ATTACH_LEFT, /* detached; the process is still to be asked: mremap can have made copies */
};

/* One attach of one process; others may hold the same byte, after a fork. */
struct attach_shm {
	uint32_t state;
	uint32_t segment_ix;
	uint32_t segment_gen;
	uint32_t spare;
	_Alignas(8) uint64_t byte;
	_Alignas(8) uint64_t address;
};

struct attach_block_shm {
	uint32_t next_ref;
	uint32_t capacity;
	uint32_t spare[6];
	struct attach_shm record[];
};

/* ---- Arena ------------------------------------------------------------------------------- */

struct chunk_shm {
	_Alignas(64) uint32_t class_ix; /* 1 + class, or ARENA_CLASS_*; 0 = free. The commit */
	uint32_t pool_ix;
	uint32_t span;                 /* chunks of a span, in its head */
	uint32_t ready_pages;          /* bit k: page k of the chunk is real */
	uint32_t free_count;           /* derived */
	uint32_t next_link, prev_link; /* derived: chunks of the pool with free blocks */
	uint32_t listed;
	_Alignas(64) uint64_t free_bits[CHUNK_BLOCKS / 64]; /* 1 = free. The truth */
};

struct pool_shm {
	_Alignas(64) uint32_t lock;
	uint32_t class_link[ARENA_CLASSES]; /* derived */
};

struct arena_shm {
	_Alignas(64) uint32_t lock; /* which chunks are taken */
	uint32_t hi;                /* chunk descriptors that exist, published */
	uint32_t lowest;            /* derived hint: no free chunk below */
	struct pool_shm pool[ARENA_POOLS];
};

/* ---- Header ------------------------------------------------------------------------------ */

struct limits_shm {
	_Alignas(8) uint64_t semmsl, semmns, semopm, semmni;
	_Alignas(8) uint64_t msgmax, msgmnb, msgmni;
	_Alignas(8) uint64_t shmmax, shmall, shmmni;
	_Alignas(8) uint64_t shm_rmid_forced;
};

#define REGION_AUTO    1u /* made because a program asked, not by name: goes when empty */
#define REGION_PRIVATE 2u /* of one `usysv run`: goes with it */

struct header_shm {
	_Alignas(64) uint64_t magic;
	_Alignas(8) uint64_t format;
	uint32_t protocol;
	uint32_t flags;
	_Alignas(8) uint64_t size;
	_Alignas(8) int64_t created; /* seconds since 1970 */
	uint32_t removed;            /* 1: on its way out, nobody may enter any more */
	uint32_t reaper_link;        /* thread of the reaper in office */
	uint32_t undo_owners; /* counts processes that came to have undo records (card WATCH_P1) */
	_Alignas(64) uint32_t proc_hi;
	uint32_t group_hi;
	_Alignas(64) struct limits_shm limits;
	_Alignas(64) struct table_shm table[FAMILY_COUNT];
	_Alignas(64) struct arena_shm arena[ARENA_COUNT];
};

/* ---- What must hold for the above to be one ABI ------------------------------------------ */

#define ASSERT_SIZE(type, n) _Static_assert(sizeof(type) == (n), #type " has another size")
ASSERT_SIZE(struct proc_shm, 128);
ASSERT_SIZE(struct thread_shm, THREAD_BYTES);
ASSERT_SIZE(struct object_shm, 64);
ASSERT_SIZE(struct set_shm, OBJECT_SLOT_BYTES);
ASSERT_SIZE(struct sem_shm, SEM_CELL_BYTES);
ASSERT_SIZE(struct segment_shm, OBJECT_SLOT_BYTES);
ASSERT_SIZE(struct attach_shm, 32);
ASSERT_SIZE(struct attach_block_shm, 32);
ASSERT_SIZE(struct semq_shm, 32);
ASSERT_SIZE(struct queue_shm, OBJECT_SLOT_BYTES);
ASSERT_SIZE(struct msg_shm, 48);
ASSERT_SIZE(struct tree_shm, 16);
ASSERT_SIZE(struct chunk_shm, 192);
ASSERT_SIZE(struct pool_shm, 64);
_Static_assert(sizeof(struct header_shm) <= KIB(64), "the header outgrew its range");
_Static_assert(GROUP_THREADS *THREAD_BYTES <= WATCH_WORD_OFF, "a group outgrew its page");
_Static_assert(THREAD_CAPACITY - 1 <= RLOCK_OWNER, "thread indexes outgrew the lock word");
_Static_assert(PROC_CAPACITY * sizeof(struct proc_shm) <= MIB(8), "process slots overlap");
_Static_assert(CHUNK_CAPACITY * sizeof(struct chunk_shm) <= CHUNKS_BYTES, "descriptors overlap");

/* FNV-1a over the sizes and offsets that a process must agree on. */
uint64_t layout_format(void);

#endif
