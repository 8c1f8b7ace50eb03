// SPDX-License-Identifier: MIT
/* A random test in rounds: see rounds.h. */
#include "fuzz/rounds.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

int64_t rounds_now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000ll + t.tv_nsec / 1000000;
}

static uint64_t mixed(uint64_t n)
{
	n = (n ^ n >> 30) * 0xbf58476d1ce4e5b9ull;
	n = (n ^ n >> 27) * 0x94d049bb133111ebull;
	return n ^ n >> 31;
}

uint64_t rounds_state(const struct rounds *rounds, uint64_t number)
{
	return mixed(mixed(rounds->seed) + number) | 1;
}

bool rounds_go_on(const struct rounds *rounds, uint64_t number)
{
	return number < rounds->end && rounds_now_ms() < rounds->until_ms;
}

static uint64_t number(const char *text)
{
	char *end;
	unsigned long long n;

	errno = 0;
	n = strtoull(text, &end, 0);
	if (!*text || *end || errno) {
		fprintf(stderr, "%s: '%s' is not a number\n", program_invocation_short_name, text);
		exit(2);
	}
	return n;
}

void rounds_begin(struct rounds *rounds, int argc, char **argv, uint64_t usual)
{
	static const struct option options[] = {
		{"seed", required_argument, NULL, 's'},   {"first", required_argument, NULL, 'f'},
		{"rounds", required_argument, NULL, 'r'}, {"seconds", required_argument, NULL, 't'},
		{"say", no_argument, NULL, 'y'},          {NULL, 0, NULL, 0},
	};
	uint64_t count = 0, seconds = 0;
	int c;

	*rounds = (struct rounds){.seed = (uint64_t)time(NULL) * 1000003u ^ (uint64_t)getpid()};
	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (c) {
		case 's':
			rounds->seed = number(optarg);
			break;
		case 'f':
			rounds->first = number(optarg);
			break;
		case 'r':
			count = number(optarg);
			break;
		case 't':
			seconds = number(optarg);
			break;
		case 'y':
			rounds->say = true;
			break;
		default:
			exit(2);
		}
	}
	if (!count)
		count = seconds ? UINT64_MAX - rounds->first : usual;
	rounds->end = rounds->first + count;
	rounds->until_ms = seconds ? rounds_now_ms() + (int64_t)seconds * 1000 : INT64_MAX;
	printf("seed %llu\n", (unsigned long long)rounds->seed);
	fflush(stdout);
}
