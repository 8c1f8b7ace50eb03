// SPDX-License-Identifier: MIT
/* usysv check: walks a namespace's region and says what does not hold. Only looks. */
#include "cli/cli.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "ipc/check.h"

#define EXIT_DAMAGED 2

static void usage(FILE *out)
{
	fputs("\nUsage:\n"
	      " usysv check [options]\n\n"
	      "Check the data of a namespace for inconsistencies.\n\n"
	      "Options:\n"
	      " -n, --namespace <name>  the namespace (default: as for programs)\n"
	      " -h, --help              display this help\n"
	      " -V, --version           display version\n\n"
	      "Exit status: 0 consistent, 1 cannot look, 2 inconsistencies found.\n"
	      "For more details see usysv(1).\n",
	      out);
}

static void say(void *context, const char *text)
{
	const struct namespace_place *place = context;

	printf("%s: %s\n", place->name, text);
}

int cmd_check(int argc, char **argv)
{
	static const struct option options[] = {
		{"namespace", required_argument, NULL, 'n'},
		{"help", no_argument, NULL, 'h'},
		{"version", no_argument, NULL, 'V'},
		{NULL, 0, NULL, 0},
	};
	struct namespace_place place;
	const unsigned char *base;
	const char *name = NULL;
	int c, fd, found;

	while ((c = getopt_long(argc, argv, "n:hV", options, NULL)) != -1) {
		switch (c) {
		case 'n':
			name = optarg;
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
	if (optind < argc) {
		cli_error("unexpected argument '%s'", argv[optind]);
		cli_try_help();
		return EXIT_FAILURE;
	}
	if (cli_open(name, NAMESPACE_LOOK, &place, &fd) < 0)
		return EXIT_FAILURE;
	base = cli_map_to_look(&place, fd);
	close(fd);
	if (!base)
		return EXIT_FAILURE;
	found = check_region(base, say, &place);
	cli_unmap(base);
	if (found > 0)
		printf("%s: %d inconsistenc%s\n", place.name, found, found == 1 ? "y" : "ies");
	return found > 0 ? EXIT_DAMAGED : EXIT_SUCCESS;
}
