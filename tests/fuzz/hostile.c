// SPDX-License-Identifier: MIT
/*
 * A hostile region: rounds of damage and use (hostile_region.h) in a child, which may die of a
 *fault or of a round that takes no end. The round is then named: it depends on seed and number
 *alone.
 *
 *	hostile [--seed N] [--first N] [--rounds N] [--seconds N] [--say]
 */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fuzz/hostile_region.h"

/* A round takes a millisecond; what needs so much of a CPU's time does not end. */
#ifndef ROUND_LIMIT_S
#define ROUND_LIMIT_S 20
#endif
#ifndef FAULTS_MOST
#define FAULTS_MOST 10u
#endif

static volatile struct {
	uint64_t round;
	uint64_t slowest, slowest_ns; /* by the CPU's time */
	bool finished;
} * progress;

static uint64_t now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec;
}

static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t mixed(uint64_t n)
{
	n = (n ^ n >> 30) * 0xbf58476d1ce4e5b9ull;
	n = (n ^ n >> 27) * 0x94d049bb133111ebull;
	return n ^ n >> 31;
}

static void on_limit(int signal)
{
	static const char text[] = "hostile: the round takes no end\n";

	(void)signal;
	(void)!write(2, text, sizeof(text) - 1);
	abort(); /* a sanitizer then tells where */
}

_Noreturn static void rounds(uint64_t seed, uint64_t first, uint64_t end, uint64_t until, bool say)
{
	struct rlimit no_core = {0, 0};

	setrlimit(RLIMIT_CORE, &no_core);
	signal(SIGPROF, on_limit);
	for (uint64_t n = first; n < end && now_s() < until; n++) {
		struct itimerval limit = {.it_value = {ROUND_LIMIT_S, 0}};
		struct choices ch = {.state = mixed(mixed(seed) + n) | 1};
		uint64_t before = cpu_ns(), spent;

		progress->round = n;
		setitimer(ITIMER_PROF, &limit, NULL);
		if (say)
			fprintf(stderr, "round %llu\n", (unsigned long long)n);
		hostile_round(&ch, say);
		spent = cpu_ns() - before;
		if (spent > progress->slowest_ns) {
			progress->slowest = n;
			progress->slowest_ns = spent;
		}
	}
	progress->round++;
	progress->finished = true;
	fflush(NULL);
	_exit(0);
}

static uint64_t number(const char *text)
{
	char *end;
	unsigned long long n;

	errno = 0;
	n = strtoull(text, &end, 0);
	if (!*text || *end || errno) {
		fprintf(stderr, "hostile: '%s' is not a number\n", text);
		exit(1);
	}
	return n;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"seed", required_argument, NULL, 's'},   {"first", required_argument, NULL, 'f'},
		{"rounds", required_argument, NULL, 'r'}, {"seconds", required_argument, NULL, 't'},
		{"say", no_argument, NULL, 'y'},          {NULL, 0, NULL, 0},
	};
	uint64_t seed = (uint64_t)time(NULL) * 1000003u ^ (uint64_t)getpid(), first = 0, count = 0;
	uint64_t seconds = 0, faults = 0, until, end;
	bool say = false;
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (c) {
		case 's':
			seed = number(optarg);
			break;
		case 'f':
			first = number(optarg);
			break;
		case 'r':
			count = number(optarg);
			break;
		case 't':
			seconds = number(optarg);
			break;
		case 'y':
			say = true;
			break;
		default:
			return 1;
		}
	}
	if (!count)
		count = seconds ? UINT64_MAX - first : 1000;
	end = first + count;
	until = seconds ? now_s() + seconds : UINT64_MAX;
	printf("seed %llu\n", (unsigned long long)seed);
	fflush(stdout);
	progress = mmap(NULL, sizeof(*progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			-1, 0);
	if (progress == MAP_FAILED || !hostile_begin())
		return 77;
	progress->round = first;
	while (!progress->finished && faults < FAULTS_MOST) {
		uint64_t from = progress->round;
		pid_t pid = fork();
		int status;

		if (pid < 0) {
			perror("fork");
			return 1;
		}
		if (pid == 0)
			rounds(seed, from, end, until, say);
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
			;
		if (progress->finished)
			break;
		faults++;
		printf("round %llu: %s; hostile --seed %llu --first %llu --rounds 1 --say\n",
		       (unsigned long long)progress->round,
		       WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "ended by itself",
		       (unsigned long long)seed, (unsigned long long)progress->round);
		fflush(stdout);
		progress->round++;
	}
	printf("%llu rounds, %llu bad; the slowest, %llu, took %llu ms\n",
	       (unsigned long long)(progress->round - first), (unsigned long long)faults,
	       (unsigned long long)progress->slowest,
	       (unsigned long long)progress->slowest_ns / 1000000);
	return faults ? 1 : 0;
}
