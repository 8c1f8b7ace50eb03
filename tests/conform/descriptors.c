// SPDX-License-Identifier: MIT
/*
 * conform-descriptors: System V IPC needs no descriptors. Not when all are in use, not when none
 * are allowed (RLIMIT_NOFILE); before a process's first call, between calls, in its children.
 */
#include "conform/shm_calls.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/msg.h>
#include <sys/resource.h>
#include <sys/sem.h>

#define FEW 24

/* What is lacking. */
enum { ALLOWED_NONE, IN_USE_ALL, IN_USE_FOR_GOOD, KINDS };

static void take_away(int kind)
{
	struct rlimit limit;

	CHECK_OK(getrlimit(RLIMIT_NOFILE, &limit));
	limit.rlim_cur = kind == ALLOWED_NONE ? 0 : FEW;
	if (kind == IN_USE_FOR_GOOD)
		limit.rlim_max = FEW;
	CHECK_OK(setrlimit(RLIMIT_NOFILE, &limit));
	while (open("/dev/null", O_RDONLY | O_CLOEXEC) >= 0)
		;
	CHECK_INT(errno, EMFILE);
}

static void use_all(void)
{
	struct sembuf up = {0, 1, SEM_UNDO};
	struct {
		long type;
		char text[4];
	} m = {1, "abc"};
	int set = (int)CHECK_OK(semget(IPC_PRIVATE, 1, 0600));
	int queue = (int)CHECK_OK(msgget(IPC_PRIVATE, 0600));
	int id = (int)CHECK_OK(shmget(IPC_PRIVATE, 3 * PAGE, 0600));
	char *p, *q;

	CHECK_OK(semop(set, &up, 1));
	CHECK_OK(msgsnd(queue, &m, sizeof(m.text), 0));
	CHECK_INT(msgrcv(queue, &m, sizeof(m.text), 0, 0), sizeof(m.text));
	p = shm_at(id, NULL, 0);
	*p = 'x';
	q = shm_at(id, NULL, SHM_RDONLY);
	CHECK_INT(*q, 'x');
	CHECK_INT(shm_nattch(id), 2);
	CHECK_OK(munmap(p + PAGE, PAGE));
	CHECK_INT(shm_nattch(id), 3);
	CHECK_OK(shmctl(id, IPC_RMID, NULL));
	CHECK_OK(shmdt(p));
	CHECK_INT(shm_nattch(id), 1);
	CHECK_OK(shmdt(q));
	CHECK_ERR(shmctl(id, IPC_STAT, &(struct shmid_ds){0}), EINVAL);
	CHECK_OK(msgctl(queue, IPC_RMID, NULL));
	CHECK_OK(semctl(set, 0, IPC_RMID));
}

static void between_calls(void **state)
{
	(void)state;
	for (int kind = 0; kind < KINDS; kind++) {
		pid_t kid;

		IN_CHILD (kid) {
			use_all();
			take_away(kind);
			use_all();
		}
		child_ok(kid);
	}
}

static int use_first(int argc, char **argv)
{
	(void)argc;
	take_away(atoi(argv[0]));
	use_all();
	return 0;
}

static void before_the_first_call(void **state)
{
	const char *kinds[] = {"0", "1", "2"};

	(void)state;
	for (int kind = 0; kind < KINDS; kind++) {
		pid_t kid;

		IN_CHILD (kid)
			exec_self("use_first", kinds[kind], (char *)NULL);
		child_ok(kid);
	}
}

static void in_forked_children(void **state)
{
	int id = shm_new(PAGE);
	char *p = shm_at(id, NULL, 0);

	(void)state;
	for (int kind = 0; kind < KINDS; kind++) {
		pid_t kid;

		IN_CHILD (kid) {
			pid_t child;

			take_away(kind);
			IN_CHILD (child) {
				CHECK_INT(shm_nattch(id), 3);
				use_all();
				CHECK_OK(shmdt(p));
				CHECK_INT(shm_nattch(id), 2);
			}
			child_ok(child);
			CHECK_INT(shm_nattch(id), 2);
		}
		child_ok(kid);
		CHECK_INT(shm_nattch(id), 1);
	}
}

/* SEM_UNDO of a child that is killed is applied before its parent's wait returns. */
static void killed_children(void **state)
{
	struct sembuf up = {0, 1, SEM_UNDO};
	int set = own_sem((int)CHECK_OK(semget(IPC_PRIVATE, 1, 0600)));

	(void)state;
	for (int kind = 0; kind < KINDS; kind++) {
		pid_t kid;

		IN_CHILD (kid) {
			pid_t child;

			CHECK_INT(semctl(set, 0, GETVAL), 0);
			take_away(kind);
			child = fork();
			if (child == 0) {
				if (semop(set, &up, 1) < 0)
					_exit(1);
				for (;;)
					pause();
			}
			UNTIL(semctl(set, 0, GETVAL) == 1);
			CHECK_OK(kill(child, SIGKILL));
			CHECK_INT(waitpid(child, NULL, 0), child);
			CHECK_INT(semctl(set, 0, GETVAL), 0);
		}
		child_ok(kid);
	}
}

int main(int argc, char **argv)
{
	static const struct role roles[] = {
		{"use_first", use_first},
		{NULL, NULL},
	};
	const struct CMUnitTest tests[] = {
		TEST(between_calls),
		TEST(before_the_first_call),
		TEST(in_forked_children),
		TEST(killed_children),
	};

	harness_begin(argc, argv, roles);
	return cmocka_run_group_tests_name("descriptors", tests, NULL, NULL);
}
