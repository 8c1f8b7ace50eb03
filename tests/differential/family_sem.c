// SPDX-License-Identifier: MIT
/*
 * Semaphores: the calls, and everything that can be seen of the sets. Which calls are worth
 * making is decided in family_sem_generate.c.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "family_common.h"
#include "family_sem.h"
#include "worker.h"

union semun {
	int val;
	struct semid_ds *buf;
	unsigned short *array;
	struct seminfo *info;
	void *any;
};

static const struct name_value get_flags[] = {
	{"CREAT", IPC_CREAT},
	{"EXCL", IPC_EXCL},
	{"NOWAIT", IPC_NOWAIT},
	{NULL, 0},
};

static const struct name_value item_flags[] = {
	{"NOWAIT", IPC_NOWAIT},
	{"UNDO", SEM_UNDO},
	{"ODD", 0x100},
	{NULL, 0},
};

static const struct name_value timeouts[] = {
	{"none", TIMEOUT_NONE},
	{"long", TIMEOUT_LONG},
	{"minus", TIMEOUT_MINUS},
	{"nsec", TIMEOUT_NSEC},
	{"minus-nsec", TIMEOUT_MINUS_NSEC},
	{"bad", TIMEOUT_BAD},
	{NULL, 0},
};

static const struct name_value brief_timeouts[] = {
	{"zero", TIMEOUT_ZERO},
	{"short", TIMEOUT_SHORT},
	{NULL, 0},
};

static const struct name_value commands[] = {
	{"GETVAL", GETVAL},     {"SETVAL", SETVAL},     {"GETALL", GETALL},
	{"SETALL", SETALL},     {"GETPID", GETPID},     {"GETNCNT", GETNCNT},
	{"GETZCNT", GETZCNT},   {"IPC_STAT", IPC_STAT}, {"IPC_SET", IPC_SET},
	{"IPC_RMID", IPC_RMID}, {"SEM_STAT", SEM_STAT}, {"SEM_STAT_ANY", SEM_STAT_ANY},
	{"IPC_INFO", IPC_INFO}, {"SEM_INFO", SEM_INFO}, {NULL, 0},
};

static void call_semget(struct hands *hands, const struct step *step, struct outcome *outcome)
{
	struct text text = TEXT_ON(outcome->text);
	int id = semget((key_t)step->arg[0], (int)step->arg[1], (int)step->arg[2]);

	if (put_result(outcome, &text, id))
		hands->shared->slot_id[FAMILY_SEM][step->arg[3]] = id;
}

static void call_semop(struct hands *hands, const struct step *step, struct outcome *outcome)
{
	static const struct timespec values[] = {
		[TIMEOUT_ZERO] = {0, 0},          [TIMEOUT_SHORT] = {0, 2000000},
		[TIMEOUT_LONG] = {100000, 0},     [TIMEOUT_MINUS] = {-1, 0},
		[TIMEOUT_NSEC] = {1, 1000000000}, [TIMEOUT_MINUS_NSEC] = {0, -1},
	};
	struct text text = TEXT_ON(outcome->text);
	struct sembuf *operations;
	struct sembuf wanted[ITEMS_MAX];
	int id = shared_id(hands->shared, FAMILY_SEM, step->arg[0]);
	size_t count = step->arg[4] ? (size_t)step->arg[4] : step->item_count;
	long ret;

	memset(wanted, 0, sizeof(wanted));
	for (unsigned ix = 0; ix < step->item_count; ix++) {
		wanted[ix].sem_num = (unsigned short)step->item[ix].num;
		wanted[ix].sem_op = (short)step->item[ix].value;
		wanted[ix].sem_flg = (short)step->item[ix].flags;
		if (hands->never_sleep)
			wanted[ix].sem_flg |= IPC_NOWAIT;
		if (hands->shared->fault == FAULT_UNDO && wanted[ix].sem_op == 2)
			wanted[ix].sem_flg &= ~SEM_UNDO;
	}
	operations =
		hands_place(hands, step->arg[5], wanted, step->item_count * sizeof(struct sembuf));
	if (step->arg[3] == TIMEOUT_NONE) {
		ret = semop(id, operations, count);
	} else {
		struct timespec timeout = {0, 0};

		if (step->arg[3] != TIMEOUT_BAD)
			timeout = values[step->arg[3]];
		ret = semtimedop(id, operations, count,
				 step->arg[3] == TIMEOUT_BAD ? (void *)hands->edge : &timeout);
	}
	if (ret < 0 && errno == EFBIG && hands->shared->fault == FAULT_ERRNO)
		errno = EINVAL;
	if (ret < 0 && errno == EIDRM && hands->shared->fault == FAULT_HANG)
		for (;;)
			clock_nanosleep(CLOCK_MONOTONIC, 0, &(struct timespec){.tv_nsec = 1000},
					NULL);
	put_result(outcome, &text, ret);
}

static void put_ds(const struct shared *shared, struct text *text, const struct semid_ds *ds)
{
	put_perm(text, &ds->sem_perm);
	text_puts(text, " otime=");
	shared_put_time(shared, text,
			shared->fault == FAULT_OTIME && ds->sem_nsems == 1 ? 0 : ds->sem_otime);
	text_puts(text, " ctime=");
	shared_put_time(shared, text, ds->sem_ctime);
	text_puts(text, " nsems=");
	text_putd(text, (long)ds->sem_nsems);
}

static void put_info(struct text *text, const struct seminfo *info)
{
	text_printf(text, " map=%d mni=%d mns=%d mnu=%d msl=%d opm=%d ume=%d usz=%d vmx=%d aem=%d",
		    info->semmap, info->semmni, info->semmns, info->semmnu, info->semmsl,
		    info->semopm, info->semume, info->semusz, info->semvmx, info->semaem);
}

/* The union argument of semctl for the command of the step. */
static union semun prepare_argument(struct hands *hands, const struct step *step)
{
	union semun argument = {.any = NULL};
	unsigned short values[ITEMS_MAX] = {0};
	struct semid_ds ds;

