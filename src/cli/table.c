// SPDX-License-Identifier: MIT
/* Tables by libsmartcols; see the header. */
#include "cli/table.h"

#include <ctype.h>
#include <errno.h>
#include <libsmartcols.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "cli/cli.h"

#define COLUMNS_MAX 32

struct table {
	struct libscols_table *scols;
	struct libscols_line *line;
	int shown[COLUMNS_MAX]; /* where a column is shown; -1 nowhere */
	bool json, bytes;
};

static int find_column(const struct column *columns, unsigned count, const char *name, size_t n)
{
	for (unsigned i = 0; i < count; i++)
		if (strlen(columns[i].name) == n && strncasecmp(columns[i].name, name, n) == 0)
			return (int)i;
	return -1;
}

static bool add_column(struct table *t, const struct column *column, unsigned which, int *at)
{
	bool right = column->kind == COLUMN_NUMBER || column->kind == COLUMN_BYTES;
	struct libscols_column *c;

	if (t->shown[which] >= 0)
		return true; /* named twice: once is enough */
	c = scols_table_new_column(t->scols, column->name, 0, right ? SCOLS_FL_RIGHT : 0);
	if (!c)
		return false;
	if (right)
		scols_column_set_json_type(c, SCOLS_JSON_NUMBER);
	t->shown[which] = (*at)++;
	return true;
}

/* others: a column that is not ours is another table's. */
static bool choose(struct table *t, const struct column *columns, unsigned count, const char *list,
		   bool others)
{
	int at = 0;

	for (unsigned i = 0; !list && i < count; i++)
		if (columns[i].by_default && !add_column(t, &columns[i], i, &at))
			goto memory;
	while (list && *list) {
		size_t n = strcspn(list, ",");
		int which = find_column(columns, count, list, n);

		if (which < 0 && !others) {
			cli_error("there is no column '%.*s'", (int)n, list);
			return false;
		}
		if (which >= 0 && !add_column(t, &columns[which], (unsigned)which, &at))
			goto memory;
		list += n + (list[n] == ',');
	}
	if (at > 0 || (others && add_column(t, &columns[0], 0, &at)))
		return true;
	cli_error("no columns given");
	return false;
memory:
	cli_error("%s", strerror(ENOMEM));
	return false;
}

bool table_has_column(const struct column *columns, unsigned count, const char *name, size_t n)
{
	return find_column(columns, count, name, n) >= 0;
}

struct table *table_new(const char *name, const struct column *columns, unsigned count,
			const struct table_options *options)
{
	struct table *t = calloc(1, sizeof(*t));

	scols_init_debug(0);
	if (!t || !(t->scols = scols_new_table())) {
		cli_error("%s", strerror(ENOMEM));
		free(t);
		return NULL;
	}
	for (unsigned i = 0; i < COLUMNS_MAX; i++)
		t->shown[i] = -1;
	t->json = options->json;
	t->bytes = options->bytes || options->json;
	scols_table_set_name(t->scols, name);
	scols_table_enable_json(t->scols, options->json);
	scols_table_enable_raw(t->scols, options->raw);
	scols_table_enable_noheadings(t->scols, options->no_headings);
	if (!choose(t, columns, count, options->columns, options->others)) {
		table_free(t);
		return NULL;
	}
	return t;
}

void table_free(struct table *t)
{
	if (t) {
		scols_unref_table(t->scols);
		free(t);
	}
}

bool table_row(struct table *t)
{
	t->line = scols_table_new_line(t->scols, NULL);
	return t->line != NULL;
}

void table_text(struct table *t, unsigned column, const char *text)
{
	if (t->shown[column] >= 0 && text && *text)
		scols_line_set_data(t->line, (size_t)t->shown[column], text);
}

void table_number(struct table *t, unsigned column, int64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%lld", (long long)value);
	table_text(t, column, text);
}

void table_bytes(struct table *t, unsigned column, uint64_t bytes)
{
	static const char units[] = "BKMGTPE";
	unsigned unit = 0;
	double value = (double)bytes;
	char text[32];

	if (t->bytes) {
		table_number(t, column, (int64_t)bytes);
		return;
	}
	while (value >= 1024) {
		value /= 1024;
		unit++;
	}
	snprintf(text, sizeof(text), unit > 0 && value < 10 ? "%.1f%c" : "%.0f%c", value,
		 units[unit]);
	table_text(t, column, text);
}

void table_time(struct table *t, unsigned column, int64_t seconds)
{
	time_t when = (time_t)seconds;
	struct tm tm;
	char text[40];

	if (seconds == 0 || !localtime_r(&when, &tm))
		return;
	if (strftime(text, sizeof(text), t->json ? "%Y-%m-%dT%H:%M:%S%z" : "%Y-%m-%d %H:%M:%S",
		     &tm) > 0)
		table_text(t, column, text);
}

/*
 * libsmartcols makes an object of each table; one document has one object, so the braces of the
 * single ones are taken away.
 */
static int print_json(struct table *const *tables, unsigned count)
{
	puts("{");
	for (unsigned i = 0; i < count; i++) {
		char *text = NULL, *from, *to;
		int error = scols_print_table_to_string(tables[i]->scols, &text);

		if (error < 0)
			return error;
		from = strchr(text, '{');
		to = strrchr(text, '}');
		if (from && to && from < to) {
			from++;
			from += strspn(from, "\n");
			while (to > from && isspace((unsigned char)to[-1]))
				to--;
			printf("%.*s%s\n", (int)(to - from), from, i + 1 < count ? "," : "");
		} else { /* older libraries print nothing for a table without lines */
			printf("   \"%s\": []%s\n", scols_table_get_name(tables[i]->scols),
			       i + 1 < count ? "," : "");
		}
		free(text);
	}
	puts("}");
	return 0;
}

int table_print(struct table *const *tables, unsigned count, const struct table_options *options)
{
	unsigned printed = 0;
	int error = 0;

	if (options->json)
		return print_json(tables, count);
	for (unsigned i = 0; i < count && error == 0; i++) {
		if (scols_table_get_nlines(tables[i]->scols) == 0)
			continue;
		if (printed++)
			putchar('\n');
		error = scols_print_table(tables[i]->scols);
	}
	return error;
}

void table_help(FILE *out, const struct column *columns, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		fprintf(out, " %14s  %s\n", columns[i].name, columns[i].help);
}
