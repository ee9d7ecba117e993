/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Usage: how much CPU time a task has had, as the order in which tasks run. The least usage runs
 * first. It is virtual time: charged exactly, over weight, and not forgotten, but compared only as
 * far as it can matter. A yield counts as a quantum. (The papers have others: papers/decay.h.)
 *
 * Each CPU has a clock, the greatest usage with which a task began to run there. A task that comes
 * to a CPU counts as
 *
 *   behind its clock by at most   if it
 *     sums.lag_limit                was there
 *     sums.slept                    slept: so sleep is not saved
 *     sums.foreign                  waited for another CPU
 *   ahead of it by at most
 *     its own ahead_ns              was there: a slice of its own
 *     nothing                       waited for another CPU
 *
 * each over its weight, if that is more than the common one. So a task whose mask sends it to a
 * crowded CPU does not wait for what the others did not get before it came.
 *
 * One that slept begins at the clock (sums.slept is 0). So who wakes comes after those that wait,
 * in the order in which they came, and before those that have asked for a quantum (preempt.h).
 *
 * Usages on two CPUs compare only as long as their clocks say who had less to do. A CPU that idles
 * does not fall behind: its clock goes with those of busy ones. And a CPU where nobody waits has no
 * right to be behind by more than sums.lag_limit one where somebody does.
 */
#ifndef HEARTH_USAGE_H
#define HEARTH_USAGE_H

#include "hooks.h"

/* Charges a task for what it ran since it was last charged, by the kernel's own account: at ticks,
 * and whenever its usage is about to count. */
static __always_inline void usage_update(struct task_struct *p, struct hearth_task *tc)
{
	u64 ran_ns = p->se.sum_exec_runtime;

	if (!is_virtual_time() || ran_ns == tc->charged_ns)
		return;
	tc->usage += (ran_ns - tc->charged_ns) * tc->inverse_weight >> 16;
	tc->charged_ns = ran_ns;
}

static __always_inline void usage_tick(struct task_struct *p, struct hearth_task *tc)
{
	usage_update(p, tc);
	usage_tick_more(tc);
}

/* A usage that is behind a clock by no more than `lag`. */
static __always_inline u64 no_further_behind(u64 usage, u64 clock, u64 lag)
{
	return usage + lag < clock ? clock - lag : usage;
}

/* A usage as it counts on a CPU. */
static __always_inline u64 usage_raised(u64 usage, s32 cpu, u64 lag)
{
	u64 clock = cpu_ctx(cpu)->clock;

	return is_virtual_time() ? no_further_behind(usage, clock, lag) : usage;
}

/* A task comes to a CPU, a new one to its clock. Where it ran last it may be ahead of that up to
 * `most_here`. */
static __always_inline void usage_come(struct hearth_task *tc, s32 cpu, u64 most_here, u64 lag)
{
	u64 clock = cpu_ctx(cpu)->clock, most = tc->last_cpu == cpu ? most_here : clock;

	if (!is_virtual_time())
		return;
	if (tc->usage > most || tc->last_cpu < 0)
		tc->usage = most;
	else
		tc->usage = no_further_behind(tc->usage, clock, weighed(lag, tc->inverse_weight));
}

/* A task is placed on a CPU that was idle. */
static __always_inline void usage_arrive(struct hearth_task *tc, s32 cpu, u64 lag)
{
	usage_come(tc, cpu, NO_USAGE, lag);
}

/* A task comes to wait for a CPU, or waits again. */
static __always_inline void usage_wait(struct hearth_task *tc, s32 cpu, u64 lag)
{
	usage_come(tc, cpu, cpu_ctx(cpu)->clock + tc->ahead_ns, lag);
}

/* A CPU looks after another, or wakes it for a task. One that idles has given its time to nobody,
 * and is behind none for it. */
static __always_inline void clock_pass(s32 cpu, s32 other)
{
	u64 ours = cpu_ctx(cpu)->clock, theirs = cpu_ctx(other)->clock;

	if (cpu_ctx(other)->is_idle && theirs < ours)
		__sync_val_compare_and_swap(&cpu_ctx(other)->clock, theirs, ours);
}

/* Where nobody waits the task that goes on has had what it wanted: it is behind the clock of a CPU
 * where somebody waits by no more than one that was always there. */
static __always_inline void usage_catch_up(struct hearth_task *tc, s32 cpu)
{
	tc->usage = no_further_behind(tc->usage, cpu_ctx(cpu)->clock_ahead,
				      weighed(sums.lag_limit, tc->inverse_weight));
}

/* The clock goes along with a task, but not with a light one that comes before its time: it may be
 * far ahead, for a slice is charged manifold, and yet run before those that wait, if they yielded
 * or it had waited for too long. */
static __always_inline void clock_go(struct hearth_task *tc, s32 cpu)
{
	if (tc->usage <= cpu_ctx(cpu)->clock)
		return;
	if (tc->inverse_weight > COMMON_INVERSE && (head_usage(shared_queue(cpu)) < tc->usage ||
						    head_usage(pinned_queue(cpu)) < tc->usage))
		return;
	cpu_ctx(cpu)->clock = tc->usage;
}

/* A task begins to run, or goes on after its slice, and the clock with it. It may have come to
 * wait before the clock was moved, or wait on another CPU. */
static __always_inline void usage_run(struct hearth_task *tc, s32 cpu, u64 lag)
{
	if (!is_virtual_time())
		return;
	tc->usage = usage_raised(tc->usage, cpu, weighed(lag, tc->inverse_weight));
	clock_go(tc, cpu);
}

#endif
