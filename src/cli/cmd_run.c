// SPDX-License-Identifier: MIT
/*
 * usysv run: a program in a namespace, with this process as the reaper. Without a name the
 * namespace is private: it goes when the last process that uses it has gone. If that is not when
 * the program ends, usysvd takes over.
 *
 * This process may be killed anywhere; the office is then vacant, and whoever misses a reaper
 * starts usysvd, which removes a private namespace in the end.
 */
#include "cli/cli.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/child.h"
#include "cli/limits.h"
#include "cli/program.h"
#include "client/lost.h"
#include "client/office.h"
#include "client/reaper_start.h"
#include "client/retire.h"
#include "client/session.h"
#include "core/region.h"
#include "ipc/check.h"
#include "reaper/kin.h"
#include "reaper/loop.h"

/* As env(1) and its kin. */
#define EXIT_OWN_FAILURE    125
#define EXIT_CANNOT_EXECUTE 126
#define EXIT_NOT_FOUND      127

#define LIBRARY          "libusysv-preload.so"
#define PRIVATE_ATTEMPTS 1000
#define YOUNG_SECONDS    5
#define KILL_ROUNDS      500

static void usage(FILE *out)
{
	fprintf(out,
		"\nUsage:\n"
		" usysv run [options] [--] <program> [<argument>...]\n\n"
		"Run a program on the System V IPC of usysv.\n\n"
		"Options:\n"
		" -n, --namespace <name>      join or create a lasting namespace\n"
		"                              (default: a private one, gone at the end)\n"
		" -l, --limit <name>=<value>  set a limit of the namespace; repeatable:\n"
		"                              semmsl, semmns, semopm, semmni, msgmax, msgmnb,\n"
		"                              msgmni, shmmax, shmall, shmmni\n"
		" -c, --check                 at the end check the namespace's data; exit status "
		"125\n"
		"                              if they are inconsistent\n"
		" -h, --help                  display this help\n"
		" -V, --version               display version\n\n"
		"For more details see usysv-run(1).\n");
}

/* ---- The program's environment ------------------------------------------------------------- */

/* The file of this program; without /proc by the name that it was executed by. Null: unknown. */
static const char *own_path(void)
{
	static char path[PATH_MAX];
	const char *name = (const char *)getauxval(AT_EXECFN);
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);

	if (n > 0)
		path[n] = 0;
	else if (!name || !realpath(name, path))
		return NULL;
	return path;
}

/* The library to preload: beside this program (a build folder), else where it is installed. */
static int find_library(char ret_path[PATH_MAX])
{
	const char *own = own_path(), *slash = own ? strrchr(own, '/') : NULL;

	reaper_start_beside(own);
	if (slash && (size_t)(slash - own) + sizeof("/" LIBRARY) <= PATH_MAX) {
		memcpy(ret_path, own, (size_t)(slash + 1 - own));
		memcpy(ret_path + (slash + 1 - own), LIBRARY, sizeof(LIBRARY));
		if (access(ret_path, R_OK) == 0)
			goto found;
	}
	memcpy(ret_path, USYSV_LIBDIR "/" LIBRARY, sizeof(USYSV_LIBDIR "/" LIBRARY));
	if (access(ret_path, R_OK) < 0) {
		cli_error("%s is neither beside this program nor in %s", LIBRARY, USYSV_LIBDIR);
		return -ENOENT;
	}
found:
	if (strpbrk(ret_path, ": \t\n")) {
		cli_error("%s: the dynamic linker takes no path with blanks or colons", ret_path);
		return -EINVAL;
	}
	return 0;
}

/* Is path one of the entries, which blanks and colons separate? */
static bool is_listed(const char *list, const char *path)
{
	size_t n = strlen(path);

	for (const char *s = list; (s = strstr(s, path)); s += n)
		if ((s == list || strchr(": \t\n", s[-1])) && (!s[n] || strchr(": \t\n", s[n])))
			return true;
	return false;
}

/* Ours goes last: a sanitizer's library must come first, and the user's own go before.
 * bare: ours is left out. */
static int set_environment(const struct namespace_place *place, bool bare)
{
	char library[PATH_MAX], passed[NAMESPACE_NAME_MAX + 1 + PATH_MAX + 1];
	const char *before = getenv("LD_PRELOAD");
	char *all = library;
	int error = find_library(library);

	if (error < 0)
		return error;
	snprintf(passed, sizeof(passed), "%s:%s", place->name, place->region);
	if (before && *before) {
		if (is_listed(before, library))
			all = strdup(before);
		else if (asprintf(&all, "%s:%s", before, library) < 0)
			all = NULL;
	}
	if (!all || (!bare && setenv("LD_PRELOAD", all, 1) < 0) ||
	    setenv("USYSV_NAMESPACE", place->name, 1) < 0 ||
	    setenv("USYSV_REGION", passed, 1) < 0) {
		cli_error("cannot set the environment: %s", strerror(ENOMEM));
		error = -ENOMEM;
	}
	if (all != library)
		free(all);
	return error;
}

