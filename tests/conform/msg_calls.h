// SPDX-License-Identifier: MIT
/*
 * Shorthands of the message tests. Texts are C strings, sent without their end.
 *
 * Nothing tells who sleeps on a queue, so a receiver or sender of a test announces its call and is
 * then watched until it stands still.
 */
#ifndef TESTS_CONFORM_MSG_CALLS_H
#define TESTS_CONFORM_MSG_CALLS_H

#include "harness/harness.h"

#include <sys/msg.h>

#ifndef MSG_COPY
#define MSG_COPY 040000
#endif

enum {
	MSGMAX = 8192,
	MSGMNB = 16384,
	/* What a row of the board's text holds. */
	ROW_TEXT = 1024,
};

struct message {
	long type;
	char text[MSGMAX + 16];
};

/* A private queue, removed at the end of the test. */
static inline int msg_new(void)
{
	return own_msg((int)CHECK_OK(msgget(IPC_PRIVATE, IPC_CREAT | 0600)));
}

static inline struct msqid_ds msg_stat(int id)
{
	struct msqid_ds ds;

	memset(&ds, 0, sizeof(ds));
	CHECK_OK(msgctl(id, IPC_STAT, &ds));
	return ds;
}

static inline long msg_count(int id)
{
	return (long)msg_stat(id).msg_qnum;
}

static inline long msg_bytes(int id)
{
	return (long)msg_stat(id).__msg_cbytes;
}

static inline void msg_chmod(int id, int mode)
{
	struct msqid_ds ds = msg_stat(id);

	ds.msg_perm.mode = (unsigned short)mode;
	CHECK_OK(msgctl(id, IPC_SET, &ds));
}

static inline void msg_set_qbytes(int id, unsigned long bytes)
{
	struct msqid_ds ds = msg_stat(id);

	ds.msg_qbytes = bytes;
	CHECK_OK(msgctl(id, IPC_SET, &ds));
}

static inline int msg_send(int id, long type, const char *text, int flags)
{
	struct message message = {.type = type};
	size_t length = strlen(text);

	memcpy(message.text, text, length);
	return msgsnd(id, &message, length, flags);
}

/* A message of this size, of which each byte tells its place. */
static inline int msg_send_size(int id, long type, size_t size, int flags)
{
	struct message message = {.type = type};

	for (size_t i = 0; i < size; i++)
		message.text[i] = (char)(i * 7 + size);
	return msgsnd(id, &message, size, flags);
}

/* Receiving with these arguments must give a message of this type and text. */
#define TAKES(id, wanted, flags, type, text)                                                       \
	msg_takes(__FILE__, __LINE__, (id), (wanted), (flags), (type), (text))

static inline void msg_takes(const char *file, int line, int id, long wanted, int flags, long type,
			     const char *text)
{
	struct message message = {0};
	ssize_t got = msgrcv(id, &message, sizeof(message.text), wanted, flags);

	if (got == -1)
		check_fail(file, line, "instead of '%s': %s", text, strerrorname_np(errno));
	if (got != (ssize_t)strlen(text) || message.type != type ||
	    memcmp(message.text, text, (size_t)got) != 0)
		check_fail(file, line, "instead of type %ld '%s': type %ld '%.*s'", type, text,
			   message.type, (int)got, message.text);
}

/* There must be no such message. */
#define TAKES_NOTHING(id, wanted, flags)                                                           \
	CHECK_ERR(msgrcv((id), &(struct message){0}, MSGMAX, (wanted), (flags) | IPC_NOWAIT),      \
		  ENOMSG)

/* A child that receives, notes the outcome and the text in its row, and ends. */
static inline pid_t msg_receiver_start(unsigned int row, int id, size_t size, long wanted,
				       int flags)
{
	pid_t kid;

	IN_CHILD (kid) {
		struct message message = {0};
		ssize_t got;

		atomic_store(&board->flag[row], 1);
		errno = 0;
		got = msgrcv(id, &message, size, wanted, flags);
		if (got >= 0 && got < ROW_TEXT)
			memcpy(board->text + row * ROW_TEXT, message.text, (size_t)got);
		board->number[row] = message.type;
		board_record(row, got);
	}
	return kid;
}

static inline pid_t msg_sender_start(unsigned int row, int id, long type, size_t size)
{
	pid_t kid;

	IN_CHILD (kid) {
		atomic_store(&board->flag[row], 1);
		RECORD(row, msg_send_size(id, type, size, 0));
	}
	return kid;
}

/* Waits until the row's caller sleeps in its call. */
static inline void msg_until_asleep(pid_t kid, unsigned int row)
{
	UNTIL(atomic_load(&board->flag[row]));
	UNTIL(task_sleeps(kid));
	CHECK_INT(atomic_load(&board->result[row].done), 0);
}

/* A receiver that sleeps when this returns. */
static inline pid_t msg_receiver(unsigned int row, int id, size_t size, long wanted, int flags)
{
	pid_t kid = msg_receiver_start(row, id, size, wanted, flags);

	msg_until_asleep(kid, row);
	return kid;
}

/* A sender that sleeps when this returns. */
static inline pid_t msg_sender(unsigned int row, int id, long type, size_t size)
{
	pid_t kid = msg_sender_start(row, id, type, size);

	msg_until_asleep(kid, row);
	return kid;
}

/* The row's receiver must end with this message. */
#define GETS(row, type, text) msg_gets(__FILE__, __LINE__, (row), (type), (text))

static inline void msg_gets(const char *file, int line, unsigned int row, long type,
			    const char *text)
{
	const char *got = board->text + row * ROW_TEXT;
	long length;

	UNTIL(atomic_load(&board->result[row].done));
	length = board->result[row].ret;
	if (length == -1)
		check_fail(file, line, "receiver %u: %s", row,
			   strerrorname_np(board->result[row].err));
	if (length != (long)strlen(text) || board->number[row] != type ||
	    memcmp(got, text, (size_t)length) != 0)
		check_fail(file, line, "receiver %u: not type %ld '%s' but %ld '%.*s'", row, type,
			   text, (long)board->number[row], (int)length, got);
}

/* The row's caller must end so (0: success). */
#define ENDS(row, expected) msg_ends(__FILE__, __LINE__, (row), (expected))

static inline void msg_ends(const char *file, int line, unsigned int row, int expected)
{
	UNTIL(atomic_load(&board->result[row].done));
	if (board->result[row].err != expected)
		check_fail(file, line, "caller %u ended with %s, not %s", row,
			   strerrorname_np(board->result[row].err), strerrorname_np(expected));
}

#endif
