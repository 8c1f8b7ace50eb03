// SPDX-License-Identifier: MIT
/* Helpers with descriptors to spare: what they give back, and that nothing comes of one that
 * dies. */
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "client/spare.h"
#include "unit.h"

struct work {
	pid_t caller;
	int runs, result;
	const int *seen; /* what the caller sees of `runs` meanwhile */
	int seen_there;
	bool dies;
};

static int work(void *context)
{
	struct work *w = context;

	w->runs++;
	if (syscall(SYS_getpid) == w->caller)
		return -EMFILE;
	w->seen_there = *w->seen;
	if (w->dies)
		kill((pid_t)syscall(SYS_getpid), SIGKILL);
	return w->result;
}

static void test_helper_gives_back(void **state)
{
	struct work w = {.caller = getpid(), .result = 7, .seen = &w.runs};

	(void)state;
	EXPECT_INT(spare_run(work, &w, sizeof(w)), 7);
	EXPECT_INT(w.runs, 2);
	/* It works on a copy: this stack may be another's by the time that its caller is dead. */
	EXPECT_INT(w.seen_there, 1);
}

static void test_second_try_in_the_helper(void **state)
{
	struct work w = {.caller = getpid(), .result = -EMFILE, .seen = &w.runs};

	(void)state;
	EXPECT_INT(spare_run(work, &w, sizeof(w)), -EMFILE);
	EXPECT_INT(w.runs, 3);
}

static void test_helper_is_killed(void **state)
{
	struct work w = {.caller = getpid(), .result = 7, .seen = &w.runs, .dies = true};

	(void)state;
	EXPECT_INT(spare_run(work, &w, sizeof(w)), -EMFILE);
	EXPECT_INT(w.runs, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_helper_gives_back),
		cmocka_unit_test(test_second_try_in_the_helper),
		cmocka_unit_test(test_helper_is_killed),
	};

	return cmocka_run_group_tests_name("spare", tests, NULL, NULL);
}
