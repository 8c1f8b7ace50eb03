// SPDX-License-Identifier: MIT
/*
 * usysv ls: the namespaces of the user, or the objects of one. Only looks: it opens the region for
 * reading and enters no registry, so it works beside anything and changes nothing.
 */
#include "cli/cli.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/ident.h"
#include "cli/family.h"
#include "cli/table.h"
#include "client/office.h"
#include "client/retire.h"
#include "core/region.h"

enum {
	NS_NAME,
	NS_USERS,
	NS_MSG,
	NS_SEM,
	NS_SHM,
	NS_SIZE,
	NS_REAPER,
	NS_STATE,
	NS_KIND,
	NS_CREATED,
	NS_PATH,
	NS_COLUMNS
};

static const struct column namespace_columns[NS_COLUMNS] = {
	[NS_NAME] = {"NAME", "name of the namespace", COLUMN_TEXT, true},
	[NS_USERS] = {"USERS", "processes that use it", COLUMN_NUMBER, true},
	[NS_MSG] = {"MSG", "message queues", COLUMN_NUMBER, true},
	[NS_SEM] = {"SEM", "semaphore sets", COLUMN_NUMBER, true},
	[NS_SHM] = {"SHM", "shared memory segments", COLUMN_NUMBER, true},
	[NS_SIZE] = {"SIZE", "memory that it occupies", COLUMN_BYTES, true},
	[NS_REAPER] = {"REAPER", "process that cleans up after the dead", COLUMN_NUMBER, true},
	[NS_STATE] = {"STATE", "in use, idle, or what is wrong", COLUMN_TEXT, true},
	[NS_KIND] = {"KIND", "named, private (of one 'usysv run') or auto", COLUMN_TEXT, false},
	[NS_CREATED] = {"CREATED", "time of its creation", COLUMN_TIME, false},
	[NS_PATH] = {"PATH", "its directory", COLUMN_TEXT, false},
};

static void usage(FILE *out)
{
	fputs("\nUsage:\n"
	      " usysv ls [options] [<namespace>]\n\n"
	      "List the namespaces of this user, or the objects of one.\n\n"
	      "Options:\n"
	      " -n, --namespace <name>  the namespace, in place of the argument\n"
	      " -o, --output <list>     columns to show\n"
	      " -b, --bytes             sizes in bytes\n"
	      " -J, --json              use the JSON output format\n"
	      " -r, --raw               use the raw output format\n"
	      "     --noheadings        don't print headings\n"
	      " -h, --help              display this help\n"
	      " -V, --version           display version\n\n"
	      "Columns of namespaces:\n",
	      out);
	table_help(out, namespace_columns, NS_COLUMNS);
	for (unsigned i = 0; i < family_view_count; i++) {
		fprintf(out, "\nColumns of %s:\n", family_views[i].title);
		table_help(out, family_views[i].columns, family_views[i].column_count);
	}
	fputs("\nFor more details see usysv-ls(1).\n", out);
}

/* ---- Namespaces ---------------------------------------------------------------------------- */

struct names {
	char (*name)[NAMESPACE_NAME_MAX + 1];
	size_t count, room;
};

