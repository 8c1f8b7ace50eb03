// SPDX-License-Identifier: MIT
/*
 * conform-proc: the files in /proc/sysvipc and /proc/sys/kernel, by every function that opens, asks
 * for or writes a file; and what the limit files take for a number. What the lists show of objects,
 * conform-common and the families' own tests look at.
 */
#include "conform/sem_calls.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/msg.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#define KERNEL "/proc/sys/kernel/"
#define LIMIT  KERNEL "msgmax"
#define LIST   "/proc/sysvipc/sem"

extern char **environ;

/* What the namespace has, not what a file says. */
static int msgmax(void)
{
	struct msginfo info;

	CHECK_OK(msgctl(0, IPC_INFO, (struct msqid_ds *)&info));
	return info.msgmax;
}

/* A limit that the test may change. */
static void begin(void)
{
	set_limit(LIMIT, "8192");
	CHECK_INT(msgmax(), 8192);
}

static void has_text(int fd, const char *text)
{
	char got[256];
	ssize_t n;

	CHECK(fd >= 0);
	n = read(fd, got, sizeof(got) - 1);
	CHECK(n >= 0);
	got[n] = '\0';
	if (strcmp(got, text) != 0)
		check_fail(__FILE__, __LINE__, "'%s' is not '%s'", got, text);
	CHECK_INT(read(fd, got, sizeof(got)), 0);
	CHECK_OK(close(fd));
}

/* ---- Opening ---- */

static void every_open_shows_the_limit(void **state)
{
	char text[32];
	int dir;
	FILE *file;

	(void)state;
	begin();
	set_limit(LIMIT, "4711");
	has_text(open(LIMIT, O_RDONLY), "4711\n");
	has_text(open64(LIMIT, O_RDONLY | O_CLOEXEC), "4711\n");
	has_text(openat(AT_FDCWD, LIMIT, O_RDONLY | O_NONBLOCK), "4711\n");
	has_text(openat64(-1, LIMIT, O_RDWR), "4711\n");
	has_text((int)syscall(SYS_openat, AT_FDCWD, LIMIT, O_RDONLY), "4711\n");
#ifdef SYS_open
	has_text((int)syscall(SYS_open, LIMIT, O_RDONLY), "4711\n");
#endif
	has_text(open("//proc/./sys///kernel/msgmax", O_RDONLY), "4711\n");
	dir = (int)CHECK_OK(open("/proc/sys", O_RDONLY | O_DIRECTORY));
	has_text(openat(dir, "kernel/msgmax", O_RDONLY), "4711\n");
	CHECK_OK(close(dir));
	file = fopen(LIMIT, "r");
	CHECK(file && fgets(text, sizeof(text), file) && strcmp(text, "4711\n") == 0);
	CHECK(!fgets(text, sizeof(text), file));
	file = freopen64(KERNEL "sem", "re", file);
	CHECK(file && fgets(text, sizeof(text), file) &&
	      strcmp(text, "32000\t1024000000\t500\t32000\n") == 0);
	CHECK_OK(fclose(file));
	CHECK_OK(chdir("/proc/sys/kernel"));
	has_text(open("msgmax", O_RDONLY), "4711\n");
	has_text(open("./msgmax", O_RDONLY), "4711\n");
	CHECK_OK(chdir("/"));
}

/* A descriptor of it, by a link in a directory that is gone when this returns. */
static int open_by_link(const char *target, const char *rest)
{
	char dir[] = "/tmp/usysv-proc-XXXXXX", link[64], path[128];
	int fd;

	CHECK(mkdtemp(dir) != NULL);
	(void)snprintf(link, sizeof(link), "%s/sem", dir);
	(void)snprintf(path, sizeof(path), "%s%s", link, rest);
	fd = symlink(target, link) == 0 ? open(path, O_RDONLY) : -1;
	(void)unlink(link);
	(void)rmdir(dir);
	return fd;
}

