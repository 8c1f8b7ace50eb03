// SPDX-License-Identifier: MIT
/*
 * Message queues: the calls, and everything that can be seen of the queues, with a look at each
 * message by MSG_COPY.
 *
 * Three things Linux itself leaves to the scheduler, and they are kept out here, where every
 * script passes: which of several sleeping senders gets in first (all that fit are woken, and
 * race); and after IPC_SET, which makes all sleepers look anew, in which order several receivers
 * stand again, and whether a sender that fits now finds a receiver that may read no longer still
 * there. So a second sender does not sleep, and IPC_SET is not called with two receivers asleep, or
 * with one and a sender.
 */
#include <errno.h>
#include <string.h>

#include "family_common.h"
#include "family_msg.h"
#include "worker.h"

enum {
	MESSAGE_BYTES_MAX = 8192, /* no message gets longer: the kernel's default of msgmax */
	PEEK_MAX = 12,
};

#ifndef MSG_STAT_ANY
#define MSG_STAT_ANY 13
#endif

struct message {
	long type;
	char text[MESSAGE_BYTES_MAX + 64];
};

static const struct name_value get_flags[] = {
	{"CREAT", IPC_CREAT},
	{"EXCL", IPC_EXCL},
	{"NOWAIT", IPC_NOWAIT},
	{NULL, 0},
};

static const struct name_value transfer_flags[] = {
	{"NOWAIT", IPC_NOWAIT},
	{"NOERROR", MSG_NOERROR},
	{"EXCEPT", MSG_EXCEPT},
	{"COPY", MSG_COPY},
	{NULL, 0},
};

static const struct name_value commands[] = {
	{"IPC_STAT", IPC_STAT},         {"IPC_SET", IPC_SET},
	{"IPC_RMID", IPC_RMID},         {"MSG_STAT", MSG_STAT},
	{"MSG_STAT_ANY", MSG_STAT_ANY}, {"IPC_INFO", IPC_INFO},
	{"MSG_INFO", MSG_INFO},         {NULL, 0},
};

/* How many other workers are in a call of this kind on this queue. */
static unsigned others_in(const struct hands *hands, unsigned op_ix, int id)
{
	const struct shared *shared = hands->shared;
	unsigned count = 0;

	for (unsigned ix = 0; ix < shared->worker_count; ix++) {
		const struct desk *desk = &shared->desk[ix];

		count += ix != hands->worker_ix &&
			 atomic_load_explicit(&desk->state, memory_order_acquire) == DESK_BUSY &&
			 desk->step.family_ix == FAMILY_MSG && desk->step.op_ix == op_ix &&
			 desk->outcome.ret == id;
	}
	return count;
}

static void call_msgget(struct hands *hands, const struct step *step, struct outcome *outcome)
{
	struct text text = TEXT_ON(outcome->text);
	int id = msgget((key_t)step->arg[0], (int)step->arg[1]);

	if (put_result(outcome, &text, id))
		hands->shared->slot_id[FAMILY_MSG][step->arg[2]] = id;
}

static int flags_of(const struct hands *hands, int64_t flags)
{
	return (int)flags | (hands->never_sleep ? IPC_NOWAIT : 0);
}

static size_t place_bytes(int64_t size)
{
	return sizeof(long) +
	       (size < 0 || size > MESSAGE_BYTES_MAX + 64 ? MESSAGE_BYTES_MAX + 64 : (size_t)size);
}

static void call_msgsnd(struct hands *hands, const struct step *step, struct outcome *outcome)
{
	struct text text = TEXT_ON(outcome->text);
	int id = shared_id(hands->shared, FAMILY_MSG, step->arg[0]);
	int flags = flags_of(hands, step->arg[3]);
	struct message message = {.type = (long)step->arg[1]};
	void *place;

	for (unsigned ix = 0; ix < sizeof(message.text); ix++)
		message.text[ix] = (char)('a' + (step->arg[5] + ix) % 26);
	place = hands_place(hands, step->arg[4], &message, place_bytes(step->arg[2]));
	if (others_in(hands, MSG_OP_SEND, id))
		flags |= IPC_NOWAIT;
	outcome->ret = id; /* for others_in of the others */
	put_result(outcome, &text, msgsnd(id, place, (size_t)step->arg[2], flags));
}

