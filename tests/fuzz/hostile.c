// SPDX-License-Identifier: MIT
/*
 * A hostile region: rounds (rounds.h) of damage and use (hostile_region.h) in a child, which may
 * die of a fault or of a round that takes no end. The round is then named.
 *
 * hostile meanwhile ...: another thread changes words and puts them back, so that what has been
 * checked once need not be so any more. Then a round depends on more than its number.
 */
#include <errno.h>
#include <pthread.h>
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
#include "fuzz/rounds.h"

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

static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void on_limit(int signal)
{
	static const char text[] = "hostile: the round takes no end\n";

	(void)signal;
	(void)!write(2, text, sizeof(text) - 1);
	abort(); /* a sanitizer then tells where */
}

static void *spoil(void *context)
{
	const struct rounds *rounds = context;
	struct choices ch = {.state = rounds_state(rounds, UINT64_MAX)};

	for (;;)
		hostile_spoil(&ch);
	return NULL;
}

_Noreturn static void play(struct rounds *rounds, uint64_t from, bool meanwhile)
{
	struct rlimit no_core = {0, 0};
	pthread_t thread;

	setrlimit(RLIMIT_CORE, &no_core);
	signal(SIGPROF, on_limit);
	if (meanwhile && pthread_create(&thread, NULL, spoil, rounds) != 0)
		abort();
	for (uint64_t n = from; rounds_go_on(rounds, n); n++) {
		struct itimerval limit = {.it_value = {ROUND_LIMIT_S, 0}};
		struct choices ch = {.state = rounds_state(rounds, n)};
		uint64_t before = cpu_ns(), spent;

		progress->round = n;
		setitimer(ITIMER_PROF, &limit, NULL);
		if (rounds->say)
			fprintf(stderr, "round %llu\n", (unsigned long long)n);
		hostile_round(&ch, rounds->say);
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

int main(int argc, char **argv)
{
	struct rounds rounds;
	uint64_t faults = 0;
	bool meanwhile;

	rounds_begin(&rounds, argc, argv, 1000);
	meanwhile = argc > optind && strcmp(argv[optind], "meanwhile") == 0;
	progress = mmap(NULL, sizeof(*progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			-1, 0);
	if (progress == MAP_FAILED || !hostile_begin())
		return 77;
	progress->round = rounds.first;
	while (!progress->finished && faults < FAULTS_MOST) {
		uint64_t from = progress->round;
		pid_t pid = fork();
		int status;

		if (pid < 0) {
			perror("fork");
			return 1;
		}
		if (pid == 0)
			play(&rounds, from, meanwhile);
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
			;
		if (progress->finished)
			break;
		faults++;
		printf("round %llu: %s; hostile --seed %llu --first %llu --rounds 1 --say%s\n",
		       (unsigned long long)progress->round,
		       WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "ended by itself",
		       (unsigned long long)rounds.seed, (unsigned long long)progress->round,
		       meanwhile ? " meanwhile" : "");
		fflush(stdout);
		progress->round++;
	}
	printf("%llu rounds, %llu bad; the slowest, %llu, took %llu ms\n",
	       (unsigned long long)(progress->round - rounds.first), (unsigned long long)faults,
	       (unsigned long long)progress->slowest,
	       (unsigned long long)progress->slowest_ns / 1000000);
	return faults ? 1 : 0;
}
