/* SPDX-License-Identifier: MIT */
/* What the commands of usysv share: how they are called, and how they complain. */
#ifndef USYSV_CLI_CLI_H
#define USYSV_CLI_CLI_H

#include <stdbool.h>
#include <stdint.h>

#include "client/namespace.h"

struct cli_command {
	const char *name;
	const char *summary;
	/* argv[0] is "usysv NAME", for messages. Returns the exit status. */
	int (*run)(int argc, char **argv);
};

int cmd_run(int argc, char **argv);
int cmd_ls(int argc, char **argv);
int cmd_rm(int argc, char **argv);
int cmd_check(int argc, char **argv);

/* "usysv COMMAND: message" on standard error. */
void cli_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* After getopt has complained, or instead. */
void cli_try_help(void);

/* --version */
void cli_version(void);

/* Says which command speaks; by main. */
void cli_name(const char *name);

/*
 * After the options: a namespace may be named by an argument too, if *name is null. False after a
 * complaint: there is more.
 */
bool cli_take_name(int argc, char **argv, const char **name);

/*
 * Locates and opens (namespace_open flags) a namespace; on failure complains and returns -errno.
 * name null: as programs choose it.
 */
int cli_open(const char *name, unsigned flags, struct namespace_place *ret_place, int *ret_fd);

/* Maps a region for reading only, to look at. On failure complains and returns null. */
const unsigned char *cli_map_to_look(const struct namespace_place *place, int fd);
void cli_unmap(const unsigned char *base);

#endif
