// SPDX-License-Identifier: MIT
/*
 * The three families behind one face, for the rules that they share: a test is written once and
 * run as `conform-common sem`, `conform-common msg` and so on.
 */
#ifndef TESTS_CONFORM_FAMILY_H
#define TESTS_CONFORM_FAMILY_H

#include "harness/harness.h"

#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>

/* All three begin with the ipc_perm. */
union object_ds {
	struct ipc_perm perm;
	struct semid_ds sem;
	struct msqid_ds msg;
	struct shmid_ds shm;
};

/* What the INFO commands fill in. */
union object_info {
	struct seminfo sem;
	struct msginfo msg;
	struct shminfo shm;
	struct shm_info shm_use;
};

struct family {
	const char *name;
	int stat_index;
	int stat_index_any;
	int info;
	const char *proc_path;
	const char *proc_header;
	const char *next_id_path;
	/* A small object of this family. */
	int (*get)(key_t key, int flags);
	int (*ctl)(int id, int cmd, void *buf);
	int (*own)(int id);
	time_t (*ctime_of)(const union object_ds *ds);
	/* Times and pids that a new object has at 0 are so. */
	bool (*is_unused)(const union object_ds *ds);
	/* The object's line in /proc/sysvipc, without the line's end. */
	void (*proc_line)(const union object_ds *ds, int id, char *line, size_t size);
};

/* The one this run is about. */
extern const struct family *family;

/* Takes the family's name from the arguments. */
void family_begin(int *argc, char ***argv);

/* A private object with this mode, removed at the end of the test. */
int family_new(int mode);
/* What IPC_STAT says, which must succeed. */
union object_ds family_stat(int id);

#endif