static void every_spelling_shows_the_list(void **state)
{
	static const char *const spellings[] = {
		"/proc/self/../sysvipc/sem", "/tmp/../proc/sysvipc/sem",
		"//proc//sysvipc/./sem",     "/proc/self/root/proc/sysvipc/sem",
		"/./proc/sysvipc//sem",      "/proc/sysvipc/../sysvipc/sem"};
	char text[4096], streamed[4096];
	int dir, elsewhere;

	(void)state;
	(void)sem_new(3);
	read_file(LIST, text, sizeof(text));
	CHECK(strchr(text, '\n') && strchr(text, '\n')[1]);
	for (size_t i = 0; i < sizeof(spellings) / sizeof(spellings[0]); i++) {
		has_text(open(spellings[i], O_RDONLY), text);
		read_file(spellings[i], streamed, sizeof(streamed)); /* by fopen() */
		CHECK(strcmp(streamed, text) == 0);
		CHECK_ERR(access(spellings[i], X_OK), EACCES);
	}
	has_text(open_by_link("/proc", "/sysvipc/sem"), text);
	has_text(open_by_link(LIST, ""), text);
	dir = (int)CHECK_OK(open("/proc/sysvipc", O_PATH));
	has_text(openat(dir, "sem", O_RDONLY), text);
	has_text(openat(dir, "../sysvipc/./sem", O_RDONLY), text);
	CHECK_OK(close(dir));
	CHECK_OK(chdir("/"));
	has_text(open("proc/sysvipc/sem", O_RDONLY), text);
	CHECK_OK(chdir("/proc/sysvipc"));
	has_text(open("sem", O_RDONLY), text);
	has_text(open("../sysvipc/sem", O_RDONLY), text);
	CHECK_OK(chdir("/"));
	/* What only has the name. */
	elsewhere = open_by_link("/proc/self/comm", "");
	CHECK_INT(read(elsewhere, text, 5), 5);
	CHECK(strncmp(text, "     ", 5) != 0);
	CHECK_OK(close(elsewhere));
}

static void every_spelling_takes_a_limit(void **state)
{
	int fd;

	(void)state;
	begin();
	fd = (int)CHECK_OK(open("/proc/self/../sys/kernel/msgmax", O_WRONLY | O_TRUNC));
	CHECK_INT(write(fd, "4000", 4), 4);
	CHECK_INT(msgmax(), 4000);
	CHECK_OK(close(fd));
	CHECK_INT(write_file("/proc/sys/../sys/kernel/msgmax", "4001"), 0);
	CHECK_INT(msgmax(), 4001);
}

static void descriptor_is_the_lowest_with_the_flags_asked_for(void **state)
{
	int lowest = (int)CHECK_OK(open("/", O_RDONLY)), fd;

	(void)state;
	CHECK_OK(close(lowest));
	fd = open(LIST, O_RDONLY);
	CHECK_INT(fd, lowest);
	CHECK_INT(fcntl(fd, F_GETFD), 0);
	CHECK_INT(fcntl(fd, F_GETFL) & O_ACCMODE, O_RDONLY);
	CHECK_ERR(write(fd, "1", 1), EBADF);
	CHECK_OK(close(fd));
	fd = open(LIST, O_RDONLY | O_CLOEXEC);
	CHECK_INT(fd, lowest);
	CHECK_INT(fcntl(fd, F_GETFD), FD_CLOEXEC);
	CHECK_OK(close(fd));
	fd = open(LIMIT, O_WRONLY);
	CHECK_INT(fd, lowest);
	CHECK_INT(fcntl(fd, F_GETFL) & O_ACCMODE, O_WRONLY);
	CHECK_ERR(read(fd, &lowest, 1), EBADF);
	CHECK_OK(close(fd));
	CHECK_INT(open("/", O_RDONLY), fd);
	CHECK_OK(close(fd));
}

