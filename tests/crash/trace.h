/* SPDX-License-Identifier: MIT */
/*
 * One thing done to a region, with a look at it after each instruction that changed it: in a child
 * which shares the region and is stepped by ptrace; or in this process, after each store.
 *
 * The latter is by page protection: the region is read-only meanwhile; a store faults, the handler
 * opens the page and sets the trap flag, the trap after that one instruction looks and closes it
 * again. All that lies between two stores runs at full speed, and no death there leaves anything
 * else than the last store did. The kernel itself writes nothing to the region for the engine but
 * pages that it makes or takes away, and their contents nobody knows.
 */
#ifndef TESTS_CRASH_TRACE_H
#define TESTS_CRASH_TRACE_H

#include <sys/types.h>

#include "stepper.h"

/* Is stepping by stores possible on this machine's processor? */
extern const bool trace_knows_stores;

/* `steps` instructions or stores have been done, and the region is not as it was. */
typedef void trace_fn(void *context, uint64_t steps);

/*
 * Does f(c). `seen` becomes a copy of c->e's region, renewed after each change, upon which at() is
 * called; at() writes to other regions only. Returns the number of steps. By ptrace it is 0 where
 * processes cannot be stepped, and by stores c's region is changed afterwards, as by ptrace.
 */
uint64_t trace_instructions(void (*f)(struct cast *), struct cast *c, struct engine *seen,
			    trace_fn *at, void *context);
uint64_t trace_stores(void (*f)(struct cast *), struct cast *c, struct engine *seen, trace_fn *at,
		      void *context);

#endif
