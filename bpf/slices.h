/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Slices: how long a task may run before its CPU looks at its queues again. The
 * kernel ends a slice at the first tick after it is used up.
 *
 *   quantum less a tick            so the quantum is the longest that a task runs unasked
 *   x slice_permille / 1000        what a plan says of the task (plans.h)
 *   x weight / common weight       for a task of less than the common weight: it is charged
 *                                  more for the same time, and would wait the longer for it
 *   round / tasks that wait        where so many wait for the CPU that a round of quanta
 *                                  would take longer than round_ns
 *
 * and never less than what ends at the next tick.
 */
#ifndef HEARTH_SLICES_H
#define HEARTH_SLICES_H

#include "hooks.h"

/* A slice that ends at the next tick. */
#define ONE_TICK 1

static __always_inline u64 slice_of_quantum(u64 quantum_ns)
{
	return quantum_ns > policy.tick_ns ? quantum_ns - policy.tick_ns : ONE_TICK;
}

static __always_inline u64 slice_of_weight(u32 weight)
{
	return weight < COMMON_WEIGHT ? slice_of_quantum(policy.quantum_ns * weight / COMMON_WEIGHT)
				      : sums.slice;
}

/* What follows from a task's weight, and from the plan. A plan that scales a task's share has its
 * time charged as if its weight were scaled. */
static __always_inline void weigh(struct hearth_task *tc, u32 weight)
{
	u64 longest_ns = policy.quantum_ns + 2 * policy.tick_ns;
	u64 permille = (u64)weight * tc->share_permille;

	tc->weight = weight;
	tc->inverse_weight = COMMON_WEIGHT * 1000ull * COMMON_INVERSE / permille;
	tc->slice_ns = slice_of_weight(weight);
	if (tc->slice_permille != 1000)
		tc->slice_ns = slice_of_quantum((tc->slice_ns + policy.tick_ns) *
						tc->slice_permille / 1000);
	tc->time_ns = permille > COMMON_WEIGHT * 1000 ? policy.time_ns * tc->inverse_weight >> 16
						      : policy.time_ns;
	tc->ahead_ns =
		weighed(sums.foreign, tc->inverse_weight) + (longest_ns * tc->inverse_weight >> 16);
}

/* Tasks that wait in a CPU's own queues. */
static __always_inline s64 queued_at(s32 cpu)
{
	return queue_ctx(cpu)->waiting + queue_ctx(pinned_queue(cpu))->waiting;
}

/* Tasks that wait for a CPU: all in a queue of all, too, for their masks may have this one alone.
 */
static __always_inline s64 waiting_at(s32 cpu)
{
	return queued_at(cpu) + run_queue_waiting();
}

/* Whether a task's own slice is too long where so many wait. */
static __always_inline bool is_crowd(s64 waiting)
{
	return waiting > (s64)sums.crowd;
}

static __always_inline u64 slice_of(struct hearth_task *tc, s32 cpu)
{
	s64 waiting = waiting_at(cpu);
	u64 slice;

	if (!is_crowd(waiting))
		return tc->slice_ns;
	slice = slice_of_quantum(sums.round_ns / (u64)waiting);
	return slice < tc->slice_ns ? slice : tc->slice_ns;
}

#endif
