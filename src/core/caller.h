/* SPDX-License-Identifier: MIT */
/*
 * Who asks. The engine (core and ipc) is a state machine over a region and knows nothing of the
 * process that it runs in: whose thread slot it writes, whose credentials count, how user memory
 * is copied and who is dead are all handed in. So the same code serves a process, threads that
 * pose as processes, a stepper that declares its caller dead at every instruction, or a daemon
 * acting for somebody else.
 */
#ifndef USYSV_CORE_CALLER_H
#define USYSV_CORE_CALLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct caller;
struct segment_shm;

/* Credentials as the kernel would look at them. Groups are borrowed, not owned. */
struct creds {
	uint32_t uid, euid, egid, fsgid;
	const gid_t *groups;
	size_t group_count;
	bool cap_ipc_owner, cap_sys_admin, cap_sys_resource, cap_ipc_lock;
};

struct caller_ops {
	/*
	 * Is the thread with this index dead, so that it will never write to the region again?
	 * Only a thread whose slot is owned is asked about. `patient`: somebody has waited for
	 * it already, so costlier questions are worth asking.
	 */
	bool (*is_dead)(struct caller *c, uint32_t thread_ix, bool patient);
	/* Has the process of this slot ended, not merely its image (exec keeps it)? */
	bool (*is_process_dead)(struct caller *c, uint32_t proc_ix);
	/* Is the image gone that was registered in this slot, by exec or with the process? Null:
	 * no. */
	bool (*is_image_gone)(struct caller *c, uint32_t proc_ix);
	/* Copies from or to the caller's memory; -EFAULT. Called with no lock held. */
	int (*copy_in)(struct caller *c, void *to, const void *user, size_t n);
	int (*copy_out)(struct caller *c, void *user, const void *from, size_t n);
	/*
	 * Sets right what the dead thread was changing: the semaphores it held and, unless lock_off
	 * is 0, what that lock of its protects. Called under the claim; ipc's repair_lock().
	 */
	void (*repair)(struct caller *c, uint32_t dead_ix, uint64_t lock_off);
	/*
	 * The region contradicts itself, and the contradiction is being set right: for a message.
	 * Must not wait. Null: nobody is told.
	 */
	void (*note_damage)(struct caller *c);
	/* Unlinks the file of a segment that is no more; null: there are no files. May be repeated.
	 */
	void (*drop_segment)(struct caller *c, const struct segment_shm *s);
};

enum busy_kind {
	BUSY_LOCK,  /* a robust lock: rlock_announce() before the sleep */
	BUSY_WORD,  /* a semaphore word that a thread holds: sem_announce() */
	BUSY_VALUE, /* a semaphore whose value must change (word_off: the 64-bit word, value: the
		     * semaphore's): a moment's spinning may save the queue */
};

/* What a busy lock or word leaves for the client to wait on, with nothing held. */
struct busy {
	uint64_t word_off;   /* the futex word's offset in the region */
	uint32_t value;      /* sleep while it holds this */
	uint32_t owner_link; /* thread that has it, index + 1; 0 unknown */
	enum busy_kind kind;
};

struct caller {
	unsigned char *base; /* the region's mapping */
	uint32_t thread_ix;
	uint32_t proc_ix;
	uint32_t pid; /* thread-group id, as sempid shows it */
	const struct creds *creds;
	const struct caller_ops *ops;
	void *context; /* the client's own */
	struct busy busy;
	uint32_t owed; /* lock that this thread slept on and has not taken since; 0 none */
};

/* What an engine call says besides 0 and -errno; its direct caller handles each. */
enum outcome {
	OUTCOME_DONE = 0,
	OUTCOME_BUSY = 1,  /* see caller.busy: wait with nothing held, start over */
	OUTCOME_SLEEP = 2, /* the request is queued in the thread's waiter: sleep on its state */
};

#endif
