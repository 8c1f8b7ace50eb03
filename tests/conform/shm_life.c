// SPDX-License-Identifier: MIT
/*
 * conform-shm-life: who counts as attached: over fork and vfork, exec, every kind of end, munmap,
 * mremap and mprotect; and when a removed segment goes. Wherever a test looks after the end of a
 * child it looks once: a wrong 0 would let two database servers at one another's data.
 */
#include "conform/shm_calls.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>

#ifndef SYS_close_range
#define SYS_close_range 436
#endif

static bool is_gone(int id)
{
	return shmctl(id, IPC_STAT, &(struct shmid_ds){0}) == -1 && errno == EINVAL;
}

/* ---- mappings of one process ---- */

static void each_attach_counts(void **state)
{
	int id = shm_new(PAGE);
	char *p[40];

	(void)state;
	for (int i = 0; i < 40; i++) {
		p[i] = shm_at(id, NULL, i % 2 ? SHM_RDONLY : 0);
		CHECK_INT(shm_nattch(id), i + 1);
	}
	for (int i = 0; i < 40; i++) {
		CHECK_OK(shmdt(p[i]));
		CHECK_INT(shm_nattch(id), 39 - i);
	}
}

static void many_segments(void **state)
{
	char *p[300];
	int id[300];

	(void)state;
	for (int i = 0; i < 300; i++) {
		id[i] = shm_new(PAGE);
		p[i] = shm_at(id[i], NULL, 0);
		CHECK_OK(shmctl(id[i], IPC_RMID, NULL));
	}
	for (int i = 0; i < 300; i += 7)
		CHECK_INT(shm_nattch(id[i]), 1);
	for (int i = 0; i < 300; i++)
		CHECK_OK(shmdt(p[i]));
	for (int i = 0; i < 300; i += 7)
		CHECK(is_gone(id[i]));
}

static void pieces_count(void **state)
{
	int id = shm_new(5 * PAGE);
	char *p = shm_at(id, NULL, 0);

	(void)state;
	CHECK_OK(munmap(p + 4 * PAGE, PAGE));
	CHECK_INT(shm_nattch(id), 1);
	CHECK_OK(munmap(p + PAGE, PAGE));
	CHECK_INT(shm_nattch(id), 2);
	CHECK_OK(mprotect(p + 2 * PAGE, PAGE, PROT_READ));
	CHECK_INT(shm_nattch(id), 3);
	CHECK_OK(munmap(p, 5 * PAGE));
	CHECK_INT(shm_nattch(id), 0);
	CHECK_ERR(shmdt(p), EINVAL);
}

static void pieces_that_are_alike_again(void **state)
{
	int id = shm_new(3 * PAGE);
	char *p = shm_at(id, NULL, 0);

	(void)state;
	CHECK_OK(mprotect(p + PAGE, PAGE, PROT_READ));
	CHECK_INT(shm_nattch(id), 3);
	CHECK_OK(mprotect(p + PAGE, PAGE, PROT_READ | PROT_WRITE));
	compat_skip("shm-nattch");
	CHECK_INT(shm_nattch(id), 3);
	CHECK_OK(shmdt(p));
	CHECK_INT(shm_nattch(id), 0);
}

/* ---- fork ---- */

static void fork_doubles(void **state)
{
	int id = shm_new(PAGE);
	char *p = shm_at(id, NULL, 0), *q = shm_at(id, NULL, SHM_RDONLY);
	pid_t kid;

	(void)state;
	IN_CHILD (kid) {
		UNTIL(board->flag[0]);
		CHECK_INT(shm_nattch(id), 4);
		CHECK_OK(shmdt(q));
		CHECK_INT(shm_nattch(id), 3);
		board->flag[1] = 1;
		UNTIL(board->flag[2]);
	}
	CHECK_INT(shm_nattch(id), 4);
	board->flag[0] = 1;
	UNTIL(board->flag[1]);
	CHECK_INT(shm_nattch(id), 3);
	board->flag[2] = 1;
	child_ok(kid);
	CHECK_INT(shm_nattch(id), 2);
	CHECK_OK(shmdt(p));
	CHECK_OK(shmdt(q));
	CHECK_INT(shm_nattch(id), 0);
}

