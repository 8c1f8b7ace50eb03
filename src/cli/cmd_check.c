// SPDX-License-Identifier: MIT
/*
 * usysv check: walks a namespace's region and says what does not hold.
 *
 * The checker looks at a region at rest. In one that is in use it also finds what is merely in
 * flight: so what it finds is looked at again after a pause, and again, and only what has stayed
 * the same all the time is reported. What programs keep changing is not.
 *
 * With --repair the dead are buried first, as the reaper would do it. This process enters the
 * namespace as one, so it is no user; if it dies on the way, the next one goes on.
 */
#include "cli/cli.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "client/attach_dir.h"
#include "client/attach_orphans.h"
#include "client/retire.h"
#include "client/session.h"
#include "core/region.h"
#include "ipc/check.h"

#define EXIT_DAMAGED 2

#define LOOKS_MOST     6 /* with pauses that double: a third of a second */
#define FIRST_PAUSE_NS 10000000l
#define FINDINGS_MOST  10000

static void usage(FILE *out)
{
	fputs("\nUsage:\n"
	      " usysv check [options] [<namespace>]\n\n"
	      "Check the data of a namespace (default: as for programs) for inconsistencies.\n\n"
	      "Options:\n"
	      " -n, --namespace <name>  the namespace, in place of the argument\n"
	      " -r, --repair            first finish what processes left that were killed\n"
	      " -h, --help              display this help\n"
	      " -V, --version           display version\n\n"
	      "Exit status: 0 consistent, 1 cannot look, 2 inconsistencies found.\n"
	      "For more details see usysv-check(1).\n",
	      out);
}

/* ---- Looking ------------------------------------------------------------------------------- */

struct findings {
	char **text;
	size_t count;
	size_t more; /* not kept: too many, or no memory */
};

static void keep(void *context, const char *text)
{
	struct findings *f = context;
	char **grown = f->text, *copy = NULL;

	if (f->count % 64 == 0 && f->count < FINDINGS_MOST) {
		grown = realloc(f->text, (f->count + 64) * sizeof(*grown));
		if (grown)
			f->text = grown;
	}
	if (grown && f->count < FINDINGS_MOST)
		copy = strdup(text);
	if (copy)
		f->text[f->count++] = copy;
	else
		f->more++;
}

static void forget(struct findings *f)
{
	for (size_t i = 0; i < f->count; i++)
		free(f->text[i]);
	free(f->text);
	*f = (struct findings){0};
}

static bool has(const struct findings *f, const char *text)
{
	for (size_t i = 0; i < f->count; i++)
		if (strcmp(f->text[i], text) == 0)
			return true;
	return false;
}

/* What is in both stays in `f`. */
static void keep_common(struct findings *f, const struct findings *other)
{
	size_t n = 0;

	for (size_t i = 0; i < f->count; i++) {
		if (has(other, f->text[i]))
			f->text[n++] = f->text[i];
		else
			free(f->text[i]);
	}
	f->count = n;
	if (other->more < f->more)
		f->more = other->more;
}

struct place {
	const unsigned char *base;
	char segments[PATH_MAX]; /* the directory of their files */
};

static void keep_file(void *context, const char *name)
{
	char text[NAME_MAX + 64];

	snprintf(text, sizeof(text), "file %s is of no segment", name);
	keep(context, text);
}

static void find(const struct place *p, struct findings *ret)
{
	check_region(p->base, keep, ret);
	(void)attach_orphans_each(p->segments, p->base, keep_file, ret); /* out of reach: none */
}

/* Prints what does not hold, and keeps not holding; how much that is. */
static size_t look(const struct namespace_place *place, const struct place *p)
{
	struct findings found = {0}, again = {0};
	struct timespec pause = {0, FIRST_PAUSE_NS};
	size_t count;

	find(p, &found);
	for (int looks = 1; looks < LOOKS_MOST && found.count + found.more > 0; looks++) {
		nanosleep(&pause, NULL);
		pause.tv_nsec *= 2;
		find(p, &again);
		keep_common(&found, &again);
		forget(&again);
	}
	count = found.count + found.more;
	for (size_t i = 0; i < found.count; i++)
		printf("%s: %s\n", place->name, found.text[i]);
	if (count > 0)
		printf("%s: %zu inconsistenc%s\n", place->name, count, count == 1 ? "y" : "ies");
	forget(&found);
	return count;
}

/* ---- Repair -------------------------------------------------------------------------------- */

/* Buries the dead, in a mapping of its own. */
static int repair(const struct namespace_place *place, int fd)
{
	const char *why = "";
	unsigned char *base;
	struct thread_block *tb;
	uint32_t before, after, files;
	int error = namespace_map(fd, &base, &why);

	if (error == 0) {
		error = session_adopt(base, place, PROC_REAPER);
		why = strerror(-error);
	}
	if (error < 0) {
		cli_error("cannot enter namespace '%s': %s", place->name, why);
		return error;
	}
	before = retire_users(base);
	(void)session_sweep(SWEEP_ALL);
	tb = session_thread(&error);
	files = tb ? attach_orphans_remove(tb) : 0;
	after = retire_users(base);
	if (after < before)
		printf("%s: %u process%s that had ended without a word buried, %u left\n",
		       place->name, before - after, before - after == 1 ? "" : "es", after);
	else
		printf("%s: no process had to be buried, %u in use\n", place->name, after);
	if (files > 0)
		printf("%s: %u file%s of segments that are gone removed\n", place->name, files,
		       files == 1 ? "" : "s");
	session_exit();
	return 0;
}

int cmd_check(int argc, char **argv)
{
	static const struct option options[] = {
		{"namespace", required_argument, NULL, 'n'},
		{"repair", no_argument, NULL, 'r'},
		{"help", no_argument, NULL, 'h'},
		{"version", no_argument, NULL, 'V'},
		{NULL, 0, NULL, 0},
	};
	static struct namespace_place place;
	static struct place p;
	const char *name = NULL;
	struct stat st;
	bool repairs = false;
	size_t found;
	int c, fd;

	while ((c = getopt_long(argc, argv, "n:rhV", options, NULL)) != -1) {
		switch (c) {
		case 'n':
			name = optarg;
			break;
		case 'r':
			repairs = true;
			break;
		case 'h':
			usage(stdout);
			return EXIT_SUCCESS;
		case 'V':
			cli_version();
			return EXIT_SUCCESS;
		default:
			cli_try_help();
			return EXIT_FAILURE;
		}
	}
	if (!cli_take_name(argc, argv, &name))
		return EXIT_FAILURE;
	if (cli_open(name, repairs ? 0 : NAMESPACE_LOOK, &place, &fd) < 0)
		return EXIT_FAILURE;
	if (repairs && repair(&place, fd) < 0) {
		close(fd);
		return EXIT_FAILURE;
	}
	p.base = cli_map_to_look(&place, fd);
	if (p.base && fstat(fd, &st) == 0)
		(void)attach_dir_name(p.segments, place.region, st.st_ino,
				      region_header(p.base)->created);
	close(fd);
	if (!p.base)
		return EXIT_FAILURE;
	found = look(&place, &p);
	cli_unmap(p.base);
	return found > 0 ? EXIT_DAMAGED : EXIT_SUCCESS;
}