static void what_is_no_list_of_objects_stays_what_it_is(void **state)
{
	char text[64] = "";
	struct stat st;
	int fd;

	(void)state;
	CHECK_ERR(open(LIST, O_RDONLY | O_DIRECTORY), ENOTDIR);
	CHECK_ERR(open(LIST, O_RDWR | O_CREAT | O_EXCL, 0600), EEXIST);
	CHECK_ERR(open("/proc/sysvipc/none", O_RDONLY), ENOENT);
	CHECK_ERR(open("/proc/sysvipc/semaphore", O_RDONLY), ENOENT);
	CHECK_ERR(open("/nowhere/proc/sysvipc/sem", O_RDONLY), ENOENT);
	CHECK_ERR(open(BAD_POINTER, O_RDONLY), EFAULT);
	CHECK_ERR(openat(AT_FDCWD, BAD_POINTER, O_RDONLY), EFAULT);
	CHECK_ERR(stat(BAD_POINTER, &st), EFAULT);
	CHECK_ERR(access(BAD_POINTER, R_OK), EFAULT);
	CHECK(fopen("/nowhere/none", "r") == NULL);
	CHECK_OK(chdir("/"));
	CHECK_ERR(open("sem", O_RDONLY), ENOENT);
	CHECK_ERR(openat(AT_FDCWD, "kernel/sem", O_RDONLY), ENOENT);
	fd = (int)CHECK_OK(open("/proc/sys/kernel/ostype", O_RDONLY));
	CHECK(read(fd, text, sizeof(text) - 1) > 0);
	CHECK(strncmp(text, "Linux", 5) == 0);
	CHECK_OK(close(fd));
}

static void files_are_there(void **state)
{
	static const char *const lists[] = {"/proc/sysvipc/msg", "/proc/sysvipc/sem",
					    "/proc/sysvipc/shm"};
	static const char *const limits[] = {
		KERNEL "sem",    KERNEL "msgmax", KERNEL "msgmni", KERNEL "msgmnb",
		KERNEL "shmmax", KERNEL "shmall", KERNEL "shmmni", KERNEL "shm_rmid_forced"};
	struct statx stx;
	struct stat st;

	(void)state;
	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		CHECK_OK(access(lists[i], R_OK));
		CHECK_OK(stat(lists[i], &st));
		CHECK_INT(st.st_mode, S_IFREG | 0444);
		CHECK_ERR(access(lists[i], X_OK), EACCES);
	}
	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		CHECK_OK(faccessat(AT_FDCWD, limits[i], R_OK, AT_EACCESS));
		CHECK_OK(lstat(limits[i], &st));
		CHECK_INT(st.st_mode, S_IFREG | 0644);
		CHECK_OK(fstatat(-1, limits[i], &st, 0));
		CHECK_OK(statx(-1, limits[i], 0, STATX_MODE, &stx));
		CHECK_INT(stx.stx_mode, S_IFREG | 0644);
	}
}

/* Programs that copy files ask before and after opening whether it is the same file. */
static void same_file(const char *path, int fd)
{
	char link[32];
	struct stat st, of_fd;
	struct stat64 of_fd64;
	struct statx stx;

	CHECK_OK(stat(path, &st));
	CHECK_OK(fstat(fd, &of_fd));
	CHECK_INT(of_fd.st_dev, st.st_dev);
	CHECK_INT(of_fd.st_ino, st.st_ino);
	CHECK_INT(of_fd.st_mode, st.st_mode);
	CHECK_INT(of_fd.st_nlink, 1);
	CHECK_INT(of_fd.st_size, 0);
	CHECK_INT(of_fd.st_blocks, 0);
	CHECK_INT(of_fd.st_mtim.tv_sec, st.st_mtim.tv_sec);
	CHECK_INT(of_fd.st_mtim.tv_nsec, st.st_mtim.tv_nsec);
	CHECK_OK(fstat64(fd, &of_fd64));
	CHECK_INT(of_fd64.st_ino, st.st_ino);
	CHECK_OK(fstatat(fd, "", &of_fd, AT_EMPTY_PATH));
	CHECK_INT(of_fd.st_ino, st.st_ino);
	CHECK_OK(statx(fd, "", AT_EMPTY_PATH, STATX_SIZE, &stx));
	CHECK_INT(stx.stx_ino, st.st_ino);
	CHECK_INT(stx.stx_size, 0);
	CHECK_OK(statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &stx));
	CHECK_INT(stx.stx_ino, st.st_ino);
	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	CHECK_OK(stat(link, &of_fd));
	CHECK_INT(of_fd.st_ino, st.st_ino);
	CHECK_OK(close(fd));
}

