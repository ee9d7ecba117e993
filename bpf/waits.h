/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Waits: no task waits for longer than half of the time after which the kernel's
 * watchdog ends the scheduler, whatever its rank.
 *
 * Usage over weight, credits and classes can ask for any wait: a task of weight 1
 * beside one of weight 10,000 deserves a slice in minutes. So a task that has waited
 * for three tenths of that time goes first: a tick finds it, and from then on its CPU takes the
 * one that has waited longest, at each dispatch, until none is left. Slices are such that a round
 * takes a tenth at most (slices.h), so
 *
 *   wait <= patience + round + a slice and a tick
 *
 * as long as a tick for each that waits is less than a round.
 *
 * A CPU that a higher class holds takes nothing. What waits there is taken by others, as far as
 * it may run there, each of which looks at one other CPU's queues a tick.
 *
 * Nothing is searched as long as nobody is late. Each queue keeps a time before which
 * none of its tasks can have come: that of the first to come to it while it was empty.
 * When that is long ago the queue is walked once, and the time becomes that of the
 * task that really has waited longest. Times are the kernel's own, which its watchdog
 * goes by: p->scx.runnable_at, in jiffies; a jiffy is a tick.
 */
#ifndef HEARTH_WAITS_H
#define HEARTH_WAITS_H

#include "queues.h"
#include "usage.h"

static __always_inline bool is_late(u64 since, u64 patience)
{
	return is_before(since + patience, bpf_jiffies64());
}

static __always_inline bool may_be_late(s32 queue, u64 patience)
{
	struct queue_ctx *qc = queue_ctx(queue);

	return qc->waiting > 0 && is_late(qc->oldest, patience);
}

/* Whether a queue's own CPU leaves it alone: a task waits there though it was to go first. */
static __always_inline bool is_left_alone(s32 queue)
{
	return may_be_late(queue, sums.patience + sums.grace);
}

/* Takes the task of a queue that has waited longest, if that is longer than `patience`. */
verified_alone int take_late_of(s32 queue, s32 cpu, u64 patience)
{
	bool is_own = cpu_of_queue(queue) == cpu;
	struct queue_ctx *qc = queue_ctx(queue);
	u64 oldest = qc->oldest, now = bpf_jiffies64();
	u64 since = now, of_all = now;
	struct task_struct *p;
	s32 pid = NO_PID;

	bpf_for_each(scx_dsq, p, queue, 0) {
		u64 at = p->scx.runnable_at;

		if (is_before(at, of_all))
			of_all = at;
		if (is_before(at, since) && may_go_to(p, cpu) && (is_own || !is_of_batch(p))) {
			since = at;
			pid = p->pid;
		}
	}
	/* Unless one came meanwhile that has waited for longer. */
	if (of_all != now)
		__sync_val_compare_and_swap(&qc->oldest, oldest, of_all);
	return pid != NO_PID && is_late(since, patience) && take_pid(queue, pid, cpu);
}

/* Takes a task that has waited for too long, in the own queues or where one was left alone; or a
 * stray from where more wait. */
verified_alone int take_late(s32 cpu)
{
	struct cpu_ctx *cc = cpu_ctx(cpu);
	s32 left = cc->left_alone;
	u64 patience;

	if (take_late_of(pinned_queue(cpu), cpu, sums.patience) ||
	    take_late_of(shared_queue(cpu), cpu, sums.patience)) {
		came_from(cpu, HEARTH_SOURCE_LATE, cpu);
		return true;
	}
	cc->has_late = false;
	cc->left_alone = NO_QUEUE;
	if (left < 0)
		return false;
	patience = is_pinned_queue(left) ? 0 : sums.patience;
	if (!take_late_of(left, cpu, patience))
		return false;
	came_from(cpu, patience ? HEARTH_SOURCE_LATE : HEARTH_SOURCE_STRAY, cpu_of_queue(left));
	return true;
}

/* At a tick: whether a queue of one of the others, the next in turn, wants help: if its own CPU
 * leaves it alone; or strays wait in its pinned one behind more than wait here. */
static __always_inline void look_after_others(s32 cpu)
{
	struct cpu_ctx *cc = cpu_ctx(cpu);
	s32 other = cc->looked_after + 1;
	struct queue_ctx *pinned;

	if (other >= (s32)topology.nr_cpus)
		other = 0;
	cc->looked_after = other;
	if (other == cpu)
		return;
	clock_pass(cpu, other);
	pinned = queue_ctx(pinned_queue(other));
	if (is_left_alone(shared_queue(other)))
		cc->left_alone = shared_queue(other);
	else if ((pinned->strays > pinned->members && waiting_at(other) > waiting_at(cpu) + 1) ||
		 (pinned->strays > 0 && is_left_alone(pinned_queue(other))))
		cc->left_alone = pinned_queue(other);
	if (cc->left_alone >= 0)
		cc->has_late = true;
	look_after_fragments(cpu, other);
}

/* At a tick: whether the CPU has to look for tasks that have waited for too long. */
static __always_inline void look_for_late(s32 cpu)
{
	if (may_be_late(pinned_queue(cpu), sums.patience) ||
	    may_be_late(shared_queue(cpu), sums.patience))
		cpu_ctx(cpu)->has_late = true;
	look_after_others(cpu);
}

#endif
