// SPDX-License-Identifier: MIT
/*
 * Shared memory: the calls, and everything that can be seen of the segments. What happens in
 * memory is family_shm_memory.c's; which calls are worth making is decided in
 * family_shm_generate.c.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "family_common.h"
#include "family_shm.h"
#include "worker.h"

static const struct name_value get_flags[] = {
	{"CREAT", IPC_CREAT},
	{"EXCL", IPC_EXCL},
	{"NORESERVE", SHM_NORESERVE},
	{NULL, 0},
};

static const struct name_value attach_flags[] = {
	{"RDONLY", SHM_RDONLY}, {"RND", SHM_RND}, {"REMAP", SHM_REMAP},
	{"EXEC", SHM_EXEC},     {NULL, 0},
};

static const struct name_value wheres[] = {
	{"null", WHERE_NULL},     {"window", WHERE_WINDOW},
	{"attach", WHERE_ATTACH}, {"taken", WHERE_TAKEN},
	{"low", WHERE_LOW},       {"top", WHERE_TOP},
	{"wrap", WHERE_WRAP},     {NULL, 0},
};

static const struct name_value commands[] = {
	{"IPC_STAT", IPC_STAT},         {"IPC_SET", IPC_SET},
	{"IPC_RMID", IPC_RMID},         {"SHM_STAT", SHM_STAT},
	{"IPC_INFO", IPC_INFO},         {"SHM_INFO", SHM_INFO},
	{"SHM_STAT_ANY", SHM_STAT_ANY}, {"SHM_LOCK", SHM_LOCK},
	{"SHM_UNLOCK", SHM_UNLOCK},     {NULL, 0},
};

static const struct name_value protections[] = {
	{"none", PROT_NONE},
	{"r", PROT_READ},
	{"rw", PROT_READ | PROT_WRITE},
	{"rx", PROT_READ | PROT_EXEC},
	{"rwx", PROT_READ | PROT_WRITE | PROT_EXEC},
	{NULL, 0},
};

static const struct name_value remaps[] = {
	{"move", REMAP_MOVE},
	{"duplicate", REMAP_DUPLICATE},
	{"resize", REMAP_RESIZE},
	{NULL, 0},
};

static void call_shmget(struct hands *hands, const struct step *step, struct outcome *outcome)
{
	struct text text = TEXT_ON(outcome->text);
	int id = shmget((key_t)step->arg[0], (size_t)step->arg[1], (int)step->arg[2]);

	if (put_result(outcome, &text, id))
		hands->shared->slot_id[FAMILY_SHM][step->arg[3]] = id;
}

static void put_attach(struct text *text, uint64_t address, bool anywhere)
{
	if (!anywhere && shm_in_window(address))
		text_printf(text, "window+%d", (int)((address - WINDOW_ADDRESS) / SHM_PAGE_BYTES));
	else if (!anywhere)
		text_printf(text, "%#lx", (unsigned long)address);
	else if (address == 0 || shm_in_window(address) || address % SHM_PAGE_BYTES)
		text_puts(text, "a strange place");
	else
		text_puts(text, "somewhere");
}

static void call_shmat(struct hands *hands, const struct step *step, struct outcome *outcome)
{
	struct text text = TEXT_ON(outcome->text);
	struct shared *shared = hands->shared;
	int id = shared_id(shared, FAMILY_SHM, step->arg[0]);
	int flags = (int)step->arg[3];
	uint64_t address;
	void *got;

	if (!shm_address(hands, step->arg[1], step->arg[2], step->arg[4], step->arg[5], &address,
			 &text))
		return;
	/* Nothing takes the place of what the program needs. */
	if (step->arg[1] == WHERE_TAKEN || step->arg[1] == WHERE_ATTACH)
		flags &= ~SHM_REMAP;
	got = shmat(id, (void *)(uintptr_t)address, flags);
	if (got == (void *)-1) {
		put_result(outcome, &text, -1);
		return;
	}
	shm_sharpen(shared, id, BLUR_ATIME | BLUR_LPID);
	put_attach(&text, (uint64_t)(uintptr_t)got, address == 0);
	if (got == NULL) /* a null pointer shall stay one: doc/COMPAT.md, page-zero */
		shmdt(got);
	if (hands->is_child)
		return;
	shared->has_attached[hands->process_ix] = 1;
	shared->has_pieces |= (flags & SHM_REMAP) != 0;
	if (address == 0)
		shared->attach_address[hands->process_ix][step->arg[5] % ATTACHES_MAX] =
			(uint64_t)(uintptr_t)got;
}

static void call_shmdt(struct hands *hands, const struct step *step, struct outcome *outcome)
{
	struct text text = TEXT_ON(outcome->text);
	struct shared *shared = hands->shared;
	uint64_t address;
	int id;

	if (!shm_address(hands, step->arg[0], step->arg[1], step->arg[3], step->arg[2], &address,
			 &text))
		return;
	id = shared->blur_count ? shm_attached_at(address) : -1;
	if (!put_result(outcome, &text, shmdt((void *)(uintptr_t)address)))
		return;
	shm_sharpen(shared, id, BLUR_DTIME | BLUR_LPID);
	for (unsigned at = 0; at < ATTACHES_MAX && !hands->is_child; at++)
		if (shared->attach_address[hands->process_ix][at] == address)
			shared->attach_address[hands->process_ix][at] = 0;
}