static void descriptor_is_of_the_file(void **state)
{
	int fd;

	(void)state;
	begin();
	(void)sem_new(1);
	same_file(LIST, open(LIST, O_RDONLY));
	same_file("/proc/sysvipc/msg", open("/proc/sysvipc/msg", O_RDONLY | O_CLOEXEC));
	same_file(LIMIT, open(LIMIT, O_RDONLY));
	same_file(LIMIT, open(LIMIT, O_RDWR));
	same_file(LIMIT, open(LIMIT, O_WRONLY));
	fd = (int)CHECK_OK(open(LIMIT, O_WRONLY));
	CHECK_INT(write(fd, "100", 3), 3);
	same_file(LIMIT, fd);
	fd = (int)CHECK_OK(open(LIMIT, O_WRONLY));
	CHECK_INT(syscall(SYS_write, fd, "101", 3), 3);
	same_file(LIMIT, fd);
}

static void programs_copy_them(void **state)
{
	static const char *const copies[] = {"cp " LIST " copy", "cp /dev/stdin copy <" LIST,
					     "cp -a " LIST " copy && chmod 600 copy",
					     "dd if=" LIST " of=copy bs=7 2>/dev/null",
					     "tail -c +1 " LIST " >copy"};
	char command[256];

	(void)state;
	(void)sem_new(1);
	for (size_t i = 0; i < sizeof(copies) / sizeof(copies[0]); i++) {
		int rc;

		(void)snprintf(command, sizeof(command),
			       "d=$(mktemp -d) && trap 'rm -rf $d' EXIT && cd $d && cat " LIST
			       " >list && %s && cmp copy list",
			       copies[i]);
		rc = system(command);
		if (rc != 0)
			check_fail(__FILE__, __LINE__, "'%s' gives %d", copies[i], rc);
	}
}

static void list_is_of_the_moment_of_opening(void **state)
{
	char before[4096], after[4096];
	int fd, id;

	(void)state;
	read_file(LIST, before, sizeof(before));
	id = sem_new(3);
	fd = (int)CHECK_OK(open(LIST, O_RDONLY));
	read_file(LIST, after, sizeof(after));
	CHECK(strlen(after) > strlen(before));
	CHECK_INT(read(fd, before, sizeof(before)), strlen(after));
	CHECK_INT(lseek(fd, 0, SEEK_SET), 0);
	CHECK_INT(pread(fd, before, 10, 0), 10);
	CHECK(strncmp(before, after, 10) == 0);
	CHECK_OK(close(fd));
	CHECK_OK(semctl(id, 0, IPC_RMID));
}

static void list_may_be_long(void **state)
{
	enum { COUNT = 300 };
	static char text[COUNT * 200];
	size_t lines = 0;

	(void)state;
	for (int i = 0; i < COUNT; i++)
		(void)sem_new(1);
	read_file(LIST, text, sizeof(text));
	for (const char *at = text; *at; at++)
		lines += *at == '\n';
	CHECK_INT(lines, COUNT + 1);
}

/* ---- Writing ---- */

