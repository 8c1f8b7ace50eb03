/* SPDX-License-Identifier: MIT */
/*
 * A sequence of steps with the cast that plays it, as data and as text.
 */
#ifndef DIFFERENTIAL_SCRIPT_H
#define DIFFERENTIAL_SCRIPT_H

#include <stdio.h>

#include "step.h"

struct script {
	uint64_t seed; /* that it was generated from; 0 if unknown */
	unsigned process_count;
	unsigned threads[WORKERS_MAX]; /* of each process */
	size_t count;
	size_t capacity;
	struct step *steps;
};

void script_free(struct script *script);
void script_append(struct script *script, const struct step *step);
void script_copy(struct script *to, const struct script *from);
unsigned script_worker_count(const struct script *script);

void script_put_step(struct text *text, const struct step *step);
void script_write(FILE *file, const struct script *script);
/* Complains on stderr about what it cannot read. */
bool script_read(FILE *file, struct script *ret_script);

/* The variant-th simpler form of a step; false if there are no more. */
bool script_simplify(const struct step *step, unsigned variant, struct step *ret_step);

#endif