static void fork_sets_atime_and_lpid_of_the_parent(void **state)
{
	int id = shm_new(PAGE);
	char *p = shm_at(id, NULL, 0);
	struct shmid_ds was = shm_stat(id), ds;
	pid_t kid;

	(void)state;
	pass_second(was.shm_atime);
	IN_CHILD (kid)
		UNTIL(board->flag[0]);
	ds = shm_stat(id);
	CHECK(ds.shm_atime > was.shm_atime);
	CHECK_INT(ds.shm_lpid, getpid());
	CHECK_INT(ds.shm_dtime, 0);
	board->flag[0] = 1;
	child_ok(kid);
	ds = shm_stat(id);
	CHECK(ds.shm_dtime != 0);
	CHECK_INT(ds.shm_lpid, kid);
	CHECK_OK(shmdt(p));
}

static void grandchildren_count(void **state)
{
	int id = shm_new(PAGE);
	char *p = shm_at(id, NULL, 0);
	pid_t kid, grandkid;

	(void)state;
	IN_CHILD (kid) {
		CHECK_OK(shmdt(p));
		CHECK_INT(shm_nattch(id), 1);
		p = shm_at(id, NULL, 0);
		IN_CHILD (grandkid) {
			board->flag[0] = 1;
			UNTIL(board->flag[1]);
		}
		CHECK_INT(shm_nattch(id), 3);
		board->flag[2] = 1;
		child_ok(grandkid);
		CHECK_INT(shm_nattch(id), 2);
	}
	UNTIL(board->flag[0] && board->flag[2]);
	CHECK_INT(shm_nattch(id), 3);
	board->flag[1] = 1;
	child_ok(kid);
	CHECK_INT(shm_nattch(id), 1);
	CHECK_OK(shmdt(p));
}

static void child_holds_what_its_parent_detached(void **state)
{
	int id = shm_new(PAGE);
	char *p = shm_at(id, NULL, 0);
	pid_t kid;

	(void)state;
	IN_CHILD (kid) {
		UNTIL(board->flag[0]);
		CHECK_INT(p[0], 'p');
		CHECK_INT(shm_nattch(id), 1);
		CHECK_OK(shmdt(p));
		CHECK(is_gone(id));
	}
	p[0] = 'p';
	CHECK_OK(shmdt(p));
	CHECK_INT(shm_nattch(id), 1);
	CHECK_OK(shmctl(id, IPC_RMID, NULL));
	CHECK_INT(shm_nattch(id), 1);
	board->flag[0] = 1;
	child_ok(kid);
	CHECK(is_gone(id));
}

static void what_is_not_inherited_does_not_count(void **state)
{
	int id = shm_new(PAGE);
	char *p = shm_at(id, NULL, 0);
	pid_t kid;

	(void)state;
	CHECK_OK(madvise(p, PAGE, MADV_DONTFORK));
	IN_CHILD (kid) {
		CHECK_ERR(shmdt(p), EINVAL);
		board->flag[0] = 1;
		UNTIL(board->flag[1]);
	}
	UNTIL(board->flag[0]);
	CHECK_INT(shm_nattch(id), 1);
	board->flag[1] = 1;
	child_ok(kid);
	CHECK_INT(shm_nattch(id), 1);
	CHECK_OK(shmdt(p));
}

static void child_of_a_raw_clone_holds_it(void **state)
{
	int id = shm_new(PAGE);
	char *p = shm_at(id, NULL, 0);
	pid_t kid;

	(void)state;
	kid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	if (kid == 0) {
		while (!board->flag[0])
			;
		(void)syscall(SYS_exit_group, p[0]);
	}
	CHECK(kid > 0);
	CHECK_OK(shmdt(p));
	CHECK_INT(shm_nattch(id), 1);
	CHECK_OK(shmctl(id, IPC_RMID, NULL));
	CHECK_INT(shm_nattch(id), 1);
	board->flag[0] = 1;
	CHECK_INT(waitpid(kid, NULL, 0), kid);
	CHECK(is_gone(id));
}

static void vfork_adds_nothing(void **state)
{
	int id = shm_new(PAGE);
	char *p = shm_at(id, NULL, 0);
	pid_t kid = vfork();

	(void)state;
	if (kid == 0)
		_exit(0);
	CHECK_INT(waitpid(kid, NULL, 0), kid);
	CHECK_INT(shm_nattch(id), 1);
	CHECK_INT(*p, 0);
	CHECK_OK(shmdt(p));
}

