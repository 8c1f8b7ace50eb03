// SPDX-License-Identifier: MIT
/*
 * usysv rm: removes objects of a namespace as a program would, or a namespace with all that is in
 * it. One in use is removed only by force: its objects first, so that every sleeper gets EIDRM
 * and every later call EINVAL, then its files.
 *
 * This process enters the namespace as a reaper, which is no user: so it does not count itself.
 * If it dies on the way, the namespace is intact with fewer objects, or on its way out and finished
 * by whoever opens it next (RETIRE_P1).
 */
#include "cli/cli.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/family.h"
#include "client/retire.h"
#include "client/session.h"
#include "core/region.h"

struct opened {
	struct namespace_place place;
	int fd;
	unsigned char *base;
};

static void usage(FILE *out)
{
	fputs("\nUsage:\n"
	      " usysv rm [options] <namespace> [<object>...]\n\n"
	      "Remove objects from a namespace, or the whole namespace.\n\n"
	      "Objects:\n",
	      out);
	for (unsigned i = 0; i < family_view_count; i++)
		fprintf(out, " %s:<id>     by id, of the %s\n", family_views[i].name,
			family_views[i].title);
	fputs(" key:<key>    all that have this key (0x... is hexadecimal)\n\n"
	      "Options:\n"
	      " -f, --force    remove a namespace that is in use, or one that is damaged\n"
	      " -h, --help     display this help\n"
	      " -V, --version  display version\n\n"
	      "For more details see usysv-rm(1).\n",
	      out);
}

static int enter(struct opened *o)
{
	const char *why = "";
	int error = namespace_map(o->fd, &o->base, &why);

	if (error == 0) {
		error = session_adopt(o->base, &o->place, PROC_REAPER);
		why = strerror(-error);
	}
	if (error < 0)
		cli_error("cannot enter namespace '%s': %s", o->place.name, why);
	return error;
}

/* ---- Objects ------------------------------------------------------------------------------- */

static bool number(const char *text, unsigned long long most, unsigned long long *ret)
{
	char *end;

	if (!isdigit((unsigned char)text[0]))
		return false;
	errno = 0;
	*ret = strtoull(text, &end, 0);
	return !*end && errno == 0 && *ret <= most;
}

/* Removes what has the key, in all families; how many, or -1 after a complaint. */
static int remove_key(const struct opened *o, int32_t key)
{
	int removed = 0;

	for (unsigned i = 0; i < family_view_count; i++) {
		const struct family_view *v = &family_views[i];
		uint32_t hi = region_object_count(o->base, v->family);

		for (uint32_t ix = 0; ix < hi; ix++) {
			const struct object_shm *object = family_object(o->base, v->family, ix);

			if (!object || object->key != key)
				continue;
			int32_t id = (int32_t)(load_acquire(&object->live) - 1);
			int error = v->remove(id);

			if (error < 0) {
				cli_error("cannot remove %s:%d: %s", v->name, id, strerror(-error));
				return -1;
			}
			removed++;
		}
	}
	return removed;
}

static bool remove_object(const struct opened *o, const char *object)
{
	const char *colon = strchr(object, ':');
	unsigned long long n;

	if (colon && strncmp(object, "key:", 4) == 0) {
		if (!number(colon + 1, UINT32_MAX, &n) || n == 0) {
			cli_error("%s: a key is a number from 1 to 0xffffffff", object);
			return false;
		}
		int removed = remove_key(o, (int32_t)(uint32_t)n);

		if (removed == 0)
			cli_error("%s: nothing has this key", object);
		return removed > 0;
	}
	for (unsigned i = 0; colon && i < family_view_count; i++) {
		const struct family_view *v = &family_views[i];

		if (strlen(v->name) != (size_t)(colon - object) ||
		    strncmp(v->name, object, (size_t)(colon - object)) != 0)
			continue;
		if (!number(colon + 1, INT32_MAX, &n)) {
			cli_error("%s: an id is a number", object);
			return false;
		}
		int error = v->remove((int32_t)n);

		if (error == -EINVAL || error == -EIDRM)
			cli_error("%s: there is no such object", object);
		else if (error < 0)
			cli_error("cannot remove %s: %s", object, strerror(-error));
		return error == 0;
	}
	cli_error("%s: not an object; see 'usysv rm --help'", object);
	return false;
}

