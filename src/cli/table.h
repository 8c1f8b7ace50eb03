/* SPDX-License-Identifier: MIT */
/*
 * Tables on standard output by libsmartcols, as lsipc(1) and its kin print them: as text, raw or
 * JSON, with the columns that the user chose. A command fills rows by column number and need not
 * know which columns are shown.
 */
#ifndef USYSV_CLI_TABLE_H
#define USYSV_CLI_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum column_kind { COLUMN_TEXT, COLUMN_NUMBER, COLUMN_BYTES, COLUMN_TIME };

struct column {
	const char *name; /* capitals; JSON has it in small letters */
	const char *help;
	enum column_kind kind;
	bool by_default; /* shown unless the user says otherwise */
};

struct table_options {
	bool json, raw, no_headings, bytes;
	const char *columns; /* comma-separated names; null: those by default */
	bool others;         /* several tables are printed: a name may be a column of another one */
};

struct table;

/* Is the name (of n bytes) one of the columns? */
bool table_has_column(const struct column *columns, unsigned count, const char *name, size_t n);

/* name: of the array in JSON. Null after a complaint: an unknown column, or no memory. */
struct table *table_new(const char *name, const struct column *columns, unsigned count,
			const struct table_options *options);

/* Begins a row; the following values are its. False: no memory. */
bool table_row(struct table *t);

void table_text(struct table *t, unsigned column, const char *text);
void table_number(struct table *t, unsigned column, int64_t value);
void table_bytes(struct table *t, unsigned column, uint64_t bytes);
void table_time(struct table *t, unsigned column, int64_t seconds); /* 0: never, stays empty */

/*
 * Prints the tables that have rows, with an empty line between them. JSON: one object with all of
 * them. 0 or -errno.
 */
int table_print(struct table *const *tables, unsigned count, const struct table_options *options);
void table_free(struct table *t);

/* The columns, for --help. */
void table_help(FILE *out, const struct column *columns, unsigned count);

#endif
