// SPDX-License-Identifier: MIT
/* The property of hostile_region.h for libFuzzer: the input is the choices. */
#include <stdlib.h>

#include "fuzz/hostile_region.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc, (void)argv;
	if (!hostile_begin())
		exit(77);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct choices ch = {.data = data, .left = size};

	hostile_round(&ch, false);
	return 0;
}