/* ---- The namespace ------------------------------------------------------------------------- */

/* A private namespace is named after this process; a number is added while the name is taken. */
static int open_private(struct namespace_place *place, int *ret_fd)
{
	char name[NAMESPACE_NAME_MAX + 1];
	const char *why = "";
	int error = -EEXIST;

	for (int i = 0; i < PRIVATE_ATTEMPTS && error == -EEXIST; i++) {
		if (i == 0)
			snprintf(name, sizeof(name), "run-%d", (int)getpid());
		else
			snprintf(name, sizeof(name), "run-%d-%d", (int)getpid(), i);
		error = namespace_locate(name, place, &why);
		if (error == 0)
			error = namespace_open(place, NAMESPACE_CREATE | NAMESPACE_PRIVATE, ret_fd,
					       &why);
	}
	if (error < 0)
		cli_error("cannot make a namespace%s%s%s: %s", *place->dir ? " (" : "", place->dir,
			  *place->dir ? ")" : "", why);
	return error;
}

/*
 * A private namespace that nobody is left in: all there were, launcher and reaper too, were killed
 * together. With the dead still registered that is usysvd's work, who knows them from the living.
 */
static int drop_if_left(const char *name, void *context)
{
	static struct namespace_place place;
	const char *why;
	unsigned char *base;
	int fd;

	(void)context;
	if (strncmp(name, "run-", 4) != 0 || namespace_locate(name, &place, &why) < 0 ||
	    namespace_open(&place, 0, &fd, &why) < 0)
		return 0;
	if (namespace_map(fd, &base, &why) == 0) {
		const struct header_shm *h = region_header(base);

		lost_watch(base);
		/* A young one may be another launcher's that has not begun yet. */
		if (!(h->flags & REGION_PRIVATE) || office_pid(base) != 0)
			;
		else if (retire_users(base) > 0)
			(void)reaper_start(&place); /* or a later run does */
		else if (time(NULL) - h->created > YOUNG_SECONDS && !kin_exist(&place))
			(void)retire_namespace(&place, fd, base, 0); /* in use: it stays */
		lost_watch(NULL);
		(void)munmap(base, (size_t)REGION_BYTES);
	}
	close(fd);
	return 0;
}

/* Takes back a namespace that this process has made and nobody uses. */
static void drop_private(const struct namespace_place *place, int fd)
{
	unsigned char *base;
	const char *why;

	if (namespace_map(fd, &base, &why) != 0)
		return;
	lost_watch(base);
	(void)retire_namespace(place, fd, base, 0); /* somebody uses it: it is his */
}

/* ---- While the program runs ---------------------------------------------------------------- */

/* We stop: somebody else should be able to do the reaper's work meanwhile. */
static void stop_too(struct reaper *r, const struct child *c, int signal)
{
	int error;
	struct thread_block *tb = session_thread(&error);

	if (tb)
		office_leave(&tb->caller);
	child_stop_too(c, signal);
	reaper_look(r);
}

static void serve(struct reaper *r, struct child *c)
{
	while (!c->ended) {
		if (!reaper_step(r, -1))
			continue;
		int stop_with = child_signals(c);

		if (stop_with)
			stop_too(r, c, stop_with);
	}
}

static void say(void *context, const char *text)
{
	const struct namespace_place *place = context;

	cli_error("namespace '%s': %s", place->name, text);
}

/* Process 1 of a pid namespace takes all others of it along; earlier, so that what they leave can
 * be cleaned up. Whom it may not kill the kernel kills in a moment. */
static void kill_left(void)
{
	struct timespec pause = {0, 2000000};

	for (int i = 0; i < KILL_ROUNDS && kill(-1, SIGKILL) == 0; i++) {
		while (waitpid(-1, NULL, WNOHANG | __WALL) > 0)
			;
		nanosleep(&pause, NULL);
	}
}

/* The program has ended. Removes the namespace or leaves it to usysvd. False: its data, which were
 * to be checked, are inconsistent. */
static bool finish(struct reaper *r, const struct child *c, bool is_private, bool check)
{
	struct namespace_place place = r->place;
	bool sound = true, is_first = getpid() == 1;
	uint32_t users;
	int error;

	session_reap(c->pid);
	users = reaper_settle(r);
	if (users > 0 && is_first) {
		kill_left();
		users = reaper_settle(r);
	}
	if (check && users > 0)
		cli_error("namespace '%s' is still in use: not checked", place.name);
	else if (check)
		sound = check_region(r->base, say, &place) == 0;
	if (is_private && users == 0 && !r->gone) {
		error = reaper_retire(r, 0);
		if (error == -EBUSY)
			users = 1; /* somebody has come */
		else if (error < 0 && error != -ENOENT)
			cli_error("cannot remove %s: %s", place.dir, strerror(-error));
	}
	bool left = users > 0 && !r->gone;

	reaper_end(r);
	if (!left ||
	    is_first) /* those are of other pid namespaces, and have reapers of their own */
		return sound;
	error = reaper_start(&place);
	if (error < 0)
		cli_error("processes are left in namespace '%s', and usysvd, which would clean up "
			  "after them, could not be started: %s",
			  place.name,
			  error == -ENOENT
				  ? "it is neither beside this program nor in " USYSV_LIBEXECDIR
				  : strerror(-error));
	return sound;
}