static void write_counts_at_once(void **state)
{
	struct iovec two[2] = {{(void *)(uintptr_t) "10", 2}, {(void *)(uintptr_t) "05\n", 3}};
	int fd, copy;

	(void)state;
	begin();
	fd = (int)CHECK_OK(open(LIMIT, O_WRONLY | O_TRUNC | O_CREAT, 0644));
	CHECK_INT(write(fd, "1001\n", 5), 5);
	CHECK_INT(msgmax(), 1001);
	/* What is not at the beginning is passed over. */
	CHECK_INT(write(fd, "1002\n", 5), 5);
	CHECK_INT(msgmax(), 1001);
	CHECK_INT(lseek(fd, 0, SEEK_SET), 0);
	CHECK_INT(write(fd, "1003", 4), 4);
	CHECK_INT(msgmax(), 1003);
	CHECK_INT(pwrite(fd, "1004", 4, 0), 4);
	CHECK_INT(msgmax(), 1004);
	CHECK_INT(lseek(fd, 0, SEEK_SET), 0);
	copy = (int)CHECK_OK(dup(fd));
	CHECK_OK(close(fd));
	CHECK_INT(writev(copy, two, 2), 5);
	/* The kernel takes the first part alone: each is a write. */
	CHECK(msgmax() == 1005 || msgmax() == 10);
	CHECK_OK(close(copy));
}

static int open_and_read(void)
{
	char text[32];
	int fd = (int)CHECK_OK(open(LIMIT, O_RDWR));

	CHECK_INT(read(fd, text, sizeof(text)), 5);
	return fd;
}

static void text_can_be_read_back(void **state)
{
	int fd;

	(void)state;
	begin();
	fd = open_and_read();
	CHECK_INT(lseek(fd, 0, SEEK_SET), 0);
	CHECK_INT(write(fd, "77\n", 3), 3);
	CHECK_INT(msgmax(), 77);
	CHECK_INT(lseek(fd, 0, SEEK_SET), 0);
	has_text(fd, "77\n");
}

/* Only as much as was looked at has been written; the rest is then not at the beginning. */
static void write_tells_how_much_counted(void **state)
{
	static const struct {
		const char *path, *text;
		int count;
	} writes[] = {
		{LIMIT, "12 13\n", 3},
		{LIMIT, "  12  \n", 7},
		{LIMIT, "12", 2},
		{KERNEL "sem", "5 6 7 8 9\n", 8},
		{KERNEL "sem", "5 6 7 8\n", 8},
	};

	(void)state;
	begin();
	for (size_t i = 0; i < sizeof(writes) / sizeof(writes[0]); i++) {
		int fd = (int)CHECK_OK(open(writes[i].path, O_WRONLY));

		CHECK_INT(write(fd, writes[i].text, strlen(writes[i].text)), writes[i].count);
		CHECK_INT(write(fd, "99\n", 3), 3);
		CHECK_OK(close(fd));
	}
	CHECK_INT(msgmax(), 12);
}

static void what_is_not_at_the_beginning_is_passed_over(void **state)
{
	int fd;

	(void)state;
	begin();
	fd = open_and_read();
	CHECK_INT(write(fd, "junk\n", 5), 5);
	CHECK_INT(pwrite(fd, "junk\n", 5, 1), 5);
	CHECK_INT(msgmax(), 8192);
	CHECK_INT(lseek(fd, 0, SEEK_SET), 0);
	has_text(fd, "8192\n");
}

/* Nobody but the stream knows when it writes; who opens the file then sees it. */
static void stream_that_writes_of_itself_shows(void **state)
{
	char text[32];
	FILE *file;

	(void)state;
	begin();
	file = fopen(LIMIT, "w");
	CHECK(file && setvbuf(file, NULL, _IOLBF, 0) == 0 && fputs("1301\n", file) >= 0);
	read_file(LIMIT, text, sizeof(text));
	CHECK(strcmp(text, "1301\n") == 0);
	CHECK_OK(fclose(file));
	CHECK_INT(msgmax(), 1301);
	file = fopen(LIMIT, "w");
	CHECK(file && fputs("1302\n", file) >= 0);
	rewind(file);
	read_file(LIMIT, text, sizeof(text));
	CHECK(strcmp(text, "1302\n") == 0);
	CHECK(fputs("1303\n", file) >= 0);
	CHECK_OK(fclose(file));
	CHECK_INT(msgmax(), 1303);
}

