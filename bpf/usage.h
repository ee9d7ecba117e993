/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Usage: how much CPU time a task has had, as the order in which tasks run.
 * The least usage runs first.
 *
 *   unix   charged one tick whenever the timer interrupts the task, halved
 *          for every task once in decay_ns (Torrellas, Tucker and Gupta,
 *          section 4: prio = base + cpu / 2, one point being 20 ms of CPU
 *          time). A task that blocks before the tick is not charged, and
 *          comes first when it wakes.
 *   fair   virtual time: charged exactly, over weight, never forgotten. A task
 *          that slept is moved up to no further behind the clock than a task
 *          that did not may be, so that sleep is not saved.
 *
 * Halving is lazy: a global epoch counts the decays, each task knows the epoch
 * of its usage. Tasks in a queue keep their order (halving keeps it); only
 * tasks of different epochs compare wrongly, so a queue is put in order anew
 * once an epoch: queues.h.
 */
#ifndef HEARTH_USAGE_H
#define HEARTH_USAGE_H

/* unix: decays so far, and when the next one is due. */
u64 epoch;
static u64 next_decay;
/* fair: the virtual clock, the greatest usage so far. */
static u64 clock_usage;

static __always_inline u64 decayed(u64 usage, u64 usage_epoch)
{
	u64 age;

	if (policy.discipline == HEARTH_FAIR)
		return usage;
	age = epoch - usage_epoch;
	return age < 64 ? usage >> age : 0;
}

static __always_inline u64 usage_of(struct task_ctx *tc)
{
	if (policy.discipline == HEARTH_FAIR)
		return tc->usage;
	tc->usage = decayed(tc->usage, tc->epoch);
	tc->epoch = epoch;
	return tc->usage;
}

static __always_inline void usage_charge(struct task_ctx *tc, u64 ns)
{
	tc->usage = usage_of(tc) + (ns * tc->inverse_weight >> 16);
}

/* fair: charges a task for what it ran since it was last charged, by the kernel's
 * own account: at ticks, and whenever its usage is about to count. */
static __always_inline void usage_update(struct task_struct *p, struct task_ctx *tc)
{
	u64 ran_ns = p->se.sum_exec_runtime;

	if (policy.discipline != HEARTH_FAIR)
		return;
	usage_charge(tc, ran_ns - tc->charged_ns);
	tc->charged_ns = ran_ns;
	if (tc->usage > clock_usage)
		clock_usage = tc->usage;
}

/* unix: the timer interrupts a running task. */
static __always_inline void usage_tick(struct task_struct *p, struct task_ctx *tc)
{
	u64 now;

	usage_update(p, tc);
	if (policy.discipline != HEARTH_UNIX)
		return;
	now = scx_bpf_now();
	if (now >= next_decay) {
		if (next_decay)
			epoch++;
		next_decay = now + policy.decay_ns;
	}
	usage_charge(tc, policy.tick_ns);
}

/* fair: a task comes back from sleep. Being behind by its credits and a quantum
 * is what may happen to any task that never sleeps; more is forgotten. */
static __always_inline void usage_wake(struct task_ctx *tc)
{
	u64 lag = policy.quantum_ns + policy.time_ns + policy.processor_ns + policy.llc_ns +
		  policy.node_ns;

	if (policy.discipline == HEARTH_FAIR && tc->usage + lag < clock_usage)
		tc->usage = clock_usage - lag;
}

#endif
