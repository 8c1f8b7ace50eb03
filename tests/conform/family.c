// SPDX-License-Identifier: MIT
/*
 * The families' own calls, for the tests of what they have in common. Used by conform-common and
 * conform-perm.
 */
#include "conform/family.h"

const struct family *family;

union semun {
	int val;
	struct semid_ds *buf;
	unsigned short *array;
	struct seminfo *info;
};

static int sem_get(key_t key, int flags)
{
	return semget(key, 1, flags);
}

static int sem_ctl(int id, int cmd, void *buf)
{
	return semctl(id, 0, cmd, (union semun){.buf = buf});
}

static time_t sem_ctime(const union object_ds *ds)
{
	return ds->sem.sem_ctime;
}

static bool sem_is_unused(const union object_ds *ds)
{
	return ds->sem.sem_otime == 0 && ds->sem.sem_nsems == 1;
}

static void sem_proc_line(const union object_ds *ds, int id, char *line, size_t size)
{
	(void)snprintf(line, size, "%10d %10d  %4o %10lu %5u %5u %5u %5u %10lld %10lld",
		       ds->perm.__key, id, ds->perm.mode, ds->sem.sem_nsems, ds->perm.uid,
		       ds->perm.gid, ds->perm.cuid, ds->perm.cgid, (long long)ds->sem.sem_otime,
		       (long long)ds->sem.sem_ctime);
}

static int msg_get(key_t key, int flags)
{
	return msgget(key, flags);
}

static int msg_ctl(int id, int cmd, void *buf)
{
	return msgctl(id, cmd, buf);
}

static time_t msg_ctime(const union object_ds *ds)
{
	return ds->msg.msg_ctime;
}

static bool msg_is_unused(const union object_ds *ds)
{
	return ds->msg.msg_stime == 0 && ds->msg.msg_rtime == 0 && ds->msg.msg_lspid == 0 &&
	       ds->msg.msg_lrpid == 0 && ds->msg.msg_qnum == 0 && ds->msg.__msg_cbytes == 0;
}

static void msg_proc_line(const union object_ds *ds, int id, char *line, size_t size)
{
	(void)snprintf(line, size,
		       "%10d %10d  %4o  %10lu %10lu %5u %5u %5u %5u %5u %5u %10lld %10lld %10lld",
		       ds->perm.__key, id, ds->perm.mode, ds->msg.__msg_cbytes, ds->msg.msg_qnum,
		       (unsigned int)ds->msg.msg_lspid, (unsigned int)ds->msg.msg_lrpid,
		       ds->perm.uid, ds->perm.gid, ds->perm.cuid, ds->perm.cgid,
		       (long long)ds->msg.msg_stime, (long long)ds->msg.msg_rtime,
		       (long long)ds->msg.msg_ctime);
}

static int shm_get(key_t key, int flags)
{
	return shmget(key, 1, flags);
}

static int shm_ctl(int id, int cmd, void *buf)
{
	return shmctl(id, cmd, buf);
}

static time_t shm_ctime(const union object_ds *ds)
{
	return ds->shm.shm_ctime;
}

static bool shm_is_unused(const union object_ds *ds)
{
	return ds->shm.shm_atime == 0 && ds->shm.shm_dtime == 0 && ds->shm.shm_lpid == 0 &&
	       ds->shm.shm_nattch == 0 && ds->shm.shm_segsz == 1;
}

/* Resident and swapped bytes are 0: nothing was ever attached. */
static void shm_proc_line(const union object_ds *ds, int id, char *line, size_t size)
{
	int wide = sizeof(long) == 8 ? 21 : 10;

	(void)snprintf(line, size,
		       "%10d %10d  %4o %*lu %5u %5u  %5lu %5u %5u %5u %5u %10lld %10lld %10lld "
		       "%*lu %*lu",
		       ds->perm.__key, id, ds->perm.mode, wide, (unsigned long)ds->shm.shm_segsz,
		       (unsigned int)ds->shm.shm_cpid, (unsigned int)ds->shm.shm_lpid,
		       ds->shm.shm_nattch, ds->perm.uid, ds->perm.gid, ds->perm.cuid, ds->perm.cgid,
		       (long long)ds->shm.shm_atime, (long long)ds->shm.shm_dtime,
		       (long long)ds->shm.shm_ctime, wide, 0UL, wide, 0UL);
}

static const struct family families[] = {
	{
		.name = "sem",
		.stat_index = SEM_STAT,
		.stat_index_any = SEM_STAT_ANY,
		.info = SEM_INFO,
		.proc_path = "/proc/sysvipc/sem",
		.proc_header = "       key      semid perms      nsems   uid   gid  cuid  cgid"
			       "      otime      ctime\n",
		.next_id_path = "/proc/sys/kernel/sem_next_id",
		.get = sem_get,
		.ctl = sem_ctl,
		.own = own_sem,
		.ctime_of = sem_ctime,
		.is_unused = sem_is_unused,
		.proc_line = sem_proc_line,
	},
	{
		.name = "msg",
		.stat_index = MSG_STAT,
		.stat_index_any = MSG_STAT_ANY,
		.info = MSG_INFO,
		.proc_path = "/proc/sysvipc/msg",
		.proc_header =
			"       key      msqid perms      cbytes       qnum lspid lrpid   uid"
			"   gid  cuid  cgid      stime      rtime      ctime\n",
		.next_id_path = "/proc/sys/kernel/msg_next_id",
		.get = msg_get,
		.ctl = msg_ctl,
		.own = own_msg,
		.ctime_of = msg_ctime,
		.is_unused = msg_is_unused,
		.proc_line = msg_proc_line,
	},
	{
		.name = "shm",
		.stat_index = SHM_STAT,
		.stat_index_any = SHM_STAT_ANY,
		.info = SHM_INFO,
		.proc_path = "/proc/sysvipc/shm",
		.proc_header =
			"       key      shmid perms                  size  cpid  lpid nattch"
			"   uid   gid  cuid  cgid      atime      dtime      ctime"
			"                   rss                  swap\n",
		.next_id_path = "/proc/sys/kernel/shm_next_id",
		.get = shm_get,
		.ctl = shm_ctl,
		.own = own_shm,
		.ctime_of = shm_ctime,
		.is_unused = shm_is_unused,
		.proc_line = shm_proc_line,
	},
};

void family_begin(int *argc, char ***argv)
{
	for (size_t i = 0; *argc > 1 && i < ARRAY_COUNT(families); i++)
		if (strcmp((*argv)[1], families[i].name) == 0)
			family = &families[i];
	if (!family) {
		fprintf(stderr, "usage: %s sem|msg|shm [pattern]\n", (*argv)[0]);
		exit(2);
	}
	(*argc)--;
	(*argv)++;
}

int family_new(int mode)
{
	return family->own((int)CHECK_OK(family->get(IPC_PRIVATE, IPC_CREAT | mode)));
}

union object_ds family_stat(int id)
{
	union object_ds ds;

	memset(&ds, 0, sizeof(ds));
	CHECK_OK(family->ctl(id, IPC_STAT, &ds));
	return ds;
}