static void fork_after_all_descriptors_were_closed(void **state)
{
	int id = shm_new(PAGE);
	char *p = shm_at(id, NULL, 0);
	pid_t kid, grandkid;

	(void)state;
	IN_CHILD (kid) {
		(void)syscall(SYS_close_range, 3, ~0u, 0);
		CHECK_INT(shm_nattch(id), 2);
		IN_CHILD (grandkid)
			CHECK_INT(shm_nattch(id), 3);
		board->flag[2] = 1;
		child_ok(grandkid);
		CHECK_INT(shm_nattch(id), 2);
		*shm_at(id, NULL, 0) = 1;
	}
	child_ok(kid);
	CHECK_INT(shm_nattch(id), 1);
	CHECK_INT(*p, 1);
	CHECK_OK(shmdt(p));
}

/* ---- exec ---- */

static int see_nattch(int argc, char **argv)
{
	(void)argc;
	return shm_nattch(atoi(argv[0])) == atoi(argv[1]) ? 0 : CHILD_FAILED;
}

static int wait_for_flag(int argc, char **argv)
{
	char c;

	(void)argc;
	return (int)read(atoi(argv[0]), &c, 1);
}

static void exec_detaches(void **state)
{
	int id = shm_new(PAGE);
	char *p = shm_at(id, NULL, 0), text[16];
	struct shmid_ds was, ds;
	pid_t kid;

	(void)state;
	(void)snprintf(text, sizeof(text), "%d", id);
	was = shm_stat(id);
	pass_second(was.shm_atime);
	IN_CHILD (kid)
		exec_self("see_nattch", text, "1", (char *)NULL);
	child_ok(kid);
	ds = shm_stat(id);
	CHECK_INT(ds.shm_nattch, 1);
	CHECK(ds.shm_dtime > was.shm_atime);
	CHECK_INT(ds.shm_lpid, kid);
	CHECK_OK(shmdt(p));
}

static void exec_seen_by_others(void **state)
{
	int id = shm_new(PAGE), pipes[2];
	char *p = shm_at(id, NULL, 0), text[16];
	pid_t kid;

	(void)state;
	CHECK_OK(pipe(pipes));
	(void)snprintf(text, sizeof(text), "%d", pipes[0]);
	IN_CHILD (kid) {
		CHECK_OK(fcntl(pipes[1], F_SETFD, FD_CLOEXEC));
		exec_self("wait_for_flag", text, (char *)NULL);
	}
	UNTIL(shm_nattch(id) == 1);
	CHECK_OK(shmctl(id, IPC_RMID, NULL));
	CHECK_OK(shmdt(p));
	CHECK(is_gone(id));
	CHECK_INT(write(pipes[1], "", 1), 1);
	CHECK_OK(close(pipes[1]));
	CHECK_INT(WEXITSTATUS(child_status(kid)), 1);
	CHECK_OK(close(pipes[0]));
}

static void failed_exec_changes_nothing(void **state)
{
	int id = shm_new(PAGE);
	char *p = shm_at(id, NULL, 0);

	(void)state;
	CHECK_ERR(execl("/nowhere/nothing", "nothing", (char *)NULL), ENOENT);
	CHECK_INT(shm_nattch(id), 1);
	*p = 1;
	CHECK_OK(shmdt(p));
	CHECK_INT(shm_nattch(id), 0);
}

/* ---- the list ---- */

/* nattch in /proc/sysvipc/shm; -1: the segment is not there. */
static int listed_nattch(int id)
{
	FILE *f = (FILE *)CHECK_OK(fopen("/proc/sysvipc/shm", "re"));
	char line[400];
	int found = -1;

	while (fgets(line, sizeof(line), f)) {
		int at, nattch;

		if (sscanf(line, "%*d %d %*o %*u %*d %*d %d", &at, &nattch) == 2 && at == id)
			found = nattch;
	}
	CHECK_OK(fclose(f));
	return found;
}

