// SPDX-License-Identifier: MIT
/* The objects of a worker: segments, what comes and goes under well-known keys, and what it makes
 * for itself. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <time.h>
#include <unistd.h>

#include "worker.h"

#define ATTACHED_MOST 4

static void *attached[ATTACHED_MOST];

/* ---- Shared memory ----------------------------------------------------------------------- */

static void detach(int i)
{
	if (attached[i] && shmdt(attached[i]) < 0)
		storm_fail("shmdt: %s", strerror(errno));
	attached[i] = NULL;
}

void mark(void)
{
	int i = (int)rnd(ATTACHED_MOST);
	uint32_t *p;

	if (!has_account())
		return;
	detach(i);
	p = shmat(ledger->segment, NULL, 0);
	if (p == (void *)-1)
		storm_fail("shmat: %s", strerror(errno));
	count(&ledger->attaches);
	attached[i] = p;
	me->marks_tried++;
	note();
	__atomic_fetch_add(p, 1, __ATOMIC_RELAXED);
	note();
	me->marks_done = me->marks_tried;
	if (rnd(4))
		detach(i);
}

/* Which of the errors of a call may come because somebody else removed the object? */
static bool removed(void)
{
	return errno == EIDRM || errno == EINVAL || errno == ENOENT || errno == EEXIST;
}

static void keyed_segment(key_t key)
{
	int id = shmget(key, 4096, IPC_CREAT | 0600 | (rnd(2) ? IPC_EXCL : 0));
	uint64_t *p = id < 0 ? (void *)-1 : shmat(id, NULL, 0);

	if (p == (void *)-1) {
		if (!removed())
			storm_fail("a segment by key: %s", strerror(errno));
		return;
	}
	p[seat_ix] = (uint64_t)identity << 32 | (uint32_t)getpid();
	if (rnd(3) == 0 && shmctl(id, IPC_RMID, NULL) < 0 && !removed())
		storm_fail("IPC_RMID: %s", strerror(errno));
	if (p[seat_ix] != ((uint64_t)identity << 32 | (uint32_t)getpid()))
		storm_fail("what was written to a segment is not there");
	if (shmdt(p) < 0)
		storm_fail("shmdt: %s", strerror(errno));
}

static void keyed_queue(key_t key)
{
	int id = msgget(key, IPC_CREAT | 0600 | (rnd(2) ? IPC_EXCL : 0));
	struct {
		long type;
		char text[64];
	} m = {7, "text"};

	if (id < 0 ? !removed()
		   : msgsnd(id, &m, 1 + rnd(64), IPC_NOWAIT) < 0 && errno != EAGAIN && !removed())
		storm_fail("a queue by key: %s", strerror(errno));
	if (id >= 0 && rnd(2) && msgrcv(id, &m, 64, -8, IPC_NOWAIT) < 0 && errno != ENOMSG &&
	    !removed())
		storm_fail("a queue by key: %s", strerror(errno));
	if (id >= 0 && rnd(3) == 0 && msgctl(id, IPC_RMID, NULL) < 0 && !removed())
		storm_fail("IPC_RMID: %s", strerror(errno));
}

static void keyed_set(key_t key)
{
	int id = semget(key, 3, IPC_CREAT | 0600 | (rnd(2) ? IPC_EXCL : 0));
	struct sembuf s[2] = {{1, 1, SEM_UNDO}, {2, (short)(rnd(2) ? 1 : -1), IPC_NOWAIT}};
	struct timespec t = {0, 1 + (long)rnd(1000000)};

	if (rnd(4) == 0)
		s[1].sem_flg = 0;
	if (id < 0 ? !removed()
		   : semtimedop(id, s, 2, &t) < 0 && errno != EAGAIN && errno != EINTR &&
			     !removed())
		storm_fail("a set by key: %s", strerror(errno));
	if (id >= 0 && rnd(3) == 0 && semctl(id, 0, IPC_RMID) < 0 && !removed())
		storm_fail("IPC_RMID: %s", strerror(errno));
}