	switch (step->arg[2]) {
	case SETVAL:
		argument.val = (int)step->arg[3];
		break;
	case SETALL:
		for (unsigned ix = 0; ix < step->item_count; ix++)
			if (step->item[ix].num >= 0 && step->item[ix].num < ITEMS_MAX)
				values[step->item[ix].num] = (unsigned short)step->item[ix].value;
		argument.any = hands_place(hands, step->arg[4], values, sizeof(values));
		break;
	case IPC_SET:
		memset(&ds, 0, sizeof(ds));
		fill_perm(&ds.sem_perm, step->arg[5], step->arg[6]);
		argument.any = hands_place(hands, step->arg[4], &ds, sizeof(ds));
		break;
	case GETALL:
		argument.any = hands_place(hands, step->arg[4], NULL, sizeof(values));
		break;
	case IPC_STAT:
	case SEM_STAT:
	case SEM_STAT_ANY:
		argument.any = hands_place(hands, step->arg[4], NULL, sizeof(ds));
		break;
	case IPC_INFO:
	case SEM_INFO:
		argument.any = hands_place(hands, step->arg[4], NULL, sizeof(struct seminfo));
		break;
	default:
		break;
	}
	return argument;
}

static void call_semctl(struct hands *hands, const struct step *step, struct outcome *outcome)
{
	struct text text = TEXT_ON(outcome->text);
	const struct shared *shared = hands->shared;
	int id = shared_id(shared, FAMILY_SEM, step->arg[0]);
	int command = (int)step->arg[2];
	union semun argument = prepare_argument(hands, step);
	int ret;

	if (command == SEM_STAT || command == SEM_STAT_ANY)
		id = index_of(id);
	if (command == SETVAL && argument.val == 3 && shared->fault == FAULT_CRASH)
		raise(SIGSEGV);
	ret = semctl(id, (int)step->arg[1], command, argument);
	if (command == GETPID && ret > 0) {
		shared_put_pid(shared, &text, ret);
		return;
	}
	if (!put_result(outcome, &text, ret) || step->arg[4] != POINTER_GOOD)
		return;
	switch (command) {
	case GETALL:
		for (unsigned ix = 0; ix < ITEMS_MAX; ix++)
			text_printf(&text, " %u", argument.array[ix]);
		break;
	case IPC_STAT:
	case SEM_STAT:
	case SEM_STAT_ANY:
		put_ds(shared, &text, argument.buf);
		break;
	case IPC_INFO:
	case SEM_INFO:
		put_info(&text, argument.info);
		break;
	default:
		break;
	}
}

