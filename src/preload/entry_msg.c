// SPDX-License-Identifier: MIT
/*
 * Message queues: msgget(2), msgsnd(2), msgrcv(2), msgctl(2). This build does not have them: they fail
 * with ENOSYS and say so once. They never reach the kernel, for then two halves of one program
 * could meet in different places.
 */
#include "preload/entry.h"

#include <sys/msg.h>

#include "client/report.h"

static long missing(const char *name)
{
	entry_begin();
	report(REPORT_FAMILY, "%s: not in this version of usysv: the call fails with ENOSYS", name);
	return entry_return(-ENOSYS);
}

PUBLIC int msgget(key_t key, int flags)
{
	(void)key;
	(void)flags;
	return (int)missing("msgget");
}

PUBLIC int msgsnd(int id, const void *message, size_t bytes, int flags)
{
	(void)id;
	(void)message;
	(void)bytes;
	(void)flags;
	return (int)missing("msgsnd");
}

PUBLIC ssize_t msgrcv(int id, void *message, size_t bytes, long type, int flags)
{
	(void)id;
	(void)message;
	(void)bytes;
	(void)type;
	(void)flags;
	return missing("msgrcv");
}

PUBLIC int msgctl(int id, int cmd, struct msqid_ds *buffer)
{
	(void)id;
	(void)cmd;
	(void)buffer;
	return (int)missing("msgctl");
}

const struct entry_name entry_msg_names[] = {
	{"msgget", (void *)msgget},
	{"msgsnd", (void *)msgsnd},
	{"msgrcv", (void *)msgrcv},
	{"msgctl", (void *)msgctl},
	{NULL, NULL},
};

long entry_msg_syscall(long nr, long a, long b, long c, long d, long e, long f)
{
	(void)nr;
	(void)a;
	(void)b;
	(void)c;
	(void)d;
	(void)e;
	(void)f;
	return missing("syscall(SYS_msg...)");
}
