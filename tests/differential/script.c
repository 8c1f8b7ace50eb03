// SPDX-License-Identifier: MIT
/*
 * Scripts as text:
 *
 *	threads 2 1 1
 *	w0 semget key=1 nsems=2 flags=CREAT|0600 to=s0
 *	w2 semop id=s0 ops=0:-1:UNDO,1:+2
 *	w0 kill
 *
 * A parameter that has its plain value is not written, unless it is one of the first three
 * arguments. Everything here follows from the
 * families' tables of operations.
 */
#include "script.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char *const by_names[] = {"self", "child", "killed-child", "handler"};

void script_free(struct script *script)
{
	free(script->steps);
	memset(script, 0, sizeof(*script));
}

void script_append(struct script *script, const struct step *step)
{
	if (script->count == script->capacity) {
		size_t capacity = script->capacity ? script->capacity * 2 : 64;
		struct step *steps = realloc(script->steps, capacity * sizeof(*steps));

		if (!steps)
			abort();
		script->steps = steps;
		script->capacity = capacity;
	}
	script->steps[script->count++] = *step;
}

void script_copy(struct script *to, const struct script *from)
{
	script_free(to);
	*to = *from;
	to->steps = NULL;
	to->count = to->capacity = 0;
	for (size_t ix = 0; ix < from->count; ix++)
		script_append(to, &from->steps[ix]);
}

unsigned script_worker_count(const struct script *script)
{
	unsigned count = 0;

	for (unsigned ix = 0; ix < script->process_count; ix++)
		count += script->threads[ix];
	return count;
}

static void put_flags(struct text *text, int64_t value, const struct name_value *names)
{
	bool first = true;

	for (; names->name; names++) {
		if (!(value & names->value))
			continue;
		text_printf(text, "%s%s", first ? "" : "|", names->name);
		value &= ~(int64_t)names->value;
		first = false;
	}
	if (value || first)
		text_printf(text, "%s0%" PRIo64, first ? "" : "|", (uint64_t)value);
}

static void put_list(struct text *text, const struct step *step, const struct name_value *names)
{
	if (step->item_count == 0)
		text_puts(text, "-");
	for (unsigned ix = 0; ix < step->item_count; ix++) {
		const struct item *item = &step->item[ix];

		text_printf(text, "%s%d:%+d", ix ? "," : "", item->num, item->value);
		if (item->flags) {
			text_puts(text, ":");
			put_flags(text, item->flags, names);
		}
	}
}

static void put_param(struct text *text, const struct step *step, const struct param *param)
{
	int64_t value = step->arg[param->arg_ix];

	if (param->kind == PARAM_LIST) {
		/* No list and an empty one are the same. */
		if (step->item_count == 0 && strcmp(param->name, "ops"))
			return;
	} else if (value == param->plain && param->kind != PARAM_ID && param->kind != PARAM_SLOT &&
		   param->kind != PARAM_FLAGS && param->arg_ix > 2) {
		return;
	}
	text_printf(text, " %s=", param->name);
	switch (param->kind) {
	case PARAM_ID:
		if (value == ID_NEGATIVE)
			text_puts(text, "negative");
		else if (value == ID_NEVER)
			text_puts(text, "never");
		else
			text_printf(text, "s%" PRId64, value);
		break;
	case PARAM_SLOT:
		text_printf(text, "s%" PRId64, value);
		break;
	case PARAM_FLAGS:
		put_flags(text, value, param->names);
		break;
	case PARAM_LIST:
		put_list(text, step, param->names);
		break;
	case PARAM_OCTAL:
		text_printf(text, "0%" PRIo64, (uint64_t)value);
		break;
	case PARAM_CHOICE:
	case PARAM_POINTER:
		for (const struct name_value *name = param->names; name->name; name++) {
			if (name->value != value)
				continue;
			text_puts(text, name->name);
			return;
		}
		text_putd(text, value);
		break;
	case PARAM_INT:
		text_putd(text, value);
		break;
	}
}

void script_put_step(struct text *text, const struct step *step)
{
	const struct op *op = step_op(step);

	text_printf(text, "w%u %s", step->worker_ix, op->name);
	for (const struct param *param = op->params; param->name; param++)
		put_param(text, step, param);
	if (step->by != BY_SELF)
		text_printf(text, " by=%s", by_names[step->by]);
	if (step->quiet)
		text_puts(text, " look=no");
}

