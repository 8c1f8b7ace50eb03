// SPDX-License-Identifier: MIT
/* What the victims of real-kill.c do, by the plain calls of the C library. */
#include "real-kill.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <time.h>
#include <unistd.h>

#define LARGE 500 /* its copy is a step a byte */

static void add_plain(void)
{
	struct sembuf op = {0, 1, 0};

	(void)semop(world.sem, &op, 1);
}

static void give(void)
{
	struct sembuf op = {1, 1, 0};

	(void)semop(world.sem, &op, 1);
}

static void take_undo(void)
{
	struct sembuf op = {0, -1, SEM_UNDO};

	(void)semop(world.sem, &op, 1);
}

static void several(void)
{
	struct sembuf ops[] = {{0, -1, SEM_UNDO}, {1, 1, 0}, {2, 2, SEM_UNDO}};

	(void)semop(world.sem, ops, 3);
}

static void setval(void)
{
	(void)semctl(world.sem, 1, SETVAL, (union semun){.val = 1});
}

static void setall(void)
{
	unsigned short values[SEMS] = {4, 1, 2};

	(void)semctl(world.sem, 0, SETALL, (union semun){.array = values});
}

static void send_3(void)
{
	struct message m = {3, "three"};

	(void)msgsnd(world.msg, &m, sizeof(m.text), 0);
}

static void send_large(void)
{
	static struct {
		long type;
		char text[LARGE];
	} m = {5, "five"};

	(void)msgsnd(world.msg, &m, sizeof(m.text), 0);
}

static void receive_large(void)
{
	static struct {
		long type;
		char text[LARGE];
	} m;

	(void)msgrcv(world.msg, &m, sizeof(m.text), 5, 0);
}

static void large_before(void)
{
	struct message m;

	send_large();
	(void)msgrcv(world.msg, &m, sizeof(m.text), 1, 0);
}

static void receive(void)
{
	struct message m;

	(void)msgrcv(world.msg, &m, sizeof(m.text), 1, IPC_NOWAIT);
}

static void wait_in_vain(void)
{
	struct sembuf down = {1, -1, 0};
	struct timespec soon = {0, 100000};

	(void)semtimedop(world.sem, &down, 1, &soon);
}

static void set_mode_of_set(void)
{
	struct semid_ds ds;

	(void)semctl(world.sem, 0, IPC_STAT, (union semun){.ds = &ds});
	ds.sem_perm.mode = 0640;
	(void)semctl(world.sem, 0, IPC_SET, (union semun){.ds = &ds});
}

static void set_qbytes(void)
{
	struct msqid_ds ds;

	(void)msgctl(world.msg, IPC_STAT, &ds);
	ds.msg_qbytes = 1000;
	(void)msgctl(world.msg, IPC_SET, &ds);
}

static void set_mode_of_segment(void)
{
	struct shmid_ds ds;

	(void)shmctl(world.shm, IPC_STAT, &ds);
	ds.shm_perm.mode = 0640;
	(void)shmctl(world.shm, IPC_SET, &ds);
}

static void attach(void)
{
	(void)shmat(world.shm, NULL, 0);
}

static void attach_before(void)
{
	world.at = shmat(world.shm, NULL, 0);
}

static void detach(void)
{
	(void)shmdt(world.at);
}

static void create_set(void)
{
	(void)semget(KEY, 2, IPC_CREAT | 0600);
}

static void create_queue(void)
{
	(void)msgget(KEY, IPC_CREAT | 0600);
}

static void create_segment(void)
{
	(void)shmget(KEY, 8192, IPC_CREAT | 0600);
}

void remove_set(void)
{
	(void)semctl(world.sem, 0, IPC_RMID);
}

void remove_queue(void)
{
	(void)msgctl(world.msg, IPC_RMID, NULL);
}

void remove_segment(void)
{
	(void)shmctl(world.shm, IPC_RMID, NULL);
}

static void remove_attached(void)
{
	(void)shmctl(world.shm, IPC_RMID, NULL);
	(void)shmdt(world.at);
}

static void undo_before(void)
{
	take_undo();
	several();
}

static void leave(void)
{
	exit(0);
}

static void have_child(void)
{
	if (fork() == 0) {
		kill(getpid(), SIGKILL);
		pause();
	}
}

static void have_vfork_child(void)
{
	if (vfork() == 0)
		_exit(0);
}

static void all_before(void)
{
	attach_before();
	undo_before();
}

/* It is over where the next image begins. */
static void execute(void)
{
	execl("/proc/self/exe", "real-kill", "-h", (char *)NULL);
}

static void nothing(void)
{
}

const struct operation operations[] = {
	{"semop plain", nothing, add_plain, TASK_NONE},
	{"semop hand-off", nothing, give, TASK_SEMAPHORE},
	{"semop undo", nothing, take_undo, TASK_NONE},
	{"semop several", nothing, several, TASK_NONE},
	{"semop several, hand-off", nothing, several, TASK_SEMAPHORE},
	{"SETVAL", nothing, setval, TASK_NONE},
	{"SETVAL, hand-off", nothing, setval, TASK_SEMAPHORE},
	{"SETALL, hand-off", nothing, setall, TASK_SEMAPHORE},
	{"msgsnd", nothing, send_3, TASK_NONE},
	{"msgsnd hand-off", nothing, send_3, TASK_QUEUE},
	{"msgsnd large", nothing, send_large, TASK_NONE},
	{"msgrcv", nothing, receive, TASK_NONE},
	{"msgrcv large, by type", large_before, receive_large, TASK_NONE},
	{"msgrcv makes room", nothing, receive, TASK_ROOM},
	{"semtimedop in vain", nothing, wait_in_vain, TASK_NONE},
	{"semctl IPC_SET", nothing, set_mode_of_set, TASK_NONE},
	{"msgctl IPC_SET", nothing, set_qbytes, TASK_NONE},
	{"msgctl IPC_SET makes room", nothing, set_qbytes, TASK_ROOM},
	{"shmctl IPC_SET", nothing, set_mode_of_segment, TASK_NONE},
	{"shmat", nothing, attach, TASK_NONE},
	{"shmat again", attach_before, attach, TASK_NONE},
	{"shmdt", attach_before, detach, TASK_NONE},
	{"semget creates", nothing, create_set, TASK_NONE},
	{"msgget creates", nothing, create_queue, TASK_NONE},
	{"shmget creates", nothing, create_segment, TASK_NONE},
	{"semctl IPC_RMID", nothing, remove_set, TASK_NONE},
	{"semctl IPC_RMID, sleeper", nothing, remove_set, TASK_SEMAPHORE},
	{"msgctl IPC_RMID, sleeper", nothing, remove_queue, TASK_QUEUE},
	{"shmctl IPC_RMID", nothing, remove_segment, TASK_NONE},
	{"shmctl IPC_RMID while attached, shmdt", attach_before, remove_attached, TASK_NONE},
	{"registration", NULL, add_plain, TASK_NONE},
	{"fork", attach_before, have_child, TASK_NONE},
	{"vfork", attach_before, have_vfork_child, TASK_NONE},
	{"exec", all_before, execute, TASK_NONE},
	{"exit", undo_before, leave, TASK_NONE},
};

const size_t operation_count = sizeof(operations) / sizeof(operations[0]);