static void put_ds(const struct shared *shared, struct text *text, const struct shmid_ds *ds,
		   unsigned blur, bool with_nattch)
{
	put_perm(text, &ds->shm_perm);
	text_printf(text, " size=%lu cpid=", (unsigned long)ds->shm_segsz);
	shared_put_pid(shared, text, ds->shm_cpid);
	text_puts(text, " lpid=");
	if (blur & BLUR_LPID)
		text_puts(text, "~");
	else
		shared_put_pid(shared, text, ds->shm_lpid);
	text_puts(text, " nattch=");
	if (!with_nattch)
		text_puts(text, ds->shm_nattch ? "~" : "0");
	else
		text_putd(text, (long)ds->shm_nattch -
					(shared->fault == FAULT_NATTCH && ds->shm_nattch == 2));
	text_puts(text, " atime=");
	if (blur & BLUR_ATIME)
		text_puts(text, "~");
	else
		shared_put_time(shared, text, ds->shm_atime);
	text_puts(text, " dtime=");
	if (blur & BLUR_DTIME)
		text_puts(text, "~");
	else
		shared_put_time(shared, text, ds->shm_dtime);
	text_puts(text, " ctime=");
	shared_put_time(shared, text, ds->shm_ctime);
}

static void put_limits(struct text *text, const struct shminfo *info)
{
	text_printf(text, " max=%lu min=%lu mni=%lu seg=%lu all=%lu", (unsigned long)info->shmmax,
		    (unsigned long)info->shmmin, (unsigned long)info->shmmni,
		    (unsigned long)info->shmseg, (unsigned long)info->shmall);
}

static void put_usage(struct text *text, const struct shm_info *info)
{
	text_printf(text, " ids=%d total=%lu swaps=%lu,%lu", info->used_ids,
		    (unsigned long)info->shm_tot, (unsigned long)info->swap_attempts,
		    (unsigned long)info->swap_successes);
}

/* What is in memory may be swapped out at any time. */
static void put_memory(struct text *text, const struct shm_info *info)
{
	text_printf(text, " there=%lu", (unsigned long)(info->shm_rss + info->shm_swp));
}

static void call_shmctl(struct hands *hands, const struct step *step, struct outcome *outcome)
{
	struct text text = TEXT_ON(outcome->text);
	struct shared *shared = hands->shared;
	int id = shared_id(shared, FAMILY_SHM, step->arg[0]);
	int command = (int)step->arg[1], known_id = id;
	struct shmid_ds ds;
	void *place;

	memset(&ds, 0, sizeof(ds));
	fill_perm(&ds.shm_perm, step->arg[3], step->arg[4]);
	place = hands_place(hands, step->arg[2], command == IPC_SET ? &ds : NULL, sizeof(ds));
	if (command == SHM_STAT || command == SHM_STAT_ANY)
		id = index_of(id);
	outcome->ret = shmctl(id, command, place);
	if (!put_result(outcome, &text, outcome->ret) || step->arg[2] != POINTER_GOOD)
		return;
	if (outcome->ret > 0)
		known_id = (int)outcome->ret;
	switch (command) {
	case IPC_STAT:
	case SHM_STAT:
	case SHM_STAT_ANY:
		/* Who may not read the maps of others counts calls: doc/COMPAT.md, shm-nattch. */
		put_ds(shared, &text, place, shm_blur_of(shared, known_id),
		       geteuid() == 0 || !shared->has_pieces);
		break;
	case IPC_INFO:
		put_limits(&text, place);
		break;
	case SHM_INFO:
		put_usage(&text, place);
		put_memory(&text, place);
		break;
	default:
		break;
	}
}

