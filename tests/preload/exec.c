// SPDX-License-Identifier: MIT
/*
 * What new programs get from the preload library: the library itself and the namespace, by every
 * way of starting one, from any environment; and a word about programs that it cannot reach.
 */
#include "support.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>

extern char **environ;

/* This program, as the program that is started: prints its environment and leaves. */
static int print_environment(void)
{
	for (char **e = environ; *e; e++)
		puts(*e);
	return 0;
}

static char self[4096];
static char *const print_argv[] = {(char[]){"exec"}, (char[]){"print"}, NULL};
static char *none[] = {NULL};

static void by_execve(char **envp)
{
	execve(self, print_argv, envp);
}

static void by_execv(char **envp)
{
	environ = envp;
	execv(self, print_argv);
}

static void by_execvp(char **envp)
{
	environ = envp;
	execvp(self, print_argv);
}

static void by_execvpe(char **envp)
{
	execvpe(self, print_argv, envp);
}

static void by_execl(char **envp)
{
	environ = envp;
	execl(self, "exec", "print", (char *)NULL);
}

static void by_execlp(char **envp)
{
	environ = envp;
	execlp(self, "exec", "print", (char *)NULL);
}

static void by_execle(char **envp)
{
	execle(self, "exec", "print", (char *)NULL, envp);
}

static void by_fexecve(char **envp)
{
	fexecve(open(self, O_RDONLY | O_CLOEXEC), print_argv, envp);
}

static void by_execveat(char **envp)
{
	execveat(AT_FDCWD, self, print_argv, envp, 0);
}

static void by_execveat_fd(char **envp)
{
	execveat(open(self, O_RDONLY | O_CLOEXEC), "", print_argv, envp, AT_EMPTY_PATH);
}

static void finish(pid_t pid)
{
	int status;

	waitpid(pid, &status, 0);
	_exit(WEXITSTATUS(status));
}

static void by_posix_spawn(char **envp)
{
	pid_t pid;

	if (posix_spawn(&pid, self, NULL, NULL, print_argv, envp) == 0)
		finish(pid);
}

static void by_posix_spawnp(char **envp)
{
	pid_t pid;

	if (posix_spawnp(&pid, self, NULL, NULL, print_argv, envp) == 0)
		finish(pid);
}

static void by_system(char **envp)
{
	char command[sizeof(self) + 16];

	environ = envp;
	snprintf(command, sizeof(command), "'%s' print", self);
	_exit(WEXITSTATUS(system(command)));
}

static void by_popen(char **envp)
{
	char command[sizeof(self) + 16], line[4096];
	FILE *f;

	environ = envp;
	snprintf(command, sizeof(command), "'%s' print", self);
	f = popen(command, "r");
	while (f && fgets(line, sizeof(line), f))
		fputs(line, stdout);
	fflush(stdout);
	_exit(f ? WEXITSTATUS(pclose(f)) : 1);
}

static void by_vfork(char **envp)
{
	pid_t pid = vfork();

	if (pid == 0) {
		execve(self, print_argv, envp);
		_exit(127);
	}
	finish(pid);
}

/* Runs one way in a child and reads what the new program printed, on both outputs. */
static char output[65536];

static int run(void (*way)(char **), char **envp)
{
	int pipe_fd[2], status;
	size_t n = 0;
	ssize_t got;
	pid_t pid;

	assert_int_equal(pipe(pipe_fd), 0);
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		dup2(pipe_fd[1], 1);
		dup2(pipe_fd[1], 2);
		close(pipe_fd[0]);
		close(pipe_fd[1]);
		way(envp);
		_exit(126);
	}
	close(pipe_fd[1]);
	while ((got = read(pipe_fd[0], output + n, sizeof(output) - 1 - n)) > 0)
		n += (size_t)got;
	output[n] = '\0';
	close(pipe_fd[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static const char *value_of(const char *name)
{
	static char value[4096];
	size_t n = strlen(name);

	for (const char *line = output; line && *line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, name, n) == 0 && line[n] == '=') {
			snprintf(value, sizeof(value), "%.*s", (int)strcspn(line + n + 1, "\n"),
				 line + n + 1);
			return value;
		}
	}
	return NULL;
}

static const struct {
	const char *name;
	void (*way)(char **);
} ways[] = {
	{"execve", by_execve},
	{"execv", by_execv},
	{"execvp", by_execvp},
	{"execvpe", by_execvpe},
	{"execl", by_execl},
	{"execlp", by_execlp},
	{"execle", by_execle},
	{"fexecve", by_fexecve},
	{"execveat", by_execveat},
	{"execveat of a descriptor", by_execveat_fd},
	{"posix_spawn", by_posix_spawn},
	{"posix_spawnp", by_posix_spawnp},
	{"system", by_system},
	{"popen", by_popen},
	{"vfork and execve", by_vfork},
};