void script_write(FILE *file, const struct script *script)
{
	char line[512];
	struct text text = TEXT_ON(line);

	if (script->seed)
		fprintf(file, "seed %" PRIu64 "\n", script->seed);
	fprintf(file, "threads");
	for (unsigned ix = 0; ix < script->process_count; ix++)
		fprintf(file, " %u", script->threads[ix]);
	fprintf(file, "\n");
	for (size_t ix = 0; ix < script->count; ix++) {
		text_clear(&text);
		script_put_step(&text, &script->steps[ix]);
		fprintf(file, "%s\n", line);
	}
}

static bool parse_int(const char *word, int64_t *ret_value)
{
	char *end;

	errno = 0;
	*ret_value = strtoll(word, &end, 0);
	return end != word && *end == '\0' && errno == 0;
}

/* Names joined by |, numbers among them. */
static bool parse_flags(char *word, const struct name_value *names, int64_t *ret_value)
{
	char *state = NULL;
	int64_t sum = 0;

	for (char *part = strtok_r(word, "|", &state); part; part = strtok_r(NULL, "|", &state)) {
		const struct name_value *name = names;
		int64_t value;

		while (name->name && strcmp(name->name, part))
			name++;
		if (name->name)
			value = name->value;
		else if (!parse_int(part, &value))
			return false;
		sum |= value;
	}
	*ret_value = sum;
	return true;
}

static bool parse_list(char *word, const struct name_value *names, struct step *step)
{
	char *state = NULL;

	step->item_count = 0;
	if (!strcmp(word, "-"))
		return true;
	for (char *part = strtok_r(word, ",", &state); part; part = strtok_r(NULL, ",", &state)) {
		struct item *item = &step->item[step->item_count];
		int64_t flags = 0;
		int used = 0;

		if (step->item_count == ITEMS_MAX ||
		    sscanf(part, "%d:%d%n", &item->num, &item->value, &used) < 2)
			return false;
		if (part[used] == ':' && !parse_flags(part + used + 1, names, &flags))
			return false;
		item->flags = (int32_t)flags;
		step->item_count++;
	}
	return true;
}

static bool parse_value(char *word, const struct param *param, struct step *step)
{
	int64_t *value = &step->arg[param->arg_ix];

	switch (param->kind) {
	case PARAM_ID:
	case PARAM_SLOT:
		if (!strcmp(word, "negative"))
			*value = ID_NEGATIVE;
		else if (!strcmp(word, "never"))
			*value = ID_NEVER;
		else
			return word[0] == 's' && parse_int(word + 1, value) && *value >= 0 &&
			       *value < SLOTS_MAX;
		return true;
	case PARAM_FLAGS:
		return parse_flags(word, param->names, value);
	case PARAM_LIST:
		return parse_list(word, param->names, step);
	case PARAM_CHOICE:
	case PARAM_POINTER:
		for (const struct name_value *name = param->names; name->name; name++) {
			if (strcmp(name->name, word))
				continue;
			*value = name->value;
			return true;
		}
		return parse_int(word, value);
	default:
		return parse_int(word, value);
	}
}

static bool parse_assignment(char *word, struct step *step)
{
	char *equals = strchr(word, '=');

	if (!equals)
		return false;
	*equals = '\0';
	if (!strcmp(word, "by")) {
		for (unsigned ix = 0; ix < sizeof(by_names) / sizeof(by_names[0]); ix++)
			if (!strcmp(by_names[ix], equals + 1))
				step->by = (uint8_t)ix;
		return true;
	}
	if (!strcmp(word, "look")) {
		step->quiet = !strcmp(equals + 1, "no");
		return true;
	}
	for (const struct param *param = step_op(step)->params; param->name; param++)
		if (!strcmp(param->name, word))
			return parse_value(equals + 1, param, step);
	return false;
}

static bool find_op(const char *word, struct step *step)
{
	for (unsigned family_ix = 0; family_ix < families_count; family_ix++) {
		for (unsigned ix = 0; ix < families[family_ix]->op_count; ix++) {
			if (strcmp(families[family_ix]->ops[ix].name, word))
				continue;
			step->family_ix = (uint8_t)family_ix;
			step->op_ix = (uint8_t)ix;
			return true;
		}
	}
	return false;
}

