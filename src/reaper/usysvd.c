// SPDX-License-Identifier: MIT
/*
 * usysvd: the reaper of a namespace in which nobody else is. Started, unseen, by whatever program
 * misses a reaper (reaper_start.c), by `usysv run` when it leaves processes behind, or by hand. It
 * takes the office or, if somebody has it, leaves at once. A short while after the last user has
 * gone it goes too, and takes along a namespace that nobody asked for by name.
 *
 * It stays in the foreground and keeps nothing of who started it: signals, limits and working
 * directory are its own. It may be killed anywhere; whoever misses it starts another.
 */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "client/lost.h"
#include "client/namespace.h"
#include "client/report.h"
#include "client/retire.h"
#include "core/region.h"
#include "reaper/loop.h"

#define LINGER_SECONDS 2

/* Who starts usysvd may have blocked or ignored anything, and the rest is inherited. */
static void own_signals(void)
{
	sigset_t none;

	for (int s = 1; s < NSIG; s++)
		(void)signal(s, SIG_DFL); /* SIGKILL and SIGSTOP refuse */
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

/* A soft limit that was meant for the starter: as far up as this process may go. */
static void own_limit(int resource)
{
	struct rlimit l;

	if (getrlimit((__rlimit_resource_t)resource, &l) == 0) {
		l.rlim_cur = l.rlim_max;
		(void)setrlimit((__rlimit_resource_t)resource, &l); /* then it stays as it is */
	}
}

static void usage(FILE *out)
{
	fputs("\nUsage:\n"
	      " usysvd [options]\n\n"
	      "Clean up after processes that die in a namespace of usysv.\n\n"
	      "Options:\n"
	      "     --namespace-path <dir>  the namespace's directory (default: as for programs,\n"
	      "                              from USYSV_NAMESPACE and USYSV_DIR)\n"
	      " -h, --help                  display this help\n"
	      " -V, --version               display version\n\n"
	      "For more details see usysvd(8).\n",
	      out);
}

static int fail(const char *what, const char *why)
{
	fprintf(stderr, "usysvd: %s: %s\n", what, why);
	return EXIT_FAILURE;
}

static int64_t seconds(void)
{
	struct timespec t = {0, 0};

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec;
}

/*
 * Removes a namespace that has no user any more and that nobody asked for by name. True: usysvd is
 * not needed here any longer.
 */
static bool retire(struct reaper *r)
{
	uint32_t flags = region_header(r->base)->flags;

	/* Another reaper is a `usysv run` whose program has not begun to use the namespace. */
	if (retire_reapers(r->base) > 1)
		return true;
	if (flags & REGION_PRIVATE)
		return reaper_retire(r, 0) != -EBUSY;
	if (flags & REGION_AUTO)
		return reaper_retire(r, RETIRE_EMPTY) != -EBUSY;
	return true;
}

static void serve(struct reaper *r)
{
	int64_t last_use = seconds();

	while (r->in_office && !r->gone) {
		(void)reaper_step(r, 500); /* watches nothing else */
		if (r->users > 0) {
			last_use = seconds();
		} else if (seconds() - last_use >= LINGER_SECONDS) {
			if (retire(r) && reaper_resign(r))
				return;
			last_use = seconds(); /* somebody has come at the last moment */
		}
	}
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"namespace-path", required_argument, NULL, 'p'},
		{"help", no_argument, NULL, 'h'},
		{"version", no_argument, NULL, 'V'},
		{NULL, 0, NULL, 0},
	};
	static struct reaper reaper;
	static struct namespace_place place;
	const char *path = NULL, *why = "";
	unsigned char *base;
	int c, fd, error;

	own_signals();
	lost_install();
	while ((c = getopt_long(argc, argv, "hV", options, NULL)) != -1) {
		switch (c) {
		case 'p':
			path = optarg;
			break;
		case 'h':
			usage(stdout);
			return EXIT_SUCCESS;
		case 'V':
			printf("usysvd from usysv %s\n", USYSV_VERSION);
			return EXIT_SUCCESS;
		default:
			fprintf(stderr, "Try 'usysvd --help' for more information.\n");
			return EXIT_FAILURE;
		}
	}
	if (optind < argc)
		return fail(argv[optind], "unexpected argument");
	own_limit(RLIMIT_AS);
	own_limit(RLIMIT_CPU);

	if (path) {
		char region[PATH_MAX];
		size_t n = strlen(path);

		while (n > 1 && path[n - 1] == '/')
			n--;
		if (n + sizeof("/region") > sizeof(region))
			return fail(path, "the path is too long");
		snprintf(region, sizeof(region), "%.*s/region", (int)n, path);
		error = namespace_locate_path(region, &place, &why);
	} else {
		error = namespace_locate(NULL, &place, &why);
	}
	if (error < 0)
		return fail(path ? path : *place.region ? place.region : place.name, why);
	error = namespace_open(&place, 0, &fd, &why);
	if (error == -ENOENT)
		return EXIT_SUCCESS; /* it has ended meanwhile */
	if (error == 0)
		error = namespace_map(fd, &base, &why);
	if (error < 0)
		return fail(place.dir, why);
	if (chdir("/") < 0)
		return fail("/", report_errno(errno));
	error = reaper_begin(&reaper, &place, fd, base);
	if (error < 0)
		return fail(place.dir, report_errno(-error));
	serve(&reaper);
	reaper_end(&reaper);
	return EXIT_SUCCESS;
}