#define WAY_COUNT (sizeof(ways) / sizeof(ways[0]))

static void every_way_keeps_the_library(void **state)
{
	char *preload = getenv("LD_PRELOAD");

	(void)state;
	for (size_t i = 0; i < WAY_COUNT; i++) {
		print_message("%s\n", ways[i].name);
		assert_int_equal(run(ways[i].way, none), 0);
		if (!fake()) {
			assert_null(value_of("LD_PRELOAD"));
			continue;
		}
		assert_string_equal(value_of("LD_PRELOAD"), preload);
		assert_string_equal(value_of("USYSV_NAMESPACE"), "exec-test");
		assert_string_equal(value_of("USYSV_DIR"), "/exec-test-dir");
	}
}

static void other_preloads_stay(void **state)
{
	char *envp[] = {(char[]){"LD_PRELOAD=libm.so.6"}, (char[]){"OTHER=1"}, NULL};
	char expected[4096];

	(void)state;
	NEEDS_FAKE();
	snprintf(expected, sizeof(expected), "libm.so.6:%s", getenv("LD_PRELOAD"));
	for (size_t i = 0; i < WAY_COUNT; i++) {
		assert_int_equal(run(ways[i].way, envp), 0);
		assert_string_equal(value_of("LD_PRELOAD"), expected);
		assert_string_equal(value_of("OTHER"), "1");
	}
	assert_string_equal(envp[0], "LD_PRELOAD=libm.so.6");
}

static void what_is_there_is_not_doubled(void **state)
{
	char text[4096];
	char *envp[] = {text, (char[]){"USYSV_NAMESPACE=mine"}, NULL};

	(void)state;
	NEEDS_FAKE();
	snprintf(text, sizeof(text), "LD_PRELOAD=%s:libm.so.6", getenv("LD_PRELOAD"));
	for (size_t i = 0; i < WAY_COUNT; i++) {
		assert_int_equal(run(ways[i].way, envp), 0);
		assert_string_equal(value_of("LD_PRELOAD"), text + strlen("LD_PRELOAD="));
		assert_string_equal(value_of("USYSV_NAMESPACE"), "mine");
	}
}

static void region_goes_with_its_namespace(void **state)
{
	char *other[] = {(char[]){"USYSV_NAMESPACE=mine"}, NULL};

	(void)state;
	NEEDS_FAKE();
	assert_int_equal(semget(1, 1, 0), 4711);
	assert_int_equal(run(by_execve, none), 0);
	assert_string_equal(value_of("USYSV_REGION"), "default:/nowhere/region");
	assert_int_equal(run(by_execve, other), 0);
	assert_null(value_of("USYSV_REGION"));
}

static void inheritance_can_be_switched_off(void **state)
{
	char *envp[] = {(char[]){"USYSV_INHERIT=0"}, NULL};

	(void)state;
	for (size_t i = 0; i < WAY_COUNT; i++) {
		if (ways[i].way == by_popen)
			continue;
		assert_int_equal(run(ways[i].way, envp), 0);
		assert_null(value_of("LD_PRELOAD"));
		assert_null(value_of("USYSV_NAMESPACE"));
	}
}

/* Files with the heads of programs, for no machine: they are judged, and then do not run. */
static char made[4096];

static void make(const void *head, size_t n, mode_t mode)
{
	int fd;

	unlink(made);
	fd = open(made, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, head, n), (ssize_t)n);
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
}

static void start_made(char **envp)
{
	execve(made, print_argv, envp);
}

static void programs_out_of_reach_are_named(void **state)
{
	struct {
		Elf64_Ehdr e;
		Elf64_Phdr p;
		char interpreter[64];
	} program = {.e = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
				       EV_CURRENT},
			   .e_type = ET_EXEC,
			   .e_phoff = sizeof(Elf64_Ehdr),
			   .e_phentsize = sizeof(Elf64_Phdr),
			   .e_phnum = 1},
		     .p = {.p_type = PT_NULL}};
	char script[4200];

	(void)state;
	NEEDS_FAKE();
	make(&program, sizeof(program), 0700);
	run(start_made, none);
	assert_non_null(strstr(output, "usysv: "));
	assert_non_null(strstr(output, made));
	assert_non_null(strstr(output, "statically"));

	program.p.p_type = PT_INTERP;
	program.p.p_offset = offsetof(__typeof__(program), interpreter);
	strcpy(program.interpreter, "/lib/ld-musl-x86_64.so.1");
	program.p.p_filesz = strlen(program.interpreter) + 1;
	make(&program, sizeof(program), 0700);
	run(start_made, none);
	assert_non_null(strstr(output, "another C library"));

	program.e.e_ident[EI_CLASS] = ELFCLASS32;
	make(&program, sizeof(program), 0700);
	run(start_made, none);
	assert_non_null(strstr(output, "another word size"));

	snprintf(script, sizeof(script), "#! %s print\n", self);
	make(script, strlen(script), 0700);
	assert_int_equal(run(start_made, none), 0);
	assert_null(strstr(output, "usysv: "));
	assert_string_equal(value_of("LD_PRELOAD"), getenv("LD_PRELOAD"));
	unlink(made);
}