/* ---- The command --------------------------------------------------------------------------- */

struct options {
	const char *name; /* of the namespace; null: a private one */
	struct limit_change change[LIMITS_MAX];
	bool changes[LIMITS_MAX];
	bool check;
};

/* An exit status when that is all there is to do, else -1; optind is then the program's. */
static int parse_options(int argc, char **argv, struct options *o)
{
	static const struct option options[] = {
		{"namespace", required_argument, NULL, 'n'},
		{"limit", required_argument, NULL, 'l'},
		{"check", no_argument, NULL, 'c'},
		{"help", no_argument, NULL, 'h'},
		{"version", no_argument, NULL, 'V'},
		{NULL, 0, NULL, 0},
	};
	struct limit_change change;
	const char *why;
	int c;

	while ((c = getopt_long(argc, argv, "+n:l:chV", options, NULL)) != -1) {
		switch (c) {
		case 'n':
			o->name = optarg;
			break;
		case 'l':
			why = limit_parse(optarg, &change);
			if (why) {
				cli_error("limit '%s': %s; limits are %s", optarg, why,
					  limit_names());
				return EXIT_OWN_FAILURE;
			}
			o->change[change.which] = change;
			o->changes[change.which] = true;
			break;
		case 'c':
			o->check = true;
			break;
		case 'h':
			usage(stdout);
			return EXIT_SUCCESS;
		case 'V':
			cli_version();
			return EXIT_SUCCESS;
		default:
			cli_try_help();
			return EXIT_OWN_FAILURE;
		}
	}
	if (optind < argc)
		return -1;
	cli_error("no program given");
	cli_try_help();
	return EXIT_OWN_FAILURE;
}

/* The program's path, with a warning when the library cannot get into it; *ret_bare: it is not to
 * be offered to it. 0 or an exit status. */
static int find_program(const char *name, char ret_path[PATH_MAX], bool *ret_bare)
{
	int error = program_find(name, ret_path);
	const char *why;

	if (error) {
		cli_error("%s: %s", name, strerror(error));
		return error == ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_EXECUTE;
	}
	why = program_out_of_reach(ret_path, ret_bare);
	if (why)
		cli_error("warning: %s %s", ret_path, why);
	return 0;
}

/* As the namespace's reaper, which wakes up for signal_fd too. 0, and the descriptor is the
 * reaper's; or -errno, and it is still the caller's, or -1. */
static int enter(struct reaper *r, const struct namespace_place *place, int *fd,
		 const struct options *o, int signal_fd)
{
	unsigned char *base;
	const char *why;
	int error = namespace_map(*fd, &base, &why);

	if (error == 0) {
		lost_watch(base);
		for (unsigned i = 0; i < LIMITS_MAX; i++)
			if (o->changes[i])
				limit_apply(&region_header(base)->limits, &o->change[i]);
		error = reaper_begin(r, place, *fd, base);
		why = strerror(-error);
	}
	if (error == 0) {
		error = reaper_watch(r, signal_fd);
		why = strerror(-error);
		if (error < 0) {
			*fd = dup(*fd); /* the reaper closes its own */
			reaper_end(r);
		}
	}
	if (error < 0)
		cli_error("cannot enter namespace '%s': %s", place->name, why);
	return error;
}

int cmd_run(int argc, char **argv)
{
	static struct namespace_place place;
	static struct reaper reaper;
	struct options o = {0};
	struct child child;
	char path[PATH_MAX];
	int fd, error, status;
	bool bare;

	status = parse_options(argc, argv, &o);
	if (status >= 0)
		return status;
	argv += optind;
	status = find_program(argv[0], path, &bare);
	if (status)
		return status;
	if (!child_make_room()) {
		cli_error("too few files may be open (ulimit -n)");
		return EXIT_OWN_FAILURE;
	}
	(void)namespace_list(drop_if_left, NULL); /* a kindness: what fails here fails nobody */
	error = o.name ? cli_open(o.name, NAMESPACE_CREATE, &place, &fd)
		       : open_private(&place, &fd);
	if (error < 0)
		return EXIT_OWN_FAILURE;
	error = set_environment(&place, bare);
	if (error < 0)
		goto drop;
	/* Before the region is mapped: the child must not hold a part of it. */
	error = child_start(&child, path, argv);
	if (error < 0) {
		cli_error("cannot start a process: %s", strerror(-error));
		goto drop;
	}
	error = enter(&reaper, &place, &fd, &o, child.signal_fd);
	if (error < 0) {
		child_abandon(&child);
		goto drop;
	}
	child_go(&child);
	serve(&reaper, &child);
	return finish(&reaper, &child, !o.name, o.check) ? child.status : EXIT_OWN_FAILURE;
drop:
	if (!o.name && fd >= 0)
		drop_private(&place, fd);
	return EXIT_OWN_FAILURE;
}
