/* SPDX-License-Identifier: MIT */
/*
 * Numbers as text, and files of the kernel's that are text (/proc). Async-signal-safe; leaves errno
 * alone.
 */
#ifndef USYSV_BASE_TEXT_H
#define USYSV_BASE_TEXT_H

#include <stddef.h>
#include <stdint.h>

/* Writes a number in decimal, at most 20 digits, and a 0 behind it; where that is. */
char *text_put_number(char *to, uint64_t n);

/* The path by which the file of a descriptor of the calling thread's can be opened again. */
#define TEXT_DESCRIPTOR_BYTES 48
void text_put_descriptor(char to[TEXT_DESCRIPTOR_BYTES], int fd);

/* The first so many bytes of a file, less one, as a string. Their number, or -errno. */
long text_read(const char *path, char *to, size_t bytes);

/* A file to be read character by character. */
struct text_file {
	long fd;
	long error; /* -errno of what failed; 0: nothing, so far */
	long at, length;
	char buffer[2048];
};

/* 0 or -errno. */
int text_open(struct text_file *f, const char *path);
void text_close(struct text_file *f);

/* The next character; -1: there is none, or f->error says why that is not known. */
int text_next(struct text_file *f);

#endif
