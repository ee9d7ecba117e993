/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Stays: a task that waits is left for a while to the CPUs that share a cache with the one where
 * it last ran, though others idle.
 *
 *   stay = stay_llc, beyond the last-level cache
 *        + stay_node, beyond the memory node
 *
 * A move costs what has to be fetched anew, and waiting costs what could have been done. Who pays
 * by waiting until that has cost as much as the move, and then moves, pays at most twice what it
 * had to, whatever comes (the ski-rental problem). So waits add up while a task is where it is,
 * and begin anew when it has gone far. A CPU elsewhere that would idle takes the first of a queue
 * once that has waited for its stay in all, and until then
 *
 *   a task that wakes up takes an idle CPU near the one where it last ran, or near the one that
 *   wakes it, and waits if there is none (one that has stayed takes any)
 *   a CPU that goes idle leaves the task alone
 *   the CPU where it waits looks at each tick whether its time has come, and wakes an idle one
 *
 * so no CPU idles beside the first of a queue that has waited for longer than its stay and a tick.
 * (If the CPU that is woken for it finds another that goes first, it is the next tick.) Who has
 * something else to run goes by rank alone. Nobody stays who has not run yet, whose place a plan or
 * a declaration says, who waits in a bound queue, or where a higher class has the CPU, which then
 * does not tick.
 */
#ifndef HEARTH_STAYS_H
#define HEARTH_STAYS_H

/* For how long a CPU that idles leaves what waits for another alone; 0 if they are near. */
static __always_inline u64 stay_of(s32 from, s32 cpu)
{
	u64 stay = 0;

	if (domain_of(from) != domain_of(cpu))
		stay += policy.stay_llc_ns;
	if (node_of(from) != node_of(cpu))
		stay += policy.stay_node_ns;
	return stay;
}

/* At the start: whether any CPUs are far from each other. */
static __always_inline void stays_find(void)
{
	struct hearth_shape *whole = shape_at(0);
	u32 i;

	sums.stays = false;
	bpf_for(i, 0, topology.nr_online) {
		if (stay_of(whole->member[0], whole->member[i & (HEARTH_MAX_CPUS - 1)]))
			sums.stays = true;
	}
}

/* For how long a task has waited by now. Clocks of CPUs may be a little apart. */
static __always_inline u64 waited_since(u64 since)
{
	u64 now = scx_bpf_now();

	return is_before(now, since) ? 0 : now - since;
}

/* A task comes to wait, or has been waiting and goes to another queue. */
static __always_inline void stay_begin(struct hearth_task *tc, bool has_waited)
{
	if (!sums.stays)
		return;
	if (tc->last_cpu < 0 || is_placed(tc))
		tc->waits_since = 0;
	else if (!has_waited)
		tc->waits_since = scx_bpf_now() - tc->waited_ns;
}

/* It runs, on a CPU where it may have come from afar. */
static __always_inline void stay_note(struct hearth_task *tc, s32 from, s32 cpu, bool has_waited)
{
	if (!sums.stays)
		return;
	if (from < 0 || stay_of(from, cpu))
		tc->waited_ns = 0;
	else if (has_waited && tc->waits_since)
		tc->waited_ns = waited_since(tc->waits_since);
}

/* Whether a task that waits in a CPU's shared queue is left to those near it. */
static __always_inline bool is_staying(struct hearth_task *tc, s32 cpu)
{
	return sums.stays && tc->waits_since && !cpu_ctx(cpu)->is_held;
}

/* Whether the first of a CPU's shared queue is left to others by this one, which would idle. */
static __always_inline bool is_left_to_others(s32 from, s32 cpu)
{
	u64 stay;

	if (!sums.stays || !cpu_ctx(cpu)->would_idle || cpu_ctx(from)->is_held)
		return false;
	stay = stay_of(from, cpu);
	return stay && waited_since(queue_ctx(shared_queue(from))->head_since) < stay;
}

#endif