static void list_counts_as_stat_does(void **state)
{
	int pieces = shm_new(8 * PAGE), thrice = shm_new(PAGE), unused = shm_new(PAGE);
	int removed = shm_new(PAGE), of_killed = shm_new(PAGE), of_child = shm_new(PAGE);
	char *p = shm_at(pieces, NULL, 0);
	pid_t kid, killed;

	(void)state;
	CHECK_OK(munmap(p + PAGE, PAGE));
	for (int i = 0; i < 3; i++)
		shm_at(thrice, NULL, i == 1 ? SHM_RDONLY : 0);
	shm_at(removed, NULL, 0);
	CHECK_OK(shmctl(removed, IPC_RMID, NULL));
	CHECK_INT(listed_nattch(pieces), 2);
	CHECK_INT(listed_nattch(removed), 1);
	IN_CHILD (killed) {
		shm_at(of_killed, NULL, 0);
		CHECK_INT(listed_nattch(of_killed), 1);
		CHECK_INT(listed_nattch(thrice), 6);
		CHECK_OK(kill(getpid(), SIGKILL));
	}
	CHECK_INT(child_status(killed), SIGKILL);
	IN_CHILD (kid) {
		shm_at(of_child, NULL, 0);
		board->flag[0] = 1;
		UNTIL(board->flag[1]);
	}
	UNTIL(board->flag[0]);
	CHECK_INT(listed_nattch(pieces), 4);
	CHECK_INT(listed_nattch(thrice), 6);
	CHECK_INT(listed_nattch(unused), 0);
	CHECK_INT(listed_nattch(removed), 2);
	CHECK_INT(listed_nattch(of_killed), 0);
	CHECK_INT(listed_nattch(of_child), 1);
	CHECK_INT(shm_nattch(thrice), 6);
	board->flag[1] = 1;
	child_ok(kid);
	CHECK_INT(listed_nattch(removed), 1);
	CHECK_INT(listed_nattch(of_child), 0);
}

/* ---- ends ---- */

static void end_by_exit(void)
{
	exit(0);
}

static void end_by_underscore_exit(void)
{
	_exit(0);
}

static void end_by_raw_exit_group(void)
{
	(void)syscall(SYS_exit_group, 0);
}

static void end_by_sigkill(void)
{
	(void)raise(SIGKILL);
}

static void end_by_abort(void)
{
	abort();
}

static void *kill_all(void *arg)
{
	(void)raise(SIGKILL);
	return arg;
}

static void end_by_a_thread(void)
{
	pthread_t thread;

	CHECK_INT(pthread_create(&thread, NULL, kill_all, NULL), 0);
	(void)pthread_join(thread, NULL);
}

static void every_kind_of_end_detaches(void **state)
{
	static void (*const ends[])(void) = {
		end_by_exit,    end_by_underscore_exit, end_by_raw_exit_group,
		end_by_sigkill, end_by_abort,           end_by_a_thread,
	};
	int id = shm_new(PAGE);

	(void)state;
	for (size_t i = 0; i < ARRAY_COUNT(ends); i++) {
		pid_t kid;

		IN_CHILD (kid) {
			(void)shm_at(id, NULL, 0);
			(void)shm_at(id, NULL, SHM_RDONLY);
			CHECK_INT(shm_nattch(id), 2);
			ends[i]();
		}
		CHECK_INT(waitpid(kid, NULL, 0), kid);
		child_forget(kid);
		CHECK_INT(shm_nattch(id), 0);
		CHECK_INT(shm_stat(id).shm_lpid, kid);
		CHECK(shm_stat(id).shm_dtime != 0);
	}
}

static void ends_of_children_that_made_no_call(void **state)
{
	int id = shm_new(PAGE);
	char *p = shm_at(id, NULL, 0);

	(void)state;
	for (int i = 0; i < 20; i++) {
		pid_t kid;

		IN_CHILD (kid) {
			if (i % 2)
				(void)raise(SIGKILL);
		}
		CHECK_INT(waitpid(kid, NULL, 0), kid);
		child_forget(kid);
		CHECK_INT(shm_nattch(id), 1);
		CHECK_INT(shm_stat(id).shm_lpid, kid);
	}
	CHECK_OK(shmdt(p));
}

