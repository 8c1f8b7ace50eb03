// SPDX-License-Identifier: MIT
/*
 * The program to run. The dynamic linker preloads a library only into dynamically linked programs
 * of the library's own kind and C library, and not into those that run with more rights than their
 * caller. Whoever is not told would wonder why such a program uses the kernel's IPC.
 */
#include "cli/program.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <stdlib.h>
#include <unistd.h>

#define INTERPRETER_DEPTH 4 /* as the kernel follows "#!" */

#if UINTPTR_MAX > 0xffffffffu
#define OWN_CLASS ELFCLASS64
#else
#define OWN_CLASS ELFCLASS32
#endif
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define OWN_DATA ELFDATA2LSB
#else
#define OWN_DATA ELFDATA2MSB
#endif

static int executable(const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return errno;
	if (!S_ISREG(st.st_mode))
		return EACCES;
	return faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) < 0 ? errno : 0;
}

int program_find(const char *name, char ret_path[PATH_MAX])
{
	const char *path = getenv("PATH");
	size_t name_length = strlen(name);
	int result = ENOENT;

	if (name_length == 0)
		return ENOENT;
	if (name_length >= PATH_MAX)
		return ENAMETOOLONG;
	if (strchr(name, '/')) {
		memcpy(ret_path, name, name_length + 1);
		return executable(ret_path);
	}
	if (!path)
		path = "/bin:/usr/bin";
	for (;;) {
		size_t n = strcspn(path, ":");
		int error;

		if (n + 1 + name_length < PATH_MAX) {
			memcpy(ret_path, path, n);
			if (n > 0)
				ret_path[n++] = '/';
			memcpy(ret_path + n, name, name_length + 1);
			error = executable(ret_path);
			if (error == 0)
				return 0;
			if (error == EACCES) /* a later one may be better; this is remembered */
				result = EACCES;
		}
		path += strcspn(path, ":");
		if (!*path)
			return result;
		path++;
	}
}

/* The C library's name for the loader, without its folder. */
static const char *wrong_loader(const char *interpreter)
{
	const char *slash = strrchr(interpreter, '/');
	const char *name = slash ? slash + 1 : interpreter;
	bool musl = strncmp(name, "ld-musl", 7) == 0;

#ifdef __GLIBC__
	if (musl)
		return "is linked with musl, but this usysv was built for the GNU C library, so it "
		       "will use the kernel's System V IPC; use a usysv built with musl for it";
#else
	if (!musl)
		return "is not linked with musl, as this usysv is, so it will use the kernel's "
		       "System V IPC; use a usysv built with its C library";
#endif
	return NULL;
}

static const char *elf_out_of_reach(int fd, const unsigned char *ident, bool *ret_dies)
{
	static const char is_static[] =
		"is statically linked, so the preload library cannot reach it and it will use the "
		"kernel's System V IPC; link it dynamically, or with libusysv";
	union {
#if OWN_CLASS == ELFCLASS64
		Elf64_Ehdr header;
		Elf64_Phdr program;
#else
		Elf32_Ehdr header;
		Elf32_Phdr program;
#endif
	} u;
	char interpreter[PATH_MAX];
	const char *why;

	if (ident[EI_CLASS] != OWN_CLASS)
		return OWN_CLASS == ELFCLASS64
			       ? "is a 32-bit program, which the 64-bit preload library cannot "
				 "reach, so it will use the kernel's System V IPC; use a usysv "
				 "built "
				 "for 32 bits"
			       : "is a 64-bit program, which the 32-bit preload library cannot "
				 "reach, so it will use the kernel's System V IPC; use a usysv "
				 "built "
				 "for 64 bits";
	if (ident[EI_DATA] != OWN_DATA ||
	    pread(fd, &u.header, sizeof(u.header), 0) != (ssize_t)sizeof(u.header) ||
	    u.header.e_phentsize != sizeof(u.program))
		return NULL;
	unsigned count = u.header.e_phnum;
	off_t at = (off_t)u.header.e_phoff;

	for (unsigned i = 0; i < count; i++, at += (off_t)sizeof(u.program)) {
		ssize_t n;

		if (pread(fd, &u.program, sizeof(u.program), at) != (ssize_t)sizeof(u.program))
			return NULL;
		if (u.program.p_type != PT_INTERP)
			continue;
		n = pread(fd, interpreter, sizeof(interpreter) - 1, (off_t)u.program.p_offset);
		if (n <= 0)
			return NULL;
		interpreter[n] = 0;
		why = wrong_loader(interpreter);
		*ret_dies = why != NULL;
		return why;
	}
	return is_static;
}

/* Would executing it raise the process's rights (AT_SECURE)? */
static bool raises_rights(int fd, const char *path)
{
	struct stat st;
	struct statvfs fs;

	if (fstat(fd, &st) < 0 || prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1)
		return false;
	if (fstatvfs(fd, &fs) == 0 && (fs.f_flag & ST_NOSUID))
		return false;
	if ((st.st_mode & S_ISUID) && st.st_uid != getuid())
		return true;
	if ((st.st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP) && st.st_gid != getgid())
		return true;
	return getuid() != 0 && getxattr(path, "security.capability", NULL, 0) > 0;
}

const char *program_out_of_reach(const char *path, bool *ret_dies)
{
	unsigned char head[PATH_MAX];
	char script[PATH_MAX];

	*ret_dies = false;
	for (int depth = 0; depth <= INTERPRETER_DEPTH; depth++) {
		int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
		const char *why = NULL;
		ssize_t n;

		if (fd < 0)
			return NULL; /* executable but not readable */
		n = read(fd, head, sizeof(head) - 1);
		if (n >= EI_NIDENT && memcmp(head, ELFMAG, SELFMAG) == 0) {
			if (raises_rights(fd, path))
				why = "runs with more rights than yours (setuid, setgid or file "
				      "capabilities), so the preload library cannot reach it and "
				      "it "
				      "will use the kernel's System V IPC; run it as the user it "
				      "changes to";
			else
				why = elf_out_of_reach(fd, head, ret_dies);
			close(fd);
			return why;
		}
		close(fd);
		if (n < 3 || head[0] != '#' || head[1] != '!')
			return NULL;
		head[n] = 0;
		char *name = (char *)head + 2;
		name += strspn(name, " \t");
		name[strcspn(name, " \t\n")] = 0;
		memcpy(script, name, strlen(name) + 1);
		path = script;
	}
	return NULL;
}