static const struct op shm_ops[SHM_OP_COUNT] = {
	[SHM_OP_GET] = {.name = "shmget",
			.traits = OP_IN_HANDLER,
			.call = call_shmget,
			.params = {{"key", PARAM_INT, 0, 0, NULL},
				   {"size", PARAM_INT, 1, 4096, NULL},
				   {"flags", PARAM_FLAGS, 2, IPC_CREAT | 0600, get_flags},
				   {"to", PARAM_SLOT, 3, 0, NULL}}},
	[SHM_OP_AT] = {.name = "shmat",
		       .traits = OP_IN_HANDLER,
		       .call = call_shmat,
		       .params = {{"id", PARAM_ID, 0, 0, NULL},
				  {"where", PARAM_CHOICE, 1, WHERE_NULL, wheres},
				  {"page", PARAM_INT, 2, 0, NULL},
				  {"flags", PARAM_FLAGS, 3, 0, attach_flags},
				  {"byte", PARAM_INT, 4, 0, NULL},
				  {"at", PARAM_INT, 5, 0, NULL}}},
	[SHM_OP_DT] = {.name = "shmdt",
		       .traits = OP_IN_HANDLER,
		       .call = call_shmdt,
		       .params = {{"where", PARAM_CHOICE, 0, WHERE_WINDOW, wheres},
				  {"page", PARAM_INT, 1, 0, NULL},
				  {"at", PARAM_INT, 2, 0, NULL},
				  {"byte", PARAM_INT, 3, 0, NULL}}},
	[SHM_OP_CTL] = {.name = "shmctl",
			.traits = OP_IN_HANDLER,
			.call = call_shmctl,
			.params = {{"id", PARAM_ID, 0, 0, NULL},
				   {"cmd", PARAM_CHOICE, 1, IPC_STAT, commands},
				   {"pointer", PARAM_CHOICE, 2, POINTER_GOOD, pointer_names},
				   {"mode", PARAM_OCTAL, 3, 0600, NULL},
				   {"person", PARAM_INT, 4, 0, NULL}}},
	[SHM_OP_READ] = {.name = "read-memory",
			 .call = shm_call_read,
			 .params = {{"where", PARAM_CHOICE, 0, WHERE_WINDOW, wheres},
				    {"page", PARAM_INT, 1, 0, NULL},
				    {"at", PARAM_INT, 2, 0, NULL},
				    {"count", PARAM_INT, 3, 1, NULL}}},
	[SHM_OP_WRITE] = {.name = "write-memory",
			  .call = shm_call_write,
			  .params = {{"where", PARAM_CHOICE, 0, WHERE_WINDOW, wheres},
				     {"page", PARAM_INT, 1, 0, NULL},
				     {"at", PARAM_INT, 2, 0, NULL},
				     {"byte", PARAM_INT, 3, 0, NULL},
				     {"value", PARAM_INT, 4, 1, NULL}}},
	/* After these a look is due: nobody else has noticed what they did. */
	[SHM_OP_MUNMAP] = {.name = "munmap",
			   .traits = OP_LOUD,
			   .call = shm_call_munmap,
			   .params = {{"page", PARAM_INT, 0, 0, NULL},
				      {"count", PARAM_INT, 1, 1, NULL}}},
	[SHM_OP_MPROTECT] = {.name = "mprotect",
			     .traits = OP_LOUD,
			     .call = shm_call_mprotect,
			     .params = {{"page", PARAM_INT, 0, 0, NULL},
					{"count", PARAM_INT, 1, 1, NULL},
					{"prot", PARAM_CHOICE, 2, PROT_READ, protections}}},
	[SHM_OP_MREMAP] = {.name = "mremap",
			   .traits = OP_LOUD,
			   .call = shm_call_mremap,
			   .params = {{"page", PARAM_INT, 0, 0, NULL},
				      {"count", PARAM_INT, 1, 1, NULL},
				      {"to", PARAM_INT, 2, 0, NULL},
				      {"length", PARAM_INT, 3, 1, NULL},
				      {"how", PARAM_CHOICE, 4, REMAP_MOVE, remaps}}},
	[SHM_OP_MMAP] = {.name = "mmap",
			 .traits = OP_LOUD,
			 .call = shm_call_mmap,
			 .params = {{"page", PARAM_INT, 0, 0, NULL},
				    {"count", PARAM_INT, 1, 1, NULL}}},
};

static int look(int ix, union object_ds *ds, struct object_hint *hint)
{
	int id = shmctl(ix, SHM_STAT_ANY, &ds->shm);
	size_t pages =
		ds->shm.shm_segsz / SHM_PAGE_BYTES + (ds->shm.shm_segsz % SHM_PAGE_BYTES != 0);

	hint->size = (int16_t)(pages > 64 ? 64 : pages);
	hint->value[0] = (int32_t)ds->shm.shm_nattch;
	return id;
}

static void put_segment(const struct shared *shared, struct text *text, int id,
			const union object_ds *ds, struct object_hint *hint)
{
	(void)hint;
	put_ds(shared, text, &ds->shm, shm_blur_of(shared, id), true);
}

static void dump(const struct shared *shared, struct text *text, struct object_hint *hints)
{
	static const struct looker looker = {FAMILY_SHM, look, put_segment};
	struct shm_info info;
	int highest;

	memset(&info, 0, sizeof(info));
	highest = shmctl(0, SHM_INFO, (void *)&info);
	dump_objects(&looker, shared, text, hints, highest, info.used_ids);
	shm_dump_pieces(shared, text, hints);
	/* Not what is in memory: pages that the look itself, reading, has brought there the kernel
	 * may drop at any time. */
	text_printf(text, "shm highest %d", highest);
	put_usage(text, &info);
	text_puts(text, "\n");
}

const struct family shm_family = {
	.name = "shm",
	.view_path = "/proc/sysvipc/shm",
	.view_columns = "nnnnplnnnnnadtrs",
	.ops = shm_ops,
	.op_count = SHM_OP_COUNT,
	.generate = shm_generate,
	.choose_style = shm_choose_style,
	.dump = dump,
	.process_forks = shm_process_forks,
	.process_ends = shm_process_ends,
};