static bool parse_step(char *line, struct step *step)
{
	char *state = NULL;
	char *worker = strtok_r(line, " \t\n", &state);
	char *name = strtok_r(NULL, " \t\n", &state);
	int64_t worker_ix;

	memset(step, 0, sizeof(*step));
	if (!name || worker[0] != 'w' || !parse_int(worker + 1, &worker_ix) || worker_ix < 0 ||
	    worker_ix >= WORKERS_MAX || !find_op(name, step))
		return false;
	step->worker_ix = (uint8_t)worker_ix;
	for (const struct param *param = step_op(step)->params; param->name; param++)
		if (param->kind != PARAM_LIST)
			step->arg[param->arg_ix] = param->plain;
	for (char *word; (word = strtok_r(NULL, " \t\n", &state)) != NULL;)
		if (!parse_assignment(word, step))
			return false;
	return true;
}

bool script_read(FILE *file, struct script *ret_script)
{
	char line[512], copy[512];
	unsigned number = 0;

	memset(ret_script, 0, sizeof(*ret_script));
	while (fgets(line, sizeof(line), file)) {
		struct step step;
		char *at = line + strspn(line, " \t");

		number++;
		text_copy(copy, sizeof(copy), line);
		if (*at == '\n' || *at == '#') {
			continue;
		} else if (!strncmp(at, "seed ", 5)) {
			ret_script->seed = strtoull(at + 5, NULL, 0);
		} else if (!strncmp(at, "threads ", 8)) {
			ret_script->process_count = 0;
			for (at += 8; ret_script->process_count < WORKERS_MAX; at++) {
				if (isdigit((unsigned char)*at))
					ret_script->threads[ret_script->process_count++] =
						(unsigned)(*at - '0');
				else if (*at != ' ')
					break;
			}
		} else if (parse_step(at, &step)) {
			script_append(ret_script, &step);
		} else {
			fprintf(stderr, "line %u: cannot read: %s", number, copy);
			return false;
		}
	}
	if (ret_script->process_count == 0 || script_worker_count(ret_script) > WORKERS_MAX) {
		fprintf(stderr, "no line 'threads', or too many of them\n");
		return false;
	}
	return true;
}

/*
 * Simplification. Variants are numbered by counting down while walking through everything that
 * could be simplified; the one at which the count ends is made.
 */
static bool here(unsigned *countdown)
{
	return (*countdown)-- == 0;
}

static bool simplify_item(struct step *step, unsigned ix, unsigned *countdown)
{
	struct item *item = &step->item[ix];

	if (here(countdown)) {
		memmove(item, item + 1, (step->item_count - ix - 1) * sizeof(*item));
		step->item_count--;
		return true;
	}
	for (int32_t rest = item->flags; rest; rest &= rest - 1) {
		if (here(countdown)) {
			item->flags &= ~(rest & -rest);
			return true;
		}
	}
	if ((item->value > 1 || item->value < -1) && here(countdown)) {
		item->value = item->value < 0 ? -1 : 1;
		return true;
	}
	if ((item->value > 2 || item->value < -2) && here(countdown)) {
		item->value /= 2;
		return true;
	}
	if (item->num > 0 && here(countdown)) {
		item->num = 0;
		return true;
	}
	return false;
}

static bool simplify_param(struct step *step, const struct param *param, unsigned *countdown)
{
	int64_t *value = &step->arg[param->arg_ix];

	if (param->kind == PARAM_LIST) {
		for (unsigned ix = 0; ix < step->item_count; ix++)
			if (simplify_item(step, ix, countdown))
				return true;
		return false;
	}
	if (param->kind == PARAM_FLAGS) {
		for (const struct name_value *name = param->names; name->name; name++) {
			if ((*value & name->value) && here(countdown)) {
				*value &= ~(int64_t)name->value;
				return true;
			}
		}
	}
	if (param->kind == PARAM_SLOT || param->kind == PARAM_ID)
		return false;
	if (*value != param->plain && here(countdown)) {
		*value = param->plain;
		return true;
	}
	if (param->kind == PARAM_INT && *value > 1 && here(countdown)) {
		*value = 1;
		return true;
	}
	return false;
}

bool script_simplify(const struct step *step, unsigned variant, struct step *ret_step)
{
	unsigned countdown = variant;

	*ret_step = *step;
	if (step->by != BY_SELF && here(&countdown)) {
		ret_step->by = BY_SELF;
		return true;
	}
	if (step->quiet && here(&countdown)) {
		ret_step->quiet = 0;
		return true;
	}
	for (unsigned ix = 0; ix < step->worker_ix; ix++) {
		if (here(&countdown)) {
			ret_step->worker_ix = (uint8_t)ix;
			return true;
		}
	}
	for (const struct param *param = step_op(step)->params; param->name; param++)
		if (simplify_param(ret_step, param, &countdown))
			return true;
	return false;
}