static void stream_counts_when_flushed(void **state)
{
	FILE *file;

	(void)state;
	begin();
	file = fopen(LIMIT, "w");
	CHECK(file != NULL);
	CHECK(fprintf(file, "%d\n", 1234) > 0);
	CHECK_INT(msgmax(), 8192);
	CHECK_OK(fflush(file));
	CHECK_INT(msgmax(), 1234);
	CHECK_OK(fclose(file));
	file = fopen64(LIMIT, "we");
	CHECK(file && fputs("1235", file) >= 0);
	CHECK_OK(fclose(file));
	CHECK_INT(msgmax(), 1235);
	file = fopen(LIMIT, "a");
	CHECK(file && fputs("1236", file) >= 0);
	CHECK_OK(fflush(NULL));
	CHECK_INT(msgmax(), 1236);
	CHECK_OK(fclose(file));
	file = fopen(LIMIT, "r+");
	CHECK(file && fputs("1237\n", file) >= 0);
	CHECK_OK(fclose(file));
	CHECK_INT(msgmax(), 1237);
	file = fopen("/dev/null", "r");
	file = freopen(LIMIT, "w", file);
	CHECK(file && fputs("1238", file) >= 0);
	CHECK_OK(fclose(file));
	CHECK_INT(msgmax(), 1238);
}

static void bad_stream_fails_when_flushed(void **state)
{
	FILE *file;

	(void)state;
	begin();
	file = fopen(LIMIT, "w");
	CHECK(file && fputs("none\n", file) >= 0);
	CHECK_ERR(fflush(file), EINVAL);
	CHECK(ferror(file));
	(void)fclose(file);
	file = fopen(LIMIT, "w");
	CHECK(file && fputs("none\n", file) >= 0);
	CHECK_ERR(fclose(file), EINVAL);
	CHECK_INT(msgmax(), 8192);
}

static void streams_are_flushed_at_exit(void **state)
{
	pid_t kid;

	(void)state;
	begin();
	IN_CHILD (kid) {
		FILE *file = fopen(LIMIT, "w");

		CHECK(file && fputs("555", file) >= 0);
		exit(0);
	}
	child_ok(kid);
	CHECK_INT(msgmax(), 555);
}

/* As a shell does for `program > file`. */
static int run(const char *const argv[], const char *path, bool by_spawn)
{
	posix_spawn_file_actions_t actions;
	int fd = (int)CHECK_OK(open(path, O_WRONLY | O_TRUNC));
	pid_t kid;

	if (by_spawn) {
		CHECK_INT(posix_spawn_file_actions_init(&actions), 0);
		CHECK_INT(posix_spawn_file_actions_adddup2(&actions, fd, 1), 0);
		CHECK_INT(posix_spawn(&kid, argv[0], &actions, NULL, (char *const *)(uintptr_t)argv,
				      environ),
			  0);
		CHECK_INT(posix_spawn_file_actions_destroy(&actions), 0);
	} else {
		IN_CHILD (kid) {
			CHECK_INT(dup2(fd, 1), 1);
			CHECK_OK(close(fd));
			execv(argv[0], (char *const *)(uintptr_t)argv);
		}
	}
	CHECK_OK(close(fd));
	return child_status(kid);
}

