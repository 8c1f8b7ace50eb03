// SPDX-License-Identifier: MIT
/* What a process finds out about itself by /proc counts for each of its threads. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/ident.h"
#include "base/text.h"
#include "client/gone.h"
#include "unit.h"

#define NOT_PERMITTED 77
#define GROUPS_MANY   2000
#define NOBODY        65534

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

/* ---- A process of another pid namespace ---------------------------------------------------- */

static uint32_t inner_view;
static uint64_t inner_start;
static pid_t inner_shown;

/* It has a long list of groups, of which /proc tells before it tells of the pids. */
static void be_inside(int out)
{
	gid_t groups[GROUPS_MANY];
	uint32_t view;

	for (unsigned i = 0; i < GROUPS_MANY; i++)
		groups[i] = 100000 + i;
	if (setgroups(GROUPS_MANY, groups) < 0 || ident_view(&view) < 0)
		_exit(1);
	(void)!write(out, &view, sizeof(view));
	for (;;)
		pause();
}

static int look_inside(uint64_t start)
{
	enum ident_state state;
	pid_t shown;
	int rc = ident_try_elsewhere(inner_view, 1, start, &state, &shown);

	return rc < 0 ? rc : shown && shown != inner_shown ? -ESRCH : (int)state;
}

static void look_as_anybody(void)
{
	_exit(look_inside(inner_start) == IDENT_ALIVE ? 0 : 1);
}

/* Who may not see of which namespaces the others are: as if they executed setuid programs. */
static void look_as_nobody(void)
{
	if (setgroups(0, NULL) < 0 || setuid(NOBODY) < 0)
		_exit(NOT_PERMITTED);
	_exit(look_inside(inner_start) != IDENT_ALIVE      ? 1
	      : look_inside(inner_start + 1) != IDENT_GONE ? 2
							   : 0);
}

/* The folder can be opened, and then nothing more. */
static void look_with_few_descriptors(void)
{
	struct rlimit limit = {0, 0};
	int next = dup(0);

	limit.rlim_cur = limit.rlim_max = (rlim_t)next + 1;
	if (next < 0 || close(next) < 0 || setrlimit(RLIMIT_NOFILE, &limit) < 0)
		_exit(1);
	_exit(look_inside(inner_start) == -EMFILE ? 0 : 2);
}

static void test_process_of_another_pid_namespace(void **state)
{
	int out[2], anybody, few, nobody;
	pid_t pid;

	(void)state;
	EXPECT(pipe(out) == 0);
	pid = (pid_t)syscall(SYS_clone, CLONE_NEWPID | SIGCHLD, 0, 0, 0, 0);
	if (pid < 0)
		skip();
	if (pid == 0)
		be_inside(out[1]);
	close(out[1]);
	if (read(out[0], &inner_view, sizeof(inner_view)) != sizeof(inner_view))
		inner_view = 0;
	close(out[0]);
	inner_shown = pid;
	inner_start = ident_start(pid);
	anybody = in_child(look_as_anybody);
	few = in_child(look_with_few_descriptors);
	nobody = in_child(look_as_nobody);
	kill(pid, SIGKILL);
	EXPECT_INT(waitpid(pid, NULL, 0), pid);
	EXPECT_INT(look_inside(inner_start), IDENT_GONE);
	EXPECT_INT(anybody, 0);
	EXPECT_INT(few, 0);
	EXPECT(nobody == 0 || nobody == NOT_PERMITTED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pid_used_again_at_once),
		cmocka_unit_test(test_first_thread_has_ended),
		cmocka_unit_test(test_process_of_another_pid_namespace),
		cmocka_unit_test(test_thread_leaves_its_pid_namespace),
		cmocka_unit_test(test_exec_by_another_thread),
	};

	return cmocka_run_group_tests_name("ident", tests, NULL, NULL);
}
