// SPDX-License-Identifier: MIT
/*
 * Death at every instruction of every operation (stepper.h).
 *
 *   step-sem [-s SECONDS] [-e EVERY] [-d DEEP_EVERY] [-l] [-v] [SCENE]
 *
 * -s begins no scene after so many seconds; -e tries each so-many-th change of the region only; -d
 * steps the recovery for each so-many-th of these (0: none); -l adds the scenes with a large
 * region.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "stepper.h"

int main(int argc, char **argv)
{
	struct step_options o = {.every = 1, .deep_every = 1};
	struct step_count n = {0};
	int option, rc;

	while ((option = getopt(argc, argv, "s:e:d:lv")) >= 0)
		switch (option) {
		case 's':
			o.end_ns = engine_now_ns() + atoi(optarg) * 1000000000ll;
			break;
		case 'e':
			o.every = (uint32_t)atoi(optarg);
			break;
		case 'd':
			o.deep_every = (uint32_t)atoi(optarg);
			break;
		case 'l':
			o.slow = true;
			break;
		case 'v':
			o.verbose = true;
			break;
		default:
			return 2;
		}
	o.only = argv[optind];
	if (o.every == 0)
		return 2;
	rc = step_all(&o, &n);
	if (rc == 77) {
		puts("processes cannot be stepped here");
		return 77;
	}
	printf("%llu scenes (%llu left out), %llu instructions, %llu deaths, %llu of recoveries, "
	       "%llu failures\n",
	       (unsigned long long)n.scenes, (unsigned long long)n.left_out,
	       (unsigned long long)n.instructions, (unsigned long long)n.deaths,
	       (unsigned long long)n.second_deaths, (unsigned long long)n.failures);
	return n.failures || !n.deaths ? 1 : 0;
}