static void program_writes_to_an_inherited_descriptor(void **state)
{
	(void)state;
	begin();
	CHECK_INT(run((const char *const[]){"/bin/echo", "601", NULL}, LIMIT, false), 0);
	CHECK_INT(msgmax(), 601);
	CHECK_INT(run((const char *const[]){"/bin/echo", "602", NULL}, LIMIT, true), 0);
	CHECK_INT(msgmax(), 602);
	CHECK_INT(
		run((const char *const[]){"/bin/sh", "-c", "echo 603; exit 3", NULL}, LIMIT, false),
		3 << 8);
	CHECK_INT(msgmax(), 603);
	CHECK(run((const char *const[]){"/bin/echo", "none", NULL}, LIMIT, false) != 0);
	CHECK_INT(msgmax(), 603);
	CHECK_INT(system("echo 604 >" LIMIT), 0);
	CHECK_INT(msgmax(), 604);
	CHECK(system("echo x 2>/dev/null >" LIMIT) != 0);
	CHECK_INT(msgmax(), 604);
}

static void forked_child_writes_to_an_inherited_descriptor(void **state)
{
	pid_t kid;
	int fd;

	(void)state;
	begin();
	fd = (int)CHECK_OK(open(LIMIT, O_WRONLY));
	IN_CHILD (kid)
		CHECK_INT(write(fd, "321", 3), 3);
	child_ok(kid);
	CHECK_INT(msgmax(), 321);
	CHECK_OK(close(fd));
}

/* ---- What is a number ---- */

struct writing {
	const char *text;
	int error;
	const char *after;
};

static void try_each(const char *path, const char *first, const struct writing *w, size_t count)
{
	set_limit(path, first);
	for (size_t i = 0; i < count; i++) {
		char text[256];
		int fd = (int)CHECK_OK(open(path, O_WRONLY));
		ssize_t n = write(fd, w[i].text, strlen(w[i].text));
		int error = n < 0 ? errno : 0;

		CHECK_OK(close(fd));
		read_file(path, text, sizeof(text));
		if (error != w[i].error || strcmp(text, w[i].after) != 0)
			check_fail(__FILE__, __LINE__, "'%s' to %s gives errno %d and then '%s'",
				   w[i].text, path, error, text);
	}
}

#define TRY_EACH(path, first, ...)                                                                 \
	try_each(path, first, (struct writing[]){__VA_ARGS__},                                     \
		 sizeof((struct writing[]){__VA_ARGS__}) / sizeof(struct writing))

static void numbers_are_read_as_the_kernel_does(void **state)
{
	(void)state;
	TRY_EACH(LIMIT, "8192", {"12", 0, "12\n"}, {"13 14", 0, "13\n"}, {" \t15\n", 0, "15\n"},
		 {"0x10", 0, "16\n"}, {"010", 0, "8\n"}, {"0", 0, "0\n"}, {"5x", EINVAL, "0\n"},
		 {"x", EINVAL, "0\n"}, {"\n", EINVAL, "0\n"}, {"-1", EINVAL, "0\n"},
		 {"2147483647", 0, "2147483647\n"}, {"2147483648", EINVAL, "2147483647\n"},
		 {"99999999999999999999", EINVAL, "2147483647\n"});
	TRY_EACH(KERNEL "shmmax", "1", {"18446744073709551615", 0, "18446744073709551615\n"},
		 {"7", 0, "7\n"}, {"18446744073709551616", EINVAL, "7\n"});
	TRY_EACH(KERNEL "shmall", "18446744073692774399", {"9", 0, "9\n"});
}

static void ranges_are_the_kernels(void **state)
{
	(void)state;
	TRY_EACH(KERNEL "msgmni", "100", {"32768", 0, "32768\n"}, {"32769", EINVAL, "32768\n"});
	TRY_EACH(KERNEL "shmmni", "100", {"32768", 0, "32768\n"}, {"32769", EINVAL, "32768\n"});
	TRY_EACH(KERNEL "msgmnb", "16384", {"2147483647", 0, "2147483647\n"},
		 {"2147483648", EINVAL, "2147483647\n"});
	TRY_EACH(KERNEL "shm_rmid_forced", "0", {"2", EINVAL, "0\n"}, {"1", 0, "1\n"});
}

