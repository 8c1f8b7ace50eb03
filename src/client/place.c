// SPDX-License-Identifier: MIT
/*
 * Where a namespace is: the base directory, the user's directory in it, and the names inside. Only
 * text and a look at file systems; nothing is opened for use here, made or trusted.
 *
 * The environment decides, except in a program that runs with more rights than its caller
 * (AT_SECURE): there the caller's environment must not choose which files are opened.
 *
 * Called by the session on first use, by usysv and usysvd. Async-signal-safe; leaves errno alone.
 */
#include "client/namespace.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/sys.h"
#include "base/text.h"

#ifndef SYS_faccessat2
#define SYS_faccessat2 439
#endif

#define TMPFS_TYPE 0x01021994ul

static const char DEFAULT_NAME[] = "default";
static const char REGION_NAME[] = "region";

/* getenv() without the C library: another library may have replaced it. */
static const char *env_get(const char *name)
{
	size_t n = strlen(name);

	if (getauxval(AT_SECURE) || !environ)
		return NULL;
	for (char **e = environ; *e; e++)
		if (strncmp(*e, name, n) == 0 && (*e)[n] == '=')
			return (*e)[n + 1] ? *e + n + 1 : NULL;
	return NULL;
}

/* The kernel's answer: fakeroot and its like put another in place of geteuid(). */
static unsigned long effective_uid(void)
{
#ifdef SYS_geteuid32
	return (unsigned long)sys_call(SYS_geteuid32, 0, 0, 0, 0, 0, 0);
#else
	return (unsigned long)sys_call(SYS_geteuid, 0, 0, 0, 0, 0, 0);
#endif
}

static bool name_valid(const char *name, size_t n)
{
	if (n == 0 || n > NAMESPACE_NAME_MAX || name[0] == '.' || name[0] == '-')
		return false;
	for (size_t i = 0; i < n; i++) {
		char c = name[i];

		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		      c == '.' || c == '_' || c == '-'))
			return false;
	}
	return true;
}

/* to = a/b; a has `a_length` characters. */
static int join(char to[PATH_MAX], const char *a, size_t a_length, const char *b)
{
	size_t b_length = strlen(b);

	if (a_length + 1 + b_length + 1 > PATH_MAX)
		return -ENAMETOOLONG;
	memmove(to, a, a_length);
	to[a_length] = '/';
	memcpy(to + a_length + 1, b, b_length + 1);
	return 0;
}

static bool usable(const char *dir)
{
	int saved = errno;
	struct statfs s;
	bool ok = statfs(dir, &s) == 0 && (unsigned long)s.f_type == TMPFS_TYPE;

	errno = saved;
	if (!ok)
		return false;
	long r = sys_call(SYS_faccessat2, AT_FDCWD, (long)dir, W_OK | X_OK, AT_EACCESS, 0, 0);
	if (r == -ENOSYS || r == -EPERM)
		r = sys_call(SYS_faccessat, AT_FDCWD, (long)dir, W_OK | X_OK, 0, 0, 0);
	return r == 0;
}

/*
 * The base directory and its length without trailing slashes. What is no tmpfs is passed over but
 * for the last, so that the error is about a directory that everybody knows.
 */
static const char *choose_base(size_t *ret_length)
{
	const char *base = env_get("USYSV_DIR");

	if (!base) {
		const char *runtime = env_get("XDG_RUNTIME_DIR");

		if (usable("/dev/shm"))
			base = "/dev/shm";
		else if (runtime && runtime[0] == '/' && usable(runtime))
			base = runtime;
		else
			base = "/tmp";
	}
	size_t n = strlen(base);
	while (n > 1 && base[n - 1] == '/')
		n--;
	*ret_length = n;
	return base;
}

static void user_directory(char to[32])
{
	text_put_number(stpcpy(to, "usysv-"), effective_uid());
}

