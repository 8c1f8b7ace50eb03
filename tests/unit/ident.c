// SPDX-License-Identifier: MIT
/* What a process finds out about itself by /proc counts for each of its threads. */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/ident.h"
#include "base/text.h"
#include "client/gone.h"
#include "unit.h"

#define NOT_PERMITTED 77

/* What run() in a child says when it ends by _exit(). */
static int in_child(void (*run)(void))
{
	int status;
	pid_t kid = fork();

	EXPECT(kid >= 0);
	if (kid == 0) {
		run();
		_exit(99);
	}
	EXPECT(waitpid(kid, &status, 0) == kid && WIFEXITED(status));
	return WEXITSTATUS(status);
}

static pthread_t first;
static uint32_t view_before;
static unsigned char *gone;
static int ends[2];

static void *outlive(void *unused)
{
	char path[TEXT_DESCRIPTOR_BYTES];
	uint32_t view;

	(void)unused;
	if (pthread_join(first, NULL) != 0)
		_exit(1);
	if (ident_view(&view) != 0 || view != view_before)
		_exit(2);
	text_put_descriptor(path, ends[0]);
	if (access(path, F_OK) < 0)
		_exit(5);
	if (!gone_mapped_file(gone))
		_exit(6);
	_exit(ident_forks_away() ? 3 : 0);
}

static void end_the_first_thread(void)
{
	pthread_t thread;

	first = pthread_self();
	gone = mmap(NULL, 1, PROT_READ, MAP_SHARED, memfd_create("gone", MFD_CLOEXEC), 0);
	if (gone == MAP_FAILED || pipe(ends) < 0)
		_exit(7);
	if (ident_view(&view_before) != 0 || pthread_create(&thread, NULL, outlive, NULL) != 0)
		_exit(4);
	pthread_exit(NULL);
}

static void test_first_thread_has_ended(void **state)
{
	(void)state;
	EXPECT_INT(in_child(end_the_first_thread), 0);
}

static void *leave(void *ret_forks_away)
{
	if (unshare(CLONE_NEWPID) < 0)
		_exit(NOT_PERMITTED);
	*(bool *)ret_forks_away = ident_forks_away();
	return NULL;
}

static void leave_in_another_thread(void)
{
	pthread_t thread;
	bool forks_away;

	if (pthread_create(&thread, NULL, leave, &forks_away) != 0 ||
	    pthread_join(thread, NULL) != 0)
		_exit(1);
	_exit(!forks_away ? 2 : ident_forks_away() ? 3 : 0);
}

static void test_thread_leaves_its_pid_namespace(void **state)
{
	int status = in_child(leave_in_another_thread);

	(void)state;
	if (status == NOT_PERMITTED)
		skip();
	EXPECT_INT(status, 0);
}

#define EXECS 300

static void *execute(void *unused)
{
	(void)unused;
	execl("/bin/cat", "cat", (char *)NULL); /* ends at the latest when the test does */
	_exit(1);
}

/* The first thread ends by it, and until then it is the one that shows under the process's pid. */
static void execute_in_another_thread(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, execute, NULL) != 0)
		_exit(1);
	for (;;)
		pause();
}

static bool is_cat(pid_t pid)
{
	char path[64], name[16] = "";
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
	f = fopen(path, "re");
	/* Not to be had while the thread takes the first one's place. */
	if (!f || !fgets(name, sizeof(name), f))
		name[0] = 0;
	if (f)
		fclose(f);
	return strcmp(name, "cat\n") == 0;
}

/* At no moment does it look dead. */
static void test_exec_by_another_thread(void **state)
{
	(void)state;
	EXPECT_INT(pipe2(ends, O_CLOEXEC), 0);
	for (int i = 0; i < EXECS; i++) {
		pid_t kid = fork();
		uint64_t start;
		int status;

		EXPECT(kid >= 0);
		if (kid == 0) {
			if (dup2(ends[0], STDIN_FILENO) < 0)
				_exit(1);
			execute_in_another_thread();
		}
		start = ident_start(kid);
		do
			for (int looks = 0; looks < 10; looks++)
				EXPECT_INT(ident_process(kid, start), IDENT_ALIVE);
		while (!is_cat(kid));
		EXPECT_INT(kill(kid, SIGKILL), 0);
		EXPECT(waitpid(kid, &status, 0) == kid && WIFSIGNALED(status));
	}
	close(ends[0]);
	close(ends[1]);
}

/* A pid that is used twice within a tick: what is above the ticks differs. */
static void test_pid_used_again_at_once(void **state)
{
	uint64_t own = ident_start(getpid()), ticks = own & 0xffffffffffff, childs;
	pid_t kid = fork();
	int status;

	(void)state;
	EXPECT(kid >= 0);
	if (kid == 0) {
		pause();
		_exit(0);
	}
	childs = ident_start(kid);
	kill(kid, SIGKILL);
	EXPECT_INT(waitpid(kid, &status, 0), kid);
	EXPECT(own && childs);
	EXPECT_INT(ident_process(getpid(), own), IDENT_ALIVE);
	EXPECT_INT(ident_process(getpid(), ticks), IDENT_ALIVE); /* nothing more is known */
	EXPECT_INT(ident_process(getpid(), own + 1), IDENT_GONE);
	EXPECT(ident_same_start(own, ticks) && ident_same_start(ticks, own));
	EXPECT(!ident_same_start(own, own + 1));
	if (own >> 48 == childs >> 48)
		skip(); /* before Linux 6.9 */
	EXPECT(!ident_same_start(own, ticks | childs >> 48 << 48));
	EXPECT_INT(ident_process(getpid(), ticks | childs >> 48 << 48), IDENT_GONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pid_used_again_at_once),
		cmocka_unit_test(test_first_thread_has_ended),
		cmocka_unit_test(test_thread_leaves_its_pid_namespace),
		cmocka_unit_test(test_exec_by_another_thread),
	};

	return cmocka_run_group_tests_name("ident", tests, NULL, NULL);
}