static void values_before_a_bad_one_count(void **state)
{
	(void)state;
	TRY_EACH(KERNEL "sem", "100 1000 50 10", {"99", 0, "99\t1000\t50\t10\n"},
		 {"98 x", EINVAL, "98\t1000\t50\t10\n"}, {"97\t999 49 9\n", 0, "97\t999\t49\t9\n"},
		 {"1 2 3 32769", ERANGE, "1\t2\t3\t9\n"}, {"1 2 3 -1", ERANGE, "1\t2\t3\t9\n"},
		 {"5 6 7 8 9", 0, "5\t6\t7\t8\n"});
}

static void next_ids_are_shown(void **state)
{
	char text[16];

	(void)state;
	read_file(KERNEL "sem_next_id", text, sizeof(text));
	CHECK(strcmp(text, "-1\n") == 0);
	if (write_file(KERNEL "sem_next_id", "99") != 0)
		SKIP("ids cannot be chosen here");
	read_file(KERNEL "sem_next_id", text, sizeof(text));
	CHECK(strcmp(text, "99\n") == 0);
	CHECK_INT(sem_new(1), 99);
	read_file(KERNEL "sem_next_id", text, sizeof(text));
	CHECK(strcmp(text, "-1\n") == 0);
	CHECK_INT(write_file(KERNEL "sem_next_id", "-1"), EINVAL);
}

static void others_may_look_only(void **state)
{
	pid_t kid;

	(void)state;
	need_users();
	begin();
	IN_CHILD (kid) {
		char text[16];

		become_nobody();
		read_file(LIMIT, text, sizeof(text));
		CHECK(strcmp(text, "8192\n") == 0);
		CHECK_ERR(open(LIMIT, O_WRONLY), EACCES);
		CHECK(!fopen(LIMIT, "r+"));
		CHECK_INT(errno, EACCES);
		CHECK_ERR(access(LIMIT, W_OK), EACCES);
	}
	child_ok(kid);
	CHECK_INT(msgmax(), 8192);
}

/* A limit on files is none on these; where it is (doc/COMPAT.md, proc-views) nobody is killed. */
static void file_size_limit_kills_nobody(void **state)
{
	const struct rlimit none = {0, RLIM_INFINITY};
	pid_t kid;

	(void)state;
	(void)sem_new(1);
	IN_CHILD (kid) {
		int fd;

		CHECK_OK(setrlimit(RLIMIT_FSIZE, &none));
		fd = open(LIST, O_RDONLY);
		if (compat_differs("proc-views"))
			CHECK(fd == -1 && errno == EFBIG);
		else
			CHECK_OK(close(fd));
	}
	child_ok(kid);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(every_open_shows_the_limit),
		TEST(every_spelling_shows_the_list),
		TEST(every_spelling_takes_a_limit),
		TEST(descriptor_is_the_lowest_with_the_flags_asked_for),
		TEST(what_is_no_list_of_objects_stays_what_it_is),
		TEST(files_are_there),
		TEST(descriptor_is_of_the_file),
		TEST(programs_copy_them),
		TEST(list_is_of_the_moment_of_opening),
		TEST(list_may_be_long),
		TEST(write_counts_at_once),
		TEST(text_can_be_read_back),
		TEST(write_tells_how_much_counted),
		TEST(what_is_not_at_the_beginning_is_passed_over),
		TEST(stream_that_writes_of_itself_shows),
		TEST(stream_counts_when_flushed),
		TEST(bad_stream_fails_when_flushed),
		TEST(streams_are_flushed_at_exit),
		TEST(program_writes_to_an_inherited_descriptor),
		TEST(forked_child_writes_to_an_inherited_descriptor),
		TEST(numbers_are_read_as_the_kernel_does),
		TEST(ranges_are_the_kernels),
		TEST(values_before_a_bad_one_count),
		TEST(next_ids_are_shown),
		TEST(others_may_look_only),
		TEST(file_size_limit_kills_nobody),
	};

	harness_begin(argc, argv, NULL);
	return cmocka_run_group_tests_name("proc", tests, NULL, NULL);
}