static const struct op sem_ops[SEM_OP_COUNT] = {
	[SEM_OP_GET] = {.name = "semget",
			.call = call_semget,
			.params = {{"key", PARAM_INT, 0, 0, NULL},
				   {"nsems", PARAM_INT, 1, 0, NULL},
				   {"flags", PARAM_FLAGS, 2, IPC_CREAT | 0600, get_flags},
				   {"to", PARAM_SLOT, 3, 0, NULL}}},
	[SEM_OP_OP] = {.name = "semop",
		       .traits = OP_MAY_SLEEP,
		       .call = call_semop,
		       .params = {{"id", PARAM_ID, 0, 0, NULL},
				  {"ops", PARAM_LIST, 0, 0, item_flags},
				  {"count", PARAM_INT, 4, 0, NULL},
				  {"pointer", PARAM_CHOICE, 5, POINTER_GOOD, pointer_names},
				  {"timeout", PARAM_CHOICE, 3, TIMEOUT_NONE, timeouts}}},
	/* The same call with a time-out that ends within the step, even if it does sleep. */
	[SEM_OP_BRIEF] = {.name = "semop-briefly",
			  .call = call_semop,
			  .params = {{"id", PARAM_ID, 0, 0, NULL},
				     {"ops", PARAM_LIST, 0, 0, item_flags},
				     {"timeout", PARAM_CHOICE, 3, TIMEOUT_ZERO, brief_timeouts}}},
	[SEM_OP_CTL] = {.name = "semctl",
			.call = call_semctl,
			.params = {{"id", PARAM_ID, 0, 0, NULL},
				   {"num", PARAM_INT, 1, 0, NULL},
				   {"cmd", PARAM_CHOICE, 2, GETVAL, commands},
				   {"val", PARAM_INT, 3, 0, NULL},
				   {"values", PARAM_LIST, 0, 0, item_flags},
				   {"pointer", PARAM_CHOICE, 4, POINTER_GOOD, pointer_names},
				   {"mode", PARAM_OCTAL, 5, 0600, NULL},
				   {"person", PARAM_INT, 6, 0, NULL}}},
};

/* The values and counters of one set. */
static void dump_set(const struct shared *shared, struct text *text, int id, unsigned count,
		     struct object_hint *hint)
{
	unsigned short values[64];
	int err;

	if (count > sizeof(values) / sizeof(values[0]))
		return;
	if (semctl(id, 0, GETALL, (union semun){.array = values}) < 0) {
		err = errno;
		text_puts(text, " GETALL ");
		text_result(text, -1, err);
		return;
	}
	for (unsigned ix = 0; ix < count; ix++) {
		int pid = semctl(id, (int)ix, GETPID);
		int ncnt = semctl(id, (int)ix, GETNCNT);
		int zcnt = semctl(id, (int)ix, GETZCNT);

		if (shared->fault == FAULT_NCNT && ncnt == 2)
			ncnt++;
		text_puts(text, " | ");
		text_putd(text, values[ix]);
		text_puts(text, " ");
		if (pid < 0)
			text_result(text, -1, errno);
		else
			shared_put_pid(shared, text, pid);
		if (ncnt) {
			text_puts(text, " n");
			text_putd(text, ncnt);
		}
		if (zcnt) {
			text_puts(text, " z");
			text_putd(text, zcnt);
		}
		if (hint && ix < HINT_VALUES_MAX)
			hint->value[ix] = values[ix];
	}
}

static int look(int ix, union object_ds *ds, struct object_hint *hint)
{
	int id = semctl(ix, 0, SEM_STAT_ANY, (union semun){.buf = &ds->sem});

	hint->size = (int16_t)ds->sem.sem_nsems;
	return id;
}

static void put_set(const struct shared *shared, struct text *text, int id,
		    const union object_ds *ds, struct object_hint *hint)
{
	put_ds(shared, text, &ds->sem);
	dump_set(shared, text, id, (unsigned)ds->sem.sem_nsems, hint);
}

static void dump(const struct shared *shared, struct text *text, struct object_hint *hints)
{
	static const struct looker looker = {FAMILY_SEM, look, put_set};
	struct seminfo info;
	int highest;

	memset(&info, 0, sizeof(info));
	highest = semctl(0, 0, SEM_INFO, (union semun){.info = &info});
	dump_objects(&looker, shared, text, hints, highest, info.semusz);
	text_printf(text, "sem highest %d sets %d semaphores %d\n", highest, info.semusz,
		    info.semaem);
}

const struct family sem_family = {
	.name = "sem",
	.view_path = "/proc/sysvipc/sem",
	.view_columns = "nnnnnnnntt",
	.ops = sem_ops,
	.op_count = SEM_OP_COUNT,
	.generate = sem_generate,
	.choose_style = sem_choose_style,
	.dump = dump,
};
