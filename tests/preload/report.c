// SPDX-License-Identifier: MIT
/*
 * Messages from inside other people's programs: one line, once, and no harm done whatever became
 * of standard error. And copies of user memory where no handler mends faults, by probing alone.
 */
#include "support.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "client/report.h"
#include "client/thread.h"
#include "client/usercopy.h"

__thread struct thread_block *thread_self;
void (*thread_flush_signals)(struct thread_block *tb);

static int saved_stderr;

static int keep(void **state)
{
	(void)state;
	saved_stderr = dup(2);
	return saved_stderr < 0;
}

static int put_back(void **state)
{
	(void)state;
	dup2(saved_stderr, 2);
	close(saved_stderr);
	return 0;
}

/* What report() wrote while standard error was a pipe. */
static void read_back(int fd, char *text, size_t size)
{
	ssize_t n = read(fd, text, size - 1);

	text[n > 0 ? n : 0] = '\0';
}

static void one_line_once(void **state)
{
	char text[4096], expected[128];
	int fd[2];

	(void)state;
	assert_int_equal(pipe2(fd, O_NONBLOCK), 0);
	dup2(fd[1], 2);
	errno = 1234;
	report(REPORT_NAMESPACE, "%s %d %u %x %d%%", "text", -2147483647 - 1, 4294967295u, 0xbeefu,
	       0);
	assert_int_equal(errno, 1234);
	read_back(fd[0], text, sizeof(text));
	strcpy(expected, "usysv: text -2147483648 4294967295 beef 0%\n");
	assert_string_equal(text, expected);
	report(REPORT_NAMESPACE, "again");
	read_back(fd[0], text, sizeof(text));
	assert_string_equal(text, "");
	report(REPORT_DAMAGE, "another");
	read_back(fd[0], text, sizeof(text));
	assert_string_equal(text, "usysv: another\n");
	close(fd[0]);
	close(fd[1]);
}

static void long_text_is_cut(void **state)
{
	static char filler[3000], text[4096];
	int fd[2];

	(void)state;
	memset(filler, 'x', sizeof(filler) - 1);
	assert_int_equal(pipe2(fd, O_NONBLOCK), 0);
	dup2(fd[1], 2);
	report(REPORT_SEGMENT, "%s", filler);
	read_back(fd[0], text, sizeof(text));
	assert_true(strlen(text) > 500 && strlen(text) <= 1024);
	assert_int_equal(text[strlen(text) - 1], '\n');
	close(fd[0]);
	close(fd[1]);
}

static void closed_pipe_does_not_kill(void **state)
{
	sigset_t pending;
	int fd[2];

	(void)state;
	signal(SIGPIPE, SIG_DFL);
	assert_int_equal(pipe(fd), 0);
	dup2(fd[1], 2);
	close(fd[1]);
	close(fd[0]);
	report(REPORT_EXEC, "nobody reads this");
	assert_int_equal(sigpending(&pending), 0);
	assert_int_equal(sigismember(&pending, SIGPIPE), 0);
}

static void full_pipe_does_not_block(void **state)
{
	char block[4096] = {0};
	int fd[2], status = -1;
	pid_t pid;

	(void)state;
	assert_int_equal(pipe2(fd, O_NONBLOCK), 0);
	while (write(fd[1], block, sizeof(block)) > 0)
		;
	fcntl(fd[1], F_SETFL, 0);
	dup2(fd[1], 2);
	/* In a child: no kind is left that is said here alone. */
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		alarm(10);
		report(REPORT_PLACE, "no room for this");
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	close(fd[0]);
	close(fd[1]);
}

static void no_standard_error(void **state)
{
	(void)state;
	close(2);
	errno = 77;
	report(REPORT_PLACE, "to nowhere");
	assert_int_equal(errno, 77);
}

static void errors_have_texts(void **state)
{
	(void)state;
	assert_string_equal(report_errno(EACCES), "permission denied");
	assert_string_equal(report_errno(-EACCES), "permission denied");
	assert_string_equal(report_errno(99999), "unexpected error");
}

static void probing_alone(void **state)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *p = mmap(NULL, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	static char here[20000];

	(void)state;
	assert_ptr_not_equal(p, MAP_FAILED);
	assert_int_equal(mprotect(p + page, page, PROT_READ), 0);
	assert_int_equal(mprotect(p + 2 * page, page, PROT_NONE), 0);
	assert_false(usercopy_handlers);
	for (int probe = 0; probe < 2; probe++) {
		memset(p, 'a', page);
		assert_int_equal(usercopy_in(here, p, 2 * page, probe), 0);
		assert_int_equal(here[page - 1], 'a');
		assert_int_equal(here[page], 0);
		assert_int_equal(usercopy_in(here, p, 2 * page + 1, probe), -EFAULT);
		assert_int_equal(usercopy_in(here, p + 2 * page - 1, 2, probe), -EFAULT);
		assert_int_equal(usercopy_in(here, p + 2 * page, 1, probe), -EFAULT);
		assert_int_equal(usercopy_in(here, NULL, 1, probe), -EFAULT);
		assert_int_equal(usercopy_in(here, (void *)-1, 1, probe), -EFAULT);
		assert_int_equal(usercopy_in(here, p, SIZE_MAX, probe), -EFAULT);
		assert_int_equal(usercopy_out(p, here, page, probe), 0);
		assert_int_equal(usercopy_out(p + 1, here, page, probe), -EFAULT);
		assert_int_equal(usercopy_out(p + page - 1, "bc", 2, probe), -EFAULT);
		assert_int_equal(p[page - 1], 'a');
		assert_int_equal(usercopy_out(p + 2 * page, here, 1, probe), -EFAULT);
		assert_int_equal(usercopy_out(p + page - 1, "b", 1, probe), 0);
		assert_int_equal(p[page - 1], 'b');
	}
	munmap(p, 3 * page);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(one_line_once, keep, put_back),
		cmocka_unit_test_setup_teardown(long_text_is_cut, keep, put_back),
		cmocka_unit_test_setup_teardown(closed_pipe_does_not_kill, keep, put_back),
		cmocka_unit_test_setup_teardown(full_pipe_does_not_block, keep, put_back),
		cmocka_unit_test_setup_teardown(no_standard_error, keep, put_back),
		cmocka_unit_test(errors_have_texts),
		cmocka_unit_test(probing_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
