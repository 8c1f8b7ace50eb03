// SPDX-License-Identifier: MIT
/*
 * Memory of a stage and its workers: see shared.h.
 */
#include "shared.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct shared *shared_open(int memory_fd)
{
	void *memory =
		mmap(NULL, sizeof(struct shared), PROT_READ | PROT_WRITE, MAP_SHARED, memory_fd, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

struct shared *shared_create(void)
{
	int fd = memfd_create("differential", 0);
	struct shared *shared;

	if (fd < 0 || ftruncate(fd, sizeof(struct shared)))
		return NULL;
	shared = shared_open(fd);
	if (!shared)
		return NULL;
	shared->memory_fd = fd;
	memset(shared->slot_id, 0xff, sizeof(shared->slot_id));
	return shared;
}

void shared_process_ends(struct shared *shared, unsigned process_ix)
{
	for (unsigned ix = 0; ix < families_count; ix++)
		if (families[ix]->process_ends)
			families[ix]->process_ends(shared, process_ix);
}

void shared_name_pid(struct shared *shared, pid_t pid, const char *name)
{
	struct pid_name *entry = &shared->pid_name[shared->pid_name_count++ % PID_NAMES_MAX];

	entry->pid = pid;
	text_copy(entry->name, sizeof(entry->name), name);
}

void shared_put_pid(const struct shared *shared, struct text *text, pid_t pid)
{
	unsigned count = shared->pid_name_count;
	unsigned oldest = count > PID_NAMES_MAX ? count - PID_NAMES_MAX : 0;

	if (pid == 0) {
		text_puts(text, "0");
		return;
	}
	while (count-- > oldest) {
		if (shared->pid_name[count % PID_NAMES_MAX].pid == pid) {
			text_puts(text, shared->pid_name[count % PID_NAMES_MAX].name);
			return;
		}
	}
	text_printf(text, "?%d", (int)pid);
}

void shared_put_time(const struct shared *shared, struct text *text, time_t when)
{
	unsigned ix = shared->tick_count;

	if (when == 0) {
		text_puts(text, "0");
		return;
	}
	while (ix > 0 && when < shared->tick[ix - 1])
		ix--;
	if (ix == 0)
		text_puts(text, "past?");
	else if (when > time(NULL) + 1)
		text_puts(text, "future?");
	else
		text_printf(text, "t%u", ix);
}

int shared_id(const struct shared *shared, unsigned family_ix, int64_t argument)
{
	if (argument >= 0 && argument < SLOTS_MAX)
		return shared->slot_id[family_ix][argument];
	if (argument == ID_NEVER)
		return 77 * 32768 + 5000;
	return -1;
}