/* Type, length and contents, in short. */
static void put_message(struct text *text, long type, const char *bytes, size_t length)
{
	unsigned sum = 0;

	for (size_t ix = 0; ix < length; ix++)
		sum = sum * 31 + (unsigned char)bytes[ix];
	text_putd(text, type);
	text_puts(text, "/");
	text_putd(text, (long)length);
	text_puts(text, "/");
	text_putd(text, sum % 9973);
}

static void call_msgrcv(struct hands *hands, const struct step *step, struct outcome *outcome)
{
	struct text text = TEXT_ON(outcome->text);
	int id = shared_id(hands->shared, FAMILY_MSG, step->arg[0]);
	int flags = flags_of(hands, step->arg[3]);
	void *place = hands_place(hands, step->arg[4], NULL, place_bytes(step->arg[1]));
	const struct message *message = place;
	ssize_t ret;

	outcome->ret = id; /* for others_in of the others */
	ret = msgrcv(id, place, (size_t)step->arg[1], (long)step->arg[2], flags);
	if (ret >= 0 && (flags & MSG_NOERROR) && ret == step->arg[1] &&
	    hands->shared->fault == FAULT_MESSAGE)
		ret++;
	if (!put_result(outcome, &text, ret) || step->arg[4] != POINTER_GOOD)
		return;
	text_puts(&text, " ");
	put_message(&text, message->type, message->text, (size_t)ret);
}

static void put_ds(const struct shared *shared, struct text *text, const struct msqid_ds *ds)
{
	put_perm(text, &ds->msg_perm);
	text_puts(text, " stime=");
	shared_put_time(shared, text, ds->msg_stime);
	text_puts(text, " rtime=");
	shared_put_time(shared, text, ds->msg_rtime);
	text_puts(text, " ctime=");
	shared_put_time(shared, text, ds->msg_ctime);
	text_printf(text, " cbytes=%lu qnum=%lu qbytes=%lu lspid=", (unsigned long)ds->__msg_cbytes,
		    (unsigned long)ds->msg_qnum, (unsigned long)ds->msg_qbytes);
	shared_put_pid(shared, text, ds->msg_lspid);
	text_puts(text, " lrpid=");
	shared_put_pid(shared, text, ds->msg_lrpid);
}

static void put_info(struct text *text, const struct msginfo *info)
{
	text_printf(text, " pool=%d map=%d max=%d mnb=%d mni=%d ssz=%d tql=%d seg=%u",
		    info->msgpool, info->msgmap, info->msgmax, info->msgmnb, info->msgmni,
		    info->msgssz, info->msgtql, info->msgseg);
}

static void call_msgctl(struct hands *hands, const struct step *step, struct outcome *outcome)
{
	struct text text = TEXT_ON(outcome->text);
	int id = shared_id(hands->shared, FAMILY_MSG, step->arg[0]);
	int command = (int)step->arg[1];
	int receivers = others_in(hands, MSG_OP_RECEIVE, id);
	struct msqid_ds ds;
	void *place;
	int ret;

	if (command == IPC_SET && receivers > 0 &&
	    receivers + others_in(hands, MSG_OP_SEND, id) > 1) {
		text_puts(&text, "not with a receiver and others asleep");
		return;
	}
	memset(&ds, 0, sizeof(ds));
	fill_perm(&ds.msg_perm, step->arg[3], step->arg[4]);
	ds.msg_qbytes = (msglen_t)step->arg[5];
	place = hands_place(hands, step->arg[2], command == IPC_SET ? &ds : NULL, sizeof(ds));
	if (command == MSG_STAT || command == MSG_STAT_ANY)
		id = index_of(id);
	ret = msgctl(id, command, place);
	if (!put_result(outcome, &text, ret) || step->arg[2] != POINTER_GOOD)
		return;
	if (command == IPC_STAT || command == MSG_STAT || command == MSG_STAT_ANY)
		put_ds(hands->shared, &text, place);
	else if (command == IPC_INFO || command == MSG_INFO)
		put_info(&text, place);
}

