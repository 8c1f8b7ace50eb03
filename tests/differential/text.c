// SPDX-License-Identifier: MIT
/*
 * Building of the texts that are compared. text_puts and text_putd exist beside text_printf
 * because the whole state of all objects is written twice for every step.
 */
#include "text.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void text_clear(struct text *text)
{
	text->used = 0;
	text->chars[0] = '\0';
}

void text_puts(struct text *text, const char *chars)
{
	while (*chars && text->used + 1 < text->size)
		text->chars[text->used++] = *chars++;
	text->chars[text->used] = '\0';
}

void text_putd(struct text *text, long number)
{
	char digits[24];
	unsigned at = sizeof(digits) - 1;
	unsigned long rest = number < 0 ? 0UL - (unsigned long)number : (unsigned long)number;

	digits[at] = '\0';
	do {
		digits[--at] = (char)('0' + rest % 10);
		rest /= 10;
	} while (rest);
	if (number < 0)
		digits[--at] = '-';
	text_puts(text, digits + at);
}

void text_printf(struct text *text, const char *format, ...)
{
	va_list arguments;
	int wanted;

	va_start(arguments, format);
	wanted = vsnprintf(text->chars + text->used, text->size - text->used, format, arguments);
	va_end(arguments);
	if (wanted <= 0)
		return;
	text->used += (size_t)wanted;
	if (text->used >= text->size)
		text->used = text->size - 1;
}

void text_copy(char *to, size_t size, const char *from)
{
	size_t length = strnlen(from, size - 1);

	memcpy(to, from, length);
	to[length] = '\0';
}

void text_result(struct text *text, long ret, int err)
{
	const char *name;

	text_putd(text, ret);
	if (ret >= 0)
		return;
	text_puts(text, " ");
	switch (err) {
	case EPERM:
		name = "EPERM";
		break;
	case ENOENT:
		name = "ENOENT";
		break;
	case EINTR:
		name = "EINTR";
		break;
	case E2BIG:
		name = "E2BIG";
		break;
	case EAGAIN:
		name = "EAGAIN";
		break;
	case ENOMEM:
		name = "ENOMEM";
		break;
	case EACCES:
		name = "EACCES";
		break;
	case EFAULT:
		name = "EFAULT";
		break;
	case EEXIST:
		name = "EEXIST";
		break;
	case EINVAL:
		name = "EINVAL";
		break;
	case EFBIG:
		name = "EFBIG";
		break;
	case ENOSPC:
		name = "ENOSPC";
		break;
	case ERANGE:
		name = "ERANGE";
		break;
	case ENOSYS:
		name = "ENOSYS";
		break;
	case ENOMSG:
		name = "ENOMSG";
		break;
	case EIDRM:
		name = "EIDRM";
		break;
	case ENOTRECOVERABLE:
		name = "ENOTRECOVERABLE";
		break;
	default:
		text_printf(text, "errno %d", err);
		return;
	}
	text_puts(text, name);
}
