/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Credit: how much earlier a task counts on a CPU, because its data is warm
 * there. In nanoseconds of CPU time:
 *
 *   rank(task, cpu) = usage(task) - credit(task, cpu)      the smallest runs next
 *
 *   credit          granted if                                        paper
 *   time            it ran last on this CPU and nothing else since    a_t
 *   processor       this CPU is the one it last ran on                a_p
 *   llc             this CPU shares that one's last-level cache
 *   node            this CPU is on that one's memory node
 *   fragment        it lives on this CPU, and so does what ran: see fragments.h
 *
 * A credit delays a move and never forbids one, and it is bounded: no task is
 * behind its fair share by more than the sum of its credits and one slice.
 *
 * Credits are CPU time, and usage is CPU time over weight, so where a task of more than the common
 * weight ran last they are divided by its weight: a heavy task is charged little for each slice,
 * and would go on for long.
 */
#ifndef HEARTH_CREDIT_H
#define HEARTH_CREDIT_H

#include "hooks.h"

static __always_inline u64 credit_here(u64 credit, s32 cpu)
{
	return weighed(credit, cpu_ctx(cpu)->inverse_weight);
}

/* Of whichever task waits in the queue of `queue`: what `cpu` is to it. */
static __always_inline u64 credit_of_queue(s32 queue, s32 cpu)
{
	u64 credit = 0;

	if (queue == cpu)
		credit += policy.processor_ns;
	if (domain_of(queue) == domain_of(cpu))
		credit += policy.llc_ns;
	if (node_of(queue) == node_of(cpu))
		credit += policy.node_ns;
	return credit_here(credit, cpu);
}

/* Of the task that runs on a CPU: all there is. */
static __always_inline u64 running_credit(struct hearth_task *tc, s32 cpu)
{
	return credit_here(sums.own_credit, cpu) + tc->time_ns;
}

static __always_inline s64 rank(u64 usage, u64 credit)
{
	return (s64)(usage - credit);
}

#endif