static int remove_objects(struct opened *o, char **objects, int count)
{
	bool ok = true;

	if (enter(o) < 0)
		return EXIT_FAILURE;
	for (int i = 0; i < count; i++)
		ok = remove_object(o, objects[i]) && ok;
	session_exit();
	return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* ---- A whole namespace --------------------------------------------------------------------- */

static void remove_all_objects(const struct opened *o)
{
	for (unsigned i = 0; i < family_view_count; i++) {
		const struct family_view *v = &family_views[i];
		uint32_t hi = region_object_count(o->base, v->family);

		for (uint32_t ix = 0; ix < hi; ix++) {
			const struct object_shm *object = family_object(o->base, v->family, ix);
			int32_t id = object ? (int32_t)(load_acquire(&object->live) - 1) : -1;
			int error = id >= 0 ? v->remove(id) : 0;

			if (error < 0 && error != -EINVAL && error != -EIDRM)
				cli_error("cannot remove %s:%d: %s", v->name, id, strerror(-error));
		}
	}
}

static int remove_namespace(struct opened *o, bool force)
{
	int error;

	if (enter(o) < 0)
		return EXIT_FAILURE;
	(void)session_sweep(SWEEP_ALL);
	uint32_t users = retire_users(o->base);

	if (users > 0 && !force) {
		cli_error("namespace '%s' is in use by %u process%s; use --force to remove it all "
			  "the same",
			  o->place.name, users, users == 1 ? "" : "es");
		session_exit();
		return EXIT_FAILURE;
	}
	if (users > 0)
		remove_all_objects(o);
	error = retire_namespace(&o->place, o->fd, o->base, force ? RETIRE_FORCE : 0);
	if (force && error == 0)
		remove_all_objects(o); /* those made in the meantime */
	session_exit();
	if (error == 0 || error == -ENOENT)
		return EXIT_SUCCESS;
	cli_error("cannot remove namespace '%s': %s", o->place.name,
		  error == -EBUSY ? "it has just come into use" : strerror(-error));
	return EXIT_FAILURE;
}

/* A region that cannot be used has nobody to ask: its files go, if the user insists. */
static int remove_unusable(const struct namespace_place *place, const char *why, bool force)
{
	if (!force) {
		cli_error("cannot open namespace '%s' (%s): %s; use --force to remove it all the "
			  "same",
			  place->name, place->dir, why);
		return EXIT_FAILURE;
	}
	int error = namespace_unlink(place);

	if (error < 0) {
		cli_error("cannot remove %s: %s", place->dir, strerror(-error));
		return EXIT_FAILURE;
	}
	return EXIT_SUCCESS;
}

int cmd_rm(int argc, char **argv)
{
	static const struct option options[] = {
		{"force", no_argument, NULL, 'f'},
		{"help", no_argument, NULL, 'h'},
		{"version", no_argument, NULL, 'V'},
		{NULL, 0, NULL, 0},
	};
	static struct opened o;
	const char *why = "";
	bool force = false;
	int c, error;

	while ((c = getopt_long(argc, argv, "fhV", options, NULL)) != -1) {
		switch (c) {
		case 'f':
			force = true;
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
	if (optind == argc) {
		cli_error("no namespace given");
		cli_try_help();
		return EXIT_FAILURE;
	}
	argv += optind;
	argc -= optind;
	error = namespace_locate(argv[0], &o.place, &why);
	if (error < 0) {
		cli_error("namespace '%s': %s", argv[0], why);
		return EXIT_FAILURE;
	}
	error = namespace_open(&o.place, 0, &o.fd, &why);
	if (error == -ENOENT && access(o.place.dir, F_OK) < 0) {
		cli_error("namespace '%s' does not exist", argv[0]);
		return EXIT_FAILURE;
	}
	if (argc == 1 && (error == -EINVAL || error == -EPROTO))
		return remove_unusable(&o.place, why, force);
	if (argc == 1 && error == -ENOENT)
		return remove_unusable(&o.place, why, true); /* an unfinished removal */
	if (error < 0) {
		cli_error("cannot open namespace '%s' (%s): %s", argv[0], o.place.dir, why);
		return EXIT_FAILURE;
	}
	return argc > 1 ? remove_objects(&o, argv + 1, argc - 1) : remove_namespace(&o, force);
}
