// SPDX-License-Identifier: GPL-2.0-only
/*
 * LLVM's OpenMP, and Intel's. The compiler turns a parallel region into a call of __kmpc_fork_call,
 * and a num_threads clause into a call of __kmpc_push_num_threads just before it, which holds for
 * that one region. Where there is no clause, this library makes that call. So nothing but the
 * region changes: what omp_get_max_threads() tells is the user's number before, within and after
 * it.
 *
 * OpenMP's interface for tools would serve too, by omp_set_num_threads() when a region begins. But
 * that number is seen within the region, and is not put back by the region's end where the region
 * is of one thread; and there can be one tool only, which may be the user's.
 */
#include "gate.h"

#include <stddef.h>

int __kmpc_global_thread_num(void *place);
void __kmpc_push_num_threads(void *place, int thread, int threads);

static _Thread_local bool has_clause;

static void note_clause(struct follow_gate *gate, void *real, const void *caller)
{
	(void)gate, (void)real, (void)caller;
	has_clause = true;
}

static void before_region(struct follow_gate *gate, void *real, const void *caller)
{
	static struct follow_function number = {.name = "__kmpc_global_thread_num"};
	static struct follow_function push = {.name = "__kmpc_push_num_threads"};
	__typeof__(&__kmpc_global_thread_num) get_number = follow_real(&number, caller);
	__typeof__(&__kmpc_push_num_threads) push_threads = follow_real(&push, caller);
	bool clause = has_clause;
	int most, threads;

	(void)gate, (void)real;
	has_clause = false;
	most = clause || !get_number || !push_threads ? 0 : follow_region(caller);
	if (!most)
		return;
	threads = follow_threads(HEARTH_RUNTIME_LLVM, most, caller);
	if (threads < most)
		push_threads(NULL, get_number(NULL), threads);
}

GATE(__kmpc_fork_call, before_region)
GATE(__kmpc_push_num_threads, note_clause)
GATE(__kmpc_push_num_threads_strict, note_clause)