/* Start of the last component of path[0..*length), which becomes the length of what is before. */
static const char *split_last(const char *path, size_t *length)
{
	size_t n = *length;

	while (n > 0 && path[n - 1] != '/')
		n--;
	*length = n > 0 ? n - 1 : 0;
	return path + n;
}

static void copy_cut(char *to, const char *from, size_t size)
{
	size_t n = strnlen(from, size - 1);

	memcpy(to, from, n);
	to[n] = 0;
}

/* What the environment says, for the message that it does not do. */
static int refuse(struct namespace_place *ret, const char *name, const char *path, int error)
{
	copy_cut(ret->name, name, sizeof(ret->name));
	copy_cut(ret->region, path, sizeof(ret->region));
	return error;
}

int namespace_locate_path(const char *region, struct namespace_place *ret, const char **ret_why)
{
	size_t n = strlen(region);
	size_t dir_length = n, root_length;
	const char *last = split_last(region, &dir_length);

	*ret_why = "the path is too long";
	if (n >= PATH_MAX)
		return -ENAMETOOLONG;
	*ret_why = "the path of a region is /BASE/usysv-UID/NAME/region";
	if (region[0] != '/' || strcmp(last, REGION_NAME) != 0)
		return -EINVAL;
	root_length = dir_length;
	last = split_last(region, &root_length);
	size_t name_length = (size_t)(region + dir_length - last);
	if (root_length == 0 || !name_valid(last, name_length))
		return -EINVAL;
	memcpy(ret->name, last, name_length);
	ret->name[name_length] = 0;
	memcpy(ret->region, region, n + 1);
	memcpy(ret->dir, region, dir_length);
	ret->dir[dir_length] = 0;
	memcpy(ret->root, region, root_length);
	ret->root[root_length] = 0;
	return 0;
}

/* USYSV_REGION=NAME:PATH, if it is about this name. */
static const char *passed_path(const char *name)
{
	const char *passed = env_get("USYSV_REGION");
	size_t n = strlen(name);

	if (passed && strncmp(passed, name, n) == 0 && passed[n] == ':')
		return passed + n + 1;
	return NULL;
}

int namespace_locate(const char *name, struct namespace_place *ret, const char **ret_why)
{
	char user[32];
	size_t base_length;
	const char *base;

	if (!name) {
		name = env_get("USYSV_NAMESPACE");
		if (!name)
			name = DEFAULT_NAME;
		const char *path = passed_path(name);
		if (path) {
			int r = namespace_locate_path(path, ret, ret_why);

			return r < 0 ? refuse(ret, name, path, r) : 0;
		}
	}
	if (!name_valid(name, strlen(name))) {
		*ret_why = "a name has 1 to 64 letters, digits, '.', '_' and '-', "
			   "and begins with a letter, a digit or '_'";
		return refuse(ret, name, "", -EINVAL);
	}
	base = choose_base(&base_length);
	if (base[0] != '/') {
		*ret_why = "USYSV_DIR must be an absolute path";
		return refuse(ret, name, base, -EINVAL);
	}
	user_directory(user);
	/* "/" itself: no doubled slash */
	if (join(ret->root, base, base_length == 1 ? 0 : base_length, user) < 0 ||
	    join(ret->dir, ret->root, strlen(ret->root), name) < 0 ||
	    join(ret->region, ret->dir, strlen(ret->dir), REGION_NAME) < 0) {
		*ret_why = "the path of its directory is too long";
		return refuse(ret, name, base, -ENAMETOOLONG);
	}
	memcpy(ret->name, name, strlen(name) + 1);
	return 0;
}

bool namespace_base_chosen(const struct namespace_place *place)
{
	size_t n;
	const char *path = passed_path(place->name);

	if (path && strcmp(path, place->region) == 0)
		return true;
	if (!env_get("USYSV_DIR"))
		return false;
	const char *base = choose_base(&n);
	n = n == 1 ? 0 : n;
	return strncmp(place->root, base, n) == 0 && place->root[n] == '/' &&
	       !strchr(place->root + n + 1, '/');
}