static const struct op msg_ops[MSG_OP_COUNT] = {
	[MSG_OP_GET] = {.name = "msgget",
			.call = call_msgget,
			.params = {{"key", PARAM_INT, 0, 0, NULL},
				   {"flags", PARAM_FLAGS, 1, IPC_CREAT | 0600, get_flags},
				   {"to", PARAM_SLOT, 2, 0, NULL}}},
	[MSG_OP_SEND] = {.name = "msgsnd",
			 .traits = OP_MAY_SLEEP,
			 .call = call_msgsnd,
			 .params = {{"id", PARAM_ID, 0, 0, NULL},
				    {"type", PARAM_INT, 1, 1, NULL},
				    {"size", PARAM_INT, 2, 0, NULL},
				    {"flags", PARAM_FLAGS, 3, 0, transfer_flags},
				    {"pointer", PARAM_CHOICE, 4, POINTER_GOOD, pointer_names},
				    {"tag", PARAM_INT, 5, 0, NULL}}},
	[MSG_OP_RECEIVE] = {.name = "msgrcv",
			    .traits = OP_MAY_SLEEP,
			    .call = call_msgrcv,
			    .params = {{"id", PARAM_ID, 0, 0, NULL},
				       {"size", PARAM_INT, 1, 64, NULL},
				       {"type", PARAM_INT, 2, 0, NULL},
				       {"flags", PARAM_FLAGS, 3, 0, transfer_flags},
				       {"pointer", PARAM_CHOICE, 4, POINTER_GOOD, pointer_names}}},
	[MSG_OP_CTL] = {.name = "msgctl",
			.call = call_msgctl,
			.params = {{"id", PARAM_ID, 0, 0, NULL},
				   {"cmd", PARAM_CHOICE, 1, IPC_STAT, commands},
				   {"pointer", PARAM_CHOICE, 2, POINTER_GOOD, pointer_names},
				   {"mode", PARAM_OCTAL, 3, 0600, NULL},
				   {"person", PARAM_INT, 4, 0, NULL},
				   {"qbytes", PARAM_INT, 5, 16384, NULL}}},
};

static void dump_messages(struct text *text, int id, unsigned long count)
{
	static struct message message;

	for (unsigned long ix = 0; ix < count && ix < PEEK_MAX; ix++) {
		ssize_t length =
			msgrcv(id, &message, sizeof(message.text), (long)ix, MSG_COPY | IPC_NOWAIT);

		text_puts(text, " | ");
		if (length < 0)
			text_result(text, -1, errno);
		else
			put_message(text, message.type, message.text, (size_t)length);
	}
}

static int look(int ix, union object_ds *ds, struct object_hint *hint)
{
	int id = msgctl(ix, MSG_STAT_ANY, &ds->msg);

	hint->size = (int16_t)ds->msg.msg_qnum;
	hint->value[0] = (int32_t)ds->msg.__msg_cbytes;
	hint->value[1] = (int32_t)ds->msg.msg_qbytes;
	return id;
}

static void put_queue(const struct shared *shared, struct text *text, int id,
		      const union object_ds *ds, struct object_hint *hint)
{
	(void)hint;
	put_ds(shared, text, &ds->msg);
	dump_messages(text, id, ds->msg.msg_qnum);
}

static void dump(const struct shared *shared, struct text *text, struct object_hint *hints)
{
	static const struct looker looker = {FAMILY_MSG, look, put_queue};
	struct msginfo info;
	int highest;

	memset(&info, 0, sizeof(info));
	highest = msgctl(0, MSG_INFO, (void *)&info);
	dump_objects(&looker, shared, text, hints, highest, info.msgpool);
	text_printf(text, "msg highest %d queues %d messages %d bytes %d\n", highest, info.msgpool,
		    info.msgmap, info.msgtql);
}

const struct family msg_family = {
	.name = "msg",
	.view_path = "/proc/sysvipc/msg",
	.view_columns = "nnnnnppnnnnttt",
	.ops = msg_ops,
	.op_count = MSG_OP_COUNT,
	.generate = msg_generate,
	.choose_style = msg_choose_style,
	.dump = dump,
};