static void removed_segment_goes_with_its_last_process(void **state)
{
	int id = shm_new(PAGE);
	pid_t kid;

	(void)state;
	IN_CHILD (kid) {
		(void)shm_at(id, NULL, 0);
		board->flag[0] = 1;
		UNTIL(board->flag[1]);
	}
	UNTIL(board->flag[0]);
	CHECK_OK(shmctl(id, IPC_RMID, NULL));
	CHECK_INT(shm_nattch(id), 1);
	child_kill(kid);
	CHECK(is_gone(id));
}

static void *detach(void *p)
{
	CHECK_OK(shmdt(p));
	return NULL;
}

static void threads_attach_together(void **state)
{
	int id = shm_new(PAGE);
	pid_t kid;

	(void)state;
	IN_CHILD (kid) {
		char *p = shm_at(id, NULL, 0);
		pthread_t thread;

		(void)shm_at(id, NULL, 0);
		CHECK_INT(pthread_create(&thread, NULL, detach, p), 0);
		CHECK_INT(pthread_join(thread, NULL), 0);
		CHECK_INT(shm_nattch(id), 1);
	}
	child_ok(kid);
	CHECK_INT(shm_nattch(id), 0);
}

static void *attach_and_detach(void *arg)
{
	for (int i = 0; i < 200; i++)
		CHECK_OK(shmdt(shm_at(*(int *)arg, NULL, i % 3 ? 0 : SHM_RDONLY)));
	return NULL;
}

static void threads_and_forks_at_once(void **state)
{
	int id = shm_new(PAGE);
	pid_t kid;

	(void)state;
	IN_CHILD (kid) {
		pthread_t threads[3];

		for (int i = 0; i < 3; i++)
			CHECK_INT(pthread_create(&threads[i], NULL, attach_and_detach, &id), 0);
		for (int i = 0; i < 20; i++) {
			pid_t grandkid = fork();

			if (grandkid == 0)
				_exit(0);
			CHECK_INT(waitpid(grandkid, NULL, 0), grandkid);
		}
		for (int i = 0; i < 3; i++)
			CHECK_INT(pthread_join(threads[i], NULL), 0);
		CHECK_INT(shm_nattch(id), 0);
	}
	child_ok(kid);
	CHECK_INT(shm_nattch(id), 0);
}

static int heard_id;

static void *outlive(void *main_thread)
{
	char *p;

	CHECK_INT(pthread_join(*(pthread_t *)main_thread, NULL), 0);
	p = shm_at(heard_id, NULL, SHM_RDONLY);
	board->flag[0] = 1;
	UNTIL(board->flag[1]);
	CHECK_OK(shmdt(p));
	board->flag[2] = 1;
	for (;;)
		(void)pause();
	return NULL;
}

static void counts_when_the_first_thread_has_ended(void **state)
{
	static pthread_t main_thread;
	pthread_t thread;
	pid_t kid;

	(void)state;
	heard_id = shm_new(PAGE);
	for (int i = 0; i < 8; i++)
		board->flag[i] = 0;
	IN_CHILD (kid) {
		(void)shm_at(heard_id, NULL, 0);
		main_thread = pthread_self();
		CHECK_INT(pthread_create(&thread, NULL, outlive, &main_thread), 0);
		pthread_exit(NULL);
	}
	UNTIL(board->flag[0]);
	CHECK_INT(shm_nattch(heard_id), 2);
	board->flag[1] = 1;
	UNTIL(board->flag[2]);
	CHECK_INT(shm_nattch(heard_id), 1);
	child_kill(kid);
	CHECK_INT(shm_nattch(heard_id), 0);
}

/* Apache and others attach as root and fork as somebody else. */
static void children_of_who_has_become_another_user(void **state)
{
	int id = shm_new(PAGE);
	pid_t kid, grandkid[3];

	(void)state;
	need_users();
	for (int i = 0; i < 8; i++)
		board->flag[i] = 0;
	IN_CHILD (kid) {
		char *p = shm_at(id, NULL, 0);

		(void)shm_at(id, NULL, SHM_RDONLY);
		become_nobody();
		for (int i = 0; i < 3; i++)
			IN_CHILD (grandkid[i]) {
				if (i == 0)
					CHECK_OK(shmdt(p));
				board->flag[i] = 1;
				for (;;)
					(void)pause();
			}
		for (int i = 0; i < 3; i++)
			UNTIL(board->flag[i]);
		board->flag[3] = 1;
		UNTIL(board->flag[4]);
		for (int i = 0; i < 3; i++)
			child_kill(grandkid[i]);
		board->flag[5] = 1;
		for (;;)
			(void)pause();
	}
	UNTIL(board->flag[3]);
	CHECK_INT(shm_nattch(id), 7);
	board->flag[4] = 1;
	UNTIL(board->flag[5]);
	CHECK_INT(shm_nattch(id), 2);
	child_kill(kid);
	CHECK_INT(shm_nattch(id), 0);
}

