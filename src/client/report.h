/* SPDX-License-Identifier: MIT */
/*
 * Messages to people, on standard error, each kind once a process: "usysv: what failed, on which
 * object: why; what to do". Async-signal-safe, no stdio, never fatal.
 */
#ifndef USYSV_CLIENT_REPORT_H
#define USYSV_CLIENT_REPORT_H

#include <stdarg.h>

enum report_kind {
	REPORT_NAMESPACE, /* cannot enter or create the namespace */
	REPORT_DAMAGE,    /* the region is damaged */
	REPORT_EXEC,      /* a program that the preload cannot reach */
	REPORT_SEGMENT,   /* a segment's memory cannot be reached */
	REPORT_PLACE,     /* the namespace lies on a disk file system */
	REPORT_COUNT,
};

/* Formats %s, %d, %u, %x and %m-less: pass strerror-like text yourself (report_errno). */
void report(enum report_kind kind, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The region is damaged, in the usual words. */
void report_damage(void);

/* A short English text for an errno value, without locale or allocation. */
const char *report_errno(int error);

#endif