static void errors_are_the_same(void **state)
{
	(void)state;
	errno = 0;
	assert_int_equal(execve("/no/such/program", print_argv, none), -1);
	assert_int_equal(errno, ENOENT);
	errno = 0;
	assert_int_equal(execvp("no-such-program", print_argv), -1);
	assert_int_equal(errno, ENOENT);
	errno = 0;
	assert_int_equal(execv("/", print_argv), -1);
	assert_int_equal(errno, EACCES);
	assert_int_equal(posix_spawn(&(pid_t){0}, "/no/such", NULL, NULL, print_argv, none),
			 ENOENT);
}

/* In a child: were it to crash there it would say so. */
static void environments_that_are_none(char **envp)
{
	char *holes = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char **cut = (char **)(void *)(holes + 4096) - 1;
	char *bad[] = {(char *)16, NULL};
	char **const all[] = {(char **)16, (char **)-4096, bad, cut};

	(void)envp;
	memset(holes, 'x', 4096);
	cut[0] = holes; /* neither this string nor the array ends before the page does */
	munmap(holes + 4096, 4096);
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		errno = 0;
		if (execve(self, print_argv, all[i]) != -1 || errno != EFAULT)
			_exit((int)i + 1);
		if (posix_spawn(&(pid_t){0}, self, NULL, NULL, print_argv, all[i]) != EFAULT)
			_exit((int)i + 11);
	}
	_exit(0);
}

static void what_is_no_memory_is_efault(void **state)
{
	(void)state;
	assert_int_equal(run(environments_that_are_none, none), 0);
}

static void start_on_signal(int signal)
{
	char *const no_argv[] = {(char[]){"true"}, NULL};
	int status = -1;
	pid_t pid = fork();

	(void)signal;
	if (pid == 0) {
		execlp("true", "true", (char *)NULL);
		_exit(1);
	}
	if (waitpid(pid, &status, 0) != pid || status != 0)
		_exit(1);
	if (posix_spawnp(&pid, "true", NULL, NULL, no_argv, environ) != 0 ||
	    waitpid(pid, &status, 0) != pid || status != 0)
		_exit(2);
}

/* As programs do that report their own crash: SIGSTKSZ has long been 8192. */
static void from_a_handler_with_a_small_stack(char **envp)
{
	char *stack =
		mmap(NULL, 2 * 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct sigaction action = {.sa_handler = start_on_signal, .sa_flags = SA_ONSTACK};
	stack_t small = {.ss_sp = stack + 8192, .ss_size = 8192};

	(void)envp;
	mprotect(stack, 8192, PROT_NONE);
	sigaltstack(&small, NULL);
	sigaction(SIGUSR1, &action, NULL);
	raise(SIGUSR1);
	_exit(0);
}

static void small_stacks_suffice(void **state)
{
	(void)state;
	assert_int_equal(run(from_a_handler_with_a_small_stack, none), 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_way_keeps_the_library),
		cmocka_unit_test(other_preloads_stay),
		cmocka_unit_test(what_is_there_is_not_doubled),
		cmocka_unit_test(inheritance_can_be_switched_off),
		cmocka_unit_test(programs_out_of_reach_are_named),
		cmocka_unit_test(errors_are_the_same),
		cmocka_unit_test(what_is_no_memory_is_efault),
		cmocka_unit_test(small_stacks_suffice),
		cmocka_unit_test(region_goes_with_its_namespace),
	};
	ssize_t n;

	if (argc >= 2 && strcmp(argv[1], "print") == 0)
		return print_environment();
	n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	if (n <= 0)
		return 1;
	if (argc == 1) {
		/* Once more, from a start with these variables. */
		setenv("USYSV_NAMESPACE", "exec-test", 1);
		setenv("USYSV_DIR", "/exec-test-dir", 1);
		execl(self, "exec", "run", (char *)NULL);
		return 1;
	}
	snprintf(made, sizeof(made), "/tmp/usysv-exec-test-%d", (int)getpid());
	return cmocka_run_group_tests(tests, NULL, NULL);
}
