/* SPDX-License-Identifier: MIT */
/*
 * A growing line of text in a buffer of fixed size. Overflow is not an error: the text ends
 * early, on both sides of a comparison at the same place.
 */
#ifndef DIFFERENTIAL_TEXT_H
#define DIFFERENTIAL_TEXT_H

#include <stddef.h>

struct text {
	char *chars;
	size_t used;
	size_t size;
};

#define TEXT_ON(array)                                                                             \
	{                                                                                          \
		.chars = (array), .used = 0, .size = sizeof(array)                                 \
	}

void text_clear(struct text *text);
void text_puts(struct text *text, const char *chars);
void text_putd(struct text *text, long number);
void text_printf(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Copies to a string, cutting what does not fit. */
void text_copy(char *to, size_t size, const char *from);

/* "0" or "-1 EAGAIN". */
void text_result(struct text *text, long ret, int err);

#endif
