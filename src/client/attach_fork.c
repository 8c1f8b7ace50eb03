// SPDX-License-Identifier: MIT
/* What becomes of attach records over fork and exec; see the header. */
#include "client/attach_fork.h"

#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/sys.h"
#include "client/wait.h"
#include "core/region.h"
#include "core/rlock.h"
#include "ipc/repair.h"
#include "ipc/sem.h"
#include "ipc/shm.h"

void attach_fork_record(struct thread_block *tb, uint32_t child_ix)
{
	section_enter(tb);
	/* no memory: the child is counted when it makes a call */
	while (shm_fork(&tb->caller, child_ix, time(NULL)) == OUTCOME_BUSY)
		wait_busy_in_section(tb);
	rlock_settle(&tb->caller);
	section_leave(tb);
}

/* Between fork's two sides, where the child has no slot yet. With both locks held. */
static struct {
	struct attach_shm *record;
	uint32_t count;
	size_t bytes;
} heritage;

void attach_fork_copy(struct thread_block *tb)
{
	uint32_t most = shm_fork_most(&tb->caller);
	long memory;

	if (!most)
		return;
	heritage.bytes = most * sizeof(*heritage.record);
	memory = sys_call(SYS_mmap, 0, (long)heritage.bytes, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory < 0 && memory > -4096)
		return; /* the child is not counted, but seen all the same */
	heritage.record = (struct attach_shm *)memory;
	heritage.count = shm_fork_copy(&tb->caller, heritage.record, most, time(NULL));
}

void attach_fork_drop(void)
{
	if (heritage.record)
		sys_call(SYS_munmap, (long)heritage.record, (long)heritage.bytes, 0, 0, 0, 0);
	heritage.record = NULL;
}

bool attach_fork_is_heir(void)
{
	return heritage.record;
}

void attach_fork_take(struct thread_block *tb)
{
	section_enter(tb);
	while (shm_inherit(&tb->caller, heritage.record, heritage.count) == OUTCOME_BUSY)
		wait_busy_in_section(tb);
	rlock_settle(&tb->caller);
	section_leave(tb);
	attach_fork_drop();
}

void attach_begin_anew(struct thread_block *tb)
{
	section_enter(tb);
	while (repair_begin_anew(&tb->caller, time(NULL)) == OUTCOME_BUSY)
		wait_busy_in_section(tb);
	rlock_settle(&tb->caller);
	if (region_known_proc(tb->caller.base, tb->caller.proc_ix)->undo_ref)
		sem_undo_announce(&tb->caller);
	section_leave(tb);
}