static int add_name(const char *name, void *context)
{
	struct names *n = context;

	if (n->count == n->room) {
		size_t room = n->room ? 2 * n->room : 16;
		void *more = realloc(n->name, room * sizeof(n->name[0]));

		if (!more)
			return -ENOMEM;
		n->name = more;
		n->room = room;
	}
	snprintf(n->name[n->count++], sizeof(n->name[0]), "%s", name);
	return 0;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* What the files of a namespace occupy, holes not counted. */
static uint64_t real_bytes(const struct namespace_place *place)
{
	DIR *dir = opendir(place->dir);
	const struct dirent *e;
	uint64_t bytes = 0;
	struct stat st;

	while (dir && (e = readdir(dir)))
		if (fstatat(dirfd(dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    S_ISREG(st.st_mode))
			bytes += (uint64_t)st.st_blocks * 512;
	if (dir)
		closedir(dir);
	return bytes;
}

/* Registered processes that live; the dead of the last moment are not buried yet. */
static unsigned live_users(const unsigned char *base)
{
	uint32_t hi = region_proc_count(base);
	unsigned users = 0;

	for (uint32_t i = 0; i < hi; i++) {
		const struct proc_shm *p = region_proc(base, i);

		if (!p || load_acquire(&p->state) == PROC_FREE || (p->flags & PROC_REAPER))
			continue;
		switch (office_state_of(p)) {
		case IDENT_GONE:
		case IDENT_EXITING:
			break;
		default:
			users++;
		}
	}
	return users;
}

static unsigned count_objects(const unsigned char *base, enum family family)
{
	uint32_t hi = region_object_count(base, family);
	unsigned n = 0;

	for (uint32_t ix = 0; ix < hi; ix++)
		if (family_object(base, family, ix))
			n++;
	return n;
}

static void fill_namespace(struct table *t, const unsigned char *base)
{
	const struct header_shm *h = region_header(base);
	unsigned users = live_users(base);
	uint32_t reaper = office_pid(base);

	table_number(t, NS_USERS, users);
	table_number(t, NS_MSG, count_objects(base, FAMILY_MSG));
	table_number(t, NS_SEM, count_objects(base, FAMILY_SEM));
	table_number(t, NS_SHM, count_objects(base, FAMILY_SHM));
	if (reaper)
		table_number(t, NS_REAPER, reaper);
	table_text(t, NS_STATE, users > 0 ? "in use" : "idle");
	table_text(t, NS_KIND,
		   h->flags & REGION_PRIVATE ? "private"
		   : h->flags & REGION_AUTO  ? "auto"
					     : "named");
	table_time(t, NS_CREATED, h->created);
}

static bool namespace_row(struct table *t, const char *name)
{
	struct namespace_place place;
	const unsigned char *base;
	const char *why = "";
	int fd, error = namespace_locate(name, &place, &why);

	if (error < 0)
		return true; /* no namespace, but a stranger in the directory */
	error = namespace_open(&place, NAMESPACE_LOOK, &fd, &why);
	if (error == -ENOENT && access(place.dir, F_OK) < 0)
		return true; /* gone meanwhile */
	if (!table_row(t))
		return false;
	table_text(t, NS_NAME, name);
	table_text(t, NS_PATH, place.dir);
	table_bytes(t, NS_SIZE, real_bytes(&place));
	if (error < 0) {
		table_text(t, NS_STATE, error == -ENOENT ? "has no region" : why);
		return true;
	}
	base = cli_map_to_look(&place, fd);
	close(fd);
	if (base)
		fill_namespace(t, base);
	cli_unmap(base);
	return true;
}

static int list_namespaces(const struct table_options *options)
{
	struct names names = {NULL, 0, 0};
	struct table *t = table_new("namespaces", namespace_columns, NS_COLUMNS, options);
	int status = EXIT_FAILURE, error;

	if (!t)
		return EXIT_FAILURE;
	error = namespace_list(add_name, &names);
	if (error < 0) {
		cli_error("cannot list the namespaces: %s", strerror(-error));
		goto out;
	}
	if (names.count > 0)
		qsort(names.name, names.count, sizeof(names.name[0]), by_name);
	for (size_t i = 0; i < names.count; i++)
		if (!namespace_row(t, names.name[i])) {
			cli_error("%s", strerror(ENOMEM));
			goto out;
		}
	if (table_print(&t, 1, options) == 0)
		status = EXIT_SUCCESS;
out:
	table_free(t);
	free(names.name);
	return status;
}

/* ---- Objects ------------------------------------------------------------------------------- */

static bool fill_objects(const struct family_view *view, struct table *t, const unsigned char *base)
{
	uint32_t hi = region_object_count(base, view->family);

	for (uint32_t ix = 0; ix < hi; ix++) {
		const struct object_shm *o = family_object(base, view->family, ix);

		if (o && !family_row(view, t, base, o)) {
			cli_error("%s", strerror(ENOMEM));
			return false;
		}
	}
	return true;
}

/* Each name in the list must be a column of some family. */
static bool columns_exist(const char *list)
{
	while (list && *list) {
		size_t n = strcspn(list, ",");
		bool known = false;

		for (unsigned i = 0; i < family_view_count; i++)
			known |= table_has_column(family_views[i].columns,
						  family_views[i].column_count, list, n);
		if (!known) {
			cli_error("there is no column '%.*s'", (int)n, list);
			return false;
		}
		list += n + (list[n] == ',');
	}
	return true;
}

static int list_objects(const char *name, const struct table_options *chosen)
{
	struct table_options each = *chosen, *options = &each;
	struct table *tables[FAMILY_COUNT] = {NULL};
	struct namespace_place place;
	const unsigned char *base;
	int fd, status = EXIT_FAILURE;

	each.others = true;
	if (!columns_exist(chosen->columns) || cli_open(name, NAMESPACE_LOOK, &place, &fd) < 0)
		return EXIT_FAILURE;
	base = cli_map_to_look(&place, fd);
	close(fd);
	if (!base)
		return EXIT_FAILURE;
	for (unsigned i = 0; i < family_view_count; i++) {
		const struct family_view *v = &family_views[i];

		tables[i] = table_new(v->title, v->columns, v->column_count, options);
		if (!tables[i] || !fill_objects(v, tables[i], base))
			goto out;
	}
	if (table_print(tables, family_view_count, options) == 0)
		status = EXIT_SUCCESS;
out:
	for (unsigned i = 0; i < family_view_count; i++)
		table_free(tables[i]);
	cli_unmap(base);
	return status;
}

int cmd_ls(int argc, char **argv)
{
	enum { NO_HEADINGS = 256 };
	static const struct option options[] = {
		{"namespace", required_argument, NULL, 'n'},
		{"output", required_argument, NULL, 'o'},
		{"bytes", no_argument, NULL, 'b'},
		{"json", no_argument, NULL, 'J'},
		{"raw", no_argument, NULL, 'r'},
		{"noheadings", no_argument, NULL, NO_HEADINGS},
		{"help", no_argument, NULL, 'h'},
		{"version", no_argument, NULL, 'V'},
		{NULL, 0, NULL, 0},
	};
	struct table_options table = {0};
	const char *name = NULL;
	int c;

	while ((c = getopt_long(argc, argv, "n:o:bJrhV", options, NULL)) != -1) {
		switch (c) {
		case 'n':
			name = optarg;
			break;
		case 'o':
			table.columns = optarg;
			break;
		case 'b':
			table.bytes = true;
			break;
		case 'J':
			table.json = true;
			break;
		case 'r':
			table.raw = true;
			break;
		case NO_HEADINGS:
			table.no_headings = true;
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
	if (table.json && table.raw) {
		cli_error("--json and --raw exclude each other");
		return EXIT_FAILURE;
	}
	return name ? list_objects(name, &table) : list_namespaces(&table);
}
