// SPDX-License-Identifier: GPL-2.0-only
/*
 * The preloaded library: makes the runtimes of a program have as many threads as the program can
 * get CPUs, from one parallel region, or call, to the next.
 *
 *   find.c    the function that the program would have called had this library not been there
 *   decide.c  how many threads: the published number, or the user's own where hands are off
 *   gate.c    functions that stand before others, whatever these take
 *   openmp.c  which parallel regions of OpenMP follow
 *   gnu.c     GNU's OpenMP, at the begin of a parallel region
 *   llvm.c    LLVM's OpenMP, in the same way
 *   affinity.c  the affinity clause of OpenMP's tasks, which LLVM's drops
 *   tbb.c     oneTBB, by a limit on its workers
 *   blas.c    OpenBLAS and BLIS, at the begin of the calls that use several threads
 *
 * The rule of all of them: the user's word goes first, never more threads than the user's number,
 * and what is not known is left as it is.
 */
#ifndef FOLLOW_H
#define FOLLOW_H

#include "page.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#define PUBLIC __attribute__((visibility("default")))

#define OPENMP (HEARTH_RUNTIME_GNU | HEARTH_RUNTIME_LLVM)

/* Why hands are off: `state` of the page. */
enum follow_state {
	FOLLOW_FOLLOWS = 0,
	FOLLOW_BOUND = 1, /* the program has bound threads to CPUs */
	FOLLOW_FIXED = 2, /* the user or the program has said that the number is not to change */
	FOLLOW_KEPT = 3,  /* the program keeps data in threads */
};

/*
 * How many threads a runtime is to have for a call from `caller`, where the user's number is
 * `most`: less, or `most` to leave things as they are. Asked at each parallel region, so it costs
 * some nanoseconds.
 */
int follow_threads(enum hearth_runtime runtime, int most, const void *caller);

/* How many threads the user's number gives a region of OpenMP; 0: it is to be left as it is. */
int follow_region(const void *caller);

/* The number of threads is not to change: for these runtimes, for good. */
void follow_hands_off(unsigned int runtimes, enum follow_state why);

/*
 * A function behind the one of the same name here. `global` is what the whole program sees; where
 * only some objects see it, as with a runtime that came along with a Python module, `scoped` has
 * one for each of them.
 */
struct follow_function {
	const char *name;
	_Atomic(void *) global;
	struct {
		const void *object;
		void *function;
	} scoped[4];
	_Atomic int scopes;
};

void *follow_find(struct follow_function *function, const void *caller);

/* What a call from `caller` would have reached; NULL: nothing. */
static inline void *follow_real(struct follow_function *function, const void *caller)
{
	void *real = atomic_load_explicit(&function->global, memory_order_relaxed);

	return real ? real : follow_find(function, caller);
}

/* The function that this call of `name` would have reached without this library. */
#define FOLLOW_REAL(function)                                                          \
	({                                                                             \
		static struct follow_function follow_##function = {.name = #function}; \
		(__typeof__(&function))follow_real(&follow_##function,                 \
						   __builtin_return_address(0));       \
	})

#endif
