// SPDX-License-Identifier: MIT
/* usysv: the command. Chooses a subcommand; the rest is in cmd_*.c. */
#include "cli/cli.h"

#include <errno.h>
#include <getopt.h>
#include <locale.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "client/lost.h"
#include "core/layout.h"

static const struct cli_command commands[] = {
	{"run", "run a program in a namespace", cmd_run},
	{"ls", "list namespaces, or what is in one", cmd_ls},
	{"rm", "remove objects or a namespace", cmd_rm},
	{"check", "check a namespace for damage", cmd_check},
};
#define COMMANDS (sizeof(commands) / sizeof(commands[0]))

static char speaker[32] = "usysv";

void cli_name(const char *name)
{
	snprintf(speaker, sizeof(speaker), "usysv %s", name);
}

void cli_error(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fprintf(stderr, "%s: ", speaker);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
}

void cli_try_help(void)
{
	fprintf(stderr, "Try '%s --help' for more information.\n", speaker);
}

void cli_version(void)
{
	printf("usysv %s\n", USYSV_VERSION);
}

bool cli_take_name(int argc, char **argv, const char **name)
{
	if (optind < argc && !*name)
		*name = argv[optind++];
	if (optind == argc)
		return true;
	cli_error("unexpected argument '%s'", argv[optind]);
	cli_try_help();
	return false;
}

int cli_open(const char *name, unsigned flags, struct namespace_place *ret_place, int *ret_fd)
{
	const char *why = "";
	int error = namespace_locate(name, ret_place, &why);

	if (error < 0) {
		cli_error("namespace '%s'%s%s%s: %s", name ? name : ret_place->name,
			  *ret_place->region ? " (" : "", ret_place->region,
			  *ret_place->region ? ")" : "", why);
		return error;
	}
	error = namespace_open(ret_place, flags, ret_fd, &why);
	if (error == -ENOENT)
		cli_error("namespace '%s' does not exist", ret_place->name);
	else if (error < 0)
		cli_error("cannot open namespace '%s' (%s): %s", ret_place->name, ret_place->dir,
			  why);
	return error;
}

const unsigned char *cli_map_to_look(const struct namespace_place *place, int fd)
{
	void *p = mmap(NULL, (size_t)REGION_BYTES, PROT_READ, MAP_SHARED | MAP_NORESERVE, fd, 0);

	if (p == MAP_FAILED) {
		cli_error("cannot map namespace '%s': %s", place->name, strerror(errno));
		return NULL;
	}
	lost_watch(p);
	return p;
}

void cli_unmap(const unsigned char *base)
{
	lost_watch(NULL);
	if (base)
		munmap((void *)(uintptr_t)base, (size_t)REGION_BYTES);
}

static void usage(FILE *out)
{
	fputs("\nUsage:\n"
	      " usysv <command> [options] [arguments]\n\n"
	      "System V IPC in user space.\n\n"
	      "Commands:\n",
	      out);
	for (size_t i = 0; i < COMMANDS; i++)
		fprintf(out, " %-8s %s\n", commands[i].name, commands[i].summary);
	fputs("\nOptions:\n"
	      " -h, --help     display this help\n"
	      " -V, --version  display version\n\n"
	      "'usysv <command> --help' tells about a command.\n"
	      "For more details see usysv(1).\n",
	      out);
}

static int run(int argc, char **argv)
{
	static const struct option options[] = {
		{"help", no_argument, NULL, 'h'},
		{"version", no_argument, NULL, 'V'},
		{NULL, 0, NULL, 0},
	};
	int c;

	while ((c = getopt_long(argc, argv, "+hV", options, NULL)) != -1) {
		switch (c) {
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
	if (optind == argc) {
		usage(stderr);
		return EXIT_FAILURE;
	}
	for (size_t i = 0; i < COMMANDS; i++) {
		if (strcmp(argv[optind], commands[i].name) != 0)
			continue;
		cli_name(commands[i].name);
		argv += optind;
		argc -= optind;
		argv[0] = speaker;
		optind = 0; /* both C libraries then begin anew */
		return commands[i].run(argc, argv);
	}
	cli_error("'%s' is not a command", argv[optind]);
	cli_try_help();
	return EXIT_FAILURE;
}

/* What was to be written and could not be is a failure; whoever closed a pipe has had enough. */
static int flush_output(int status)
{
	errno = 0;
	if (fflush(stdout) == 0 && !ferror(stdout))
		return status;
	if (errno == EPIPE)
		return status;
	cli_error("write error: %s", strerror(errno ? errno : EIO));
	return status ? status : EXIT_FAILURE;
}

int main(int argc, char **argv)
{
	setlocale(LC_ALL, "");
	lost_install();
	return flush_output(run(argc, argv));
}