static void killed_in_the_middle_of_calls(void **state)
{
	int id = shm_new(PAGE);

	(void)state;
	for (int round = 0; round < 30; round++) {
		int64_t until;
		pid_t kid;

		board->flag[0] = 0;
		IN_CHILD (kid) {
			board->flag[0] = 1;
			for (;;) {
				char *p = shm_at(id, NULL, 0);
				int other = (int)CHECK_OK(shmget(IPC_PRIVATE, 1, 0600));

				CHECK_OK(shmctl(other, IPC_RMID, NULL));
				CHECK_OK(shmdt(p));
			}
		}
		UNTIL(board->flag[0]);
		until = monotonic_ns() + 200000 + round * 50000;
		while (monotonic_ns() < until)
			;
		child_kill(kid);
		CHECK_INT(shm_nattch(id), 0);
	}
	CHECK_OK(shmdt(shm_at(id, NULL, 0)));
	CHECK_INT(shm_nattch(id), 0);
}

/* ---- removal and attach race ---- */

static void removal_against_attach(void **state)
{
	pid_t kids[2];

	(void)state;
	for (int k = 0; k < 2; k++) {
		IN_CHILD (kids[k]) {
			while (!board->flag[0]) {
				int id = (int)board->number[0];
				char *p = shmat(id, NULL, 0);

				if (p == (char *)-1) {
					CHECK(errno == EINVAL || errno == EIDRM);
					continue;
				}
				CHECK(*p == 0 || *p == 'x');
				*p = 'x';
				/* attached: it is there, removed or not */
				CHECK(shm_nattch(id) >= 1);
				CHECK_OK(shmdt(p));
			}
		}
	}
	for (int i = 0; i < 300; i++) {
		int id = (int)CHECK_OK(shmget(IPC_PRIVATE, PAGE, 0600));

		board->number[0] = id;
		if (i % 3)
			sched_yield();
		CHECK_OK(shmctl(id, IPC_RMID, NULL));
		UNTIL(is_gone(id));
	}
	board->flag[0] = 1;
	child_ok(kids[0]);
	child_ok(kids[1]);
}

int main(int argc, char **argv)
{
	static const struct role roles[] = {
		{"see_nattch", see_nattch},
		{"wait_for_flag", wait_for_flag},
		{NULL, NULL},
	};
	const struct CMUnitTest tests[] = {
		TEST(each_attach_counts),
		TEST(many_segments),
		TEST(pieces_count),
		TEST(pieces_that_are_alike_again),
		TEST(fork_doubles),
		TEST(fork_sets_atime_and_lpid_of_the_parent),
		TEST(grandchildren_count),
		TEST(child_holds_what_its_parent_detached),
		TEST(what_is_not_inherited_does_not_count),
		TEST(child_of_a_raw_clone_holds_it),
		TEST(vfork_adds_nothing),
		TEST(fork_after_all_descriptors_were_closed),
		TEST(exec_detaches),
		TEST(exec_seen_by_others),
		TEST(failed_exec_changes_nothing),
		TEST(every_kind_of_end_detaches),
		TEST(ends_of_children_that_made_no_call),
		TEST(removed_segment_goes_with_its_last_process),
		TEST(list_counts_as_stat_does),
		TEST(threads_attach_together),
		TEST(threads_and_forks_at_once),
		TEST(counts_when_the_first_thread_has_ended),
		TEST(children_of_who_has_become_another_user),
		TEST(killed_in_the_middle_of_calls),
		TEST(removal_against_attach),
	};

	harness_begin(argc, argv, roles);
	return cmocka_run_group_tests_name("shm-life", tests, NULL, NULL);
}
