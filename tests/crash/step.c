// SPDX-License-Identifier: MIT
/*
 * Death at every instruction of every operation (stepper.h).
 *
 *   step-O0, step-O2 [-s SECONDS] [-k SCENES] [-e EVERY] [-d DEEP] [-t TRACED] [-1] [-2] [-l] [-v]
 *                    [SCENE]
 *   step-O2 --list
 *
 * -s begins no scene after so many seconds; -k takes each so-many-th scene only, -e tries each
 * so-many-th change of the region only; -d steps the recovery for each so-many-th of these (0:
 * none), of which -t by ptrace each so-many-th (0: none); -1 single deaths only, -2 two at once
 * only; -l adds the scenes with a large region. SCENE is a part of family/operation/situation. The
 * two programs differ in how the engine was compiled.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "stepper.h"

static bool parse(struct step_options *o, int argc, char **argv)
{
	int option;

	while ((option = getopt(argc, argv, "s:k:e:d:t:12lv")) >= 0)
		switch (option) {
		case 's':
			o->end_ns = engine_now_ns() + atoi(optarg) * 1000000000ll;
			break;
		case 'k':
			o->scene_every = (uint32_t)atoi(optarg);
			break;
		case 'e':
			o->every = (uint32_t)atoi(optarg);
			break;
		case 'd':
			o->deep_every = (uint32_t)atoi(optarg);
			break;
		case 't':
			o->traced_every = (uint32_t)atoi(optarg);
			break;
		case '1':
			o->pairs = false;
			break;
		case '2':
			o->singles = false;
			break;
		case 'l':
			o->large = true;
			break;
		case 'v':
			o->verbose = true;
			break;
		default:
			return false;
		}
	o->only = argv[optind];
	return o->every != 0 && o->scene_every != 0;
}

int main(int argc, char **argv)
{
	struct step_options o = {.scene_every = 1,
				 .every = 1,
				 .deep_every = 1,
				 .traced_every = 40,
				 .singles = true,
				 .pairs = true};
	struct step_count n = {0};

	if (argc == 2 && strcmp(argv[1], "--list") == 0) {
		step_list();
		return 0;
	}
	if (!parse(&o, argc, argv))
		return 2;
	if (step_all(&o, &n) == 77) {
		puts("processes cannot be stepped here");
		return 77;
	}
	printf("%llu operations, %llu situations (%llu left out), %llu instructions and %llu "
	       "stores tried, %llu deaths, %llu of who recovers, %llu of two at once, %llu "
	       "failures\n",
	       (unsigned long long)n.operations, (unsigned long long)n.situations,
	       (unsigned long long)n.left_out, (unsigned long long)n.instructions,
	       (unsigned long long)n.stores, (unsigned long long)n.deaths,
	       (unsigned long long)n.second_deaths, (unsigned long long)n.pair_deaths,
	       (unsigned long long)n.failures);
	return n.failures || !(n.deaths + n.pair_deaths) ? 1 : 0;
}