void keyed(void)
{
	key_t key = (key_t)(KEY_BASE + rnd(KEYS));

	switch (rnd(3)) {
	case 0:
		keyed_segment(key);
		break;
	case 1:
		keyed_queue(key);
		break;
	default:
		keyed_set(key);
		break;
	}
}

/* ---- Objects of its own ------------------------------------------------------------------ */

void remove_own(int i)
{
	if (seat->own_set[i])
		(void)semctl(seat->own_set[i] - 1, 0, IPC_RMID);
	if (seat->own_queue[i])
		(void)msgctl(seat->own_queue[i] - 1, IPC_RMID, NULL);
	if (seat->own_segment[i])
		(void)shmctl(seat->own_segment[i] - 1, IPC_RMID, NULL);
	seat->own_set[i] = seat->own_queue[i] = seat->own_segment[i] = 0;
}

static void own_set(int32_t *noted)
{
	int n = 1 + (int)rnd(40), id = semget(IPC_PRIVATE, n, 0600);
	struct sembuf s = {(unsigned short)rnd((uint32_t)n), 3, SEM_UNDO};

	if (id < 0)
		storm_fail("semget: %s", strerror(errno));
	*noted = id + 1;
	if (semop(id, &s, 1) < 0 || semctl(id, s.sem_num, GETVAL) != 3)
		storm_fail("a set of one's own: %s", strerror(errno));
	if (rnd(4) == 0)
		return;
	if (semctl(id, 0, IPC_RMID) < 0)
		storm_fail("IPC_RMID: %s", strerror(errno));
	*noted = 0;
}

static void own_queue(int32_t *noted)
{
	int id = msgget(IPC_PRIVATE, 0600), n = (int)rnd(5);

	if (id < 0)
		storm_fail("msgget: %s", strerror(errno));
	*noted = id + 1;
	for (int i = 0; i < n; i++) {
		message.type = i + 1;
		if (msgsnd(id, &message, rnd(3000), IPC_NOWAIT) < 0)
			storm_fail("a queue of one's own: %s", strerror(errno));
	}
	if (n && (msgrcv(id, &message, 3000, -n, IPC_NOWAIT) < 0 || message.type != 1))
		storm_fail("a queue of one's own: type %ld, %s", message.type, strerror(errno));
	if (rnd(4) == 0)
		return;
	if (msgctl(id, IPC_RMID, NULL) < 0)
		storm_fail("IPC_RMID: %s", strerror(errno));
	*noted = 0;
}

static void own_segment(int32_t *noted)
{
	size_t bytes = 1 + rnd(100000);
	int id = shmget(IPC_PRIVATE, bytes, 0600);
	struct shmid_ds ds;
	unsigned char *p, *again;

	if (id < 0)
		storm_fail("shmget: %s", strerror(errno));
	*noted = id + 1;
	p = shmat(id, NULL, 0);
	again = shmat(id, NULL, SHM_RDONLY);
	if (p == (void *)-1 || again == (void *)-1)
		storm_fail("shmat: %s", strerror(errno));
	p[bytes - 1] = 77;
	if (shmctl(id, IPC_STAT, &ds) < 0 || ds.shm_nattch != 2)
		storm_fail("%d attaches of a segment of one's own", (int)ds.shm_nattch);
	if (rnd(4)) {
		if (shmctl(id, IPC_RMID, NULL) < 0)
			storm_fail("IPC_RMID: %s", strerror(errno));
		*noted = 0;
	}
	if (again[bytes - 1] != 77)
		storm_fail("a segment of one's own has lost its contents");
	if (rnd(8) && (shmdt(p) < 0 || shmdt(again) < 0))
		storm_fail("shmdt: %s", strerror(errno));
}

void own(void)
{
	int i = (int)rnd(OWN_MOST);

	count(&ledger->own);
	remove_own(i);
	switch (rnd(3)) {
	case 0:
		own_set(&seat->own_set[i]);
		break;
	case 1:
		own_queue(&seat->own_queue[i]);
		break;
	default:
		own_segment(&seat->own_segment[i]);
		break;
	}
}
