/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Moves under the papers' policies: credit delays them, and nothing else does. No CPU is idle while
 * a task waits that it may run. (moves.h, paid.h and preempt.h have the rule that came later.)
 */
#ifndef HEARTH_PAPERS_MOVES_H
#define HEARTH_PAPERS_MOVES_H

#include "state.h"
#include "../plans.h"

/* In run_queue.h, whole.h and take.h. */
static s32 attached_to(struct task_struct *p, struct hearth_task *tc);
static bool is_away(struct task_struct *p, struct hearth_task *tc, s32 cpu);
verified_alone int run_queue_has_work(s32 cpu);
verified_alone int take(s32 queue, s32 cpu);

/* Nothing is collected, and no home follows. */
static __always_inline void wait_begin(struct hearth_task *tc, u64 now)
{
}
static __always_inline void wait_end(struct hearth_task *tc, s32 cpu, u64 now)
{
}
static __always_inline void wait_collect(struct hearth_task *tc, s32 cpu, u64 now)
{
}
static __always_inline void run_note(struct task_struct *p, struct hearth_task *tc)
{
}
static __always_inline void run_begin(struct task_struct *p, struct hearth_task *tc, s32 cpu,
				      u64 now)
{
}
static __always_inline void look_begin(s32 cpu, bool is_runnable, u64 now)
{
	cpu_ctx(cpu)->looks_elsewhere = true;
}
static __always_inline void usage_request(struct task_struct *p, struct hearth_task *tc)
{
}
static __always_inline void yield_charge(struct hearth_task *tc)
{
}
static __always_inline void waker_note(u64 wake_flags)
{
}
static __always_inline bool yields_to_anyone(s32 cpu)
{
	return true;
}
static __always_inline bool is_heavier(s32 other, s32 cpu)
{
	return true;
}

static __always_inline void move_is_paid(struct task_struct *p, struct hearth_task *tc, s32 cpu)
{
}
static __always_inline void home_follows(struct task_struct *p, struct hearth_task *tc, s32 cpu,
					 u32 most_run)
{
}

static __always_inline u64 wait_expect(s32 cpu, s64 others, u64 now)
{
	return 0;
}

static __always_inline void idle_note(s32 cpu, bool idle)
{
	cpu_ctx(cpu)->is_idle = idle;
}

/* Whether a task that waits stays with the CPU where it is. */
static __always_inline bool is_kept_apart(struct task_struct *p, struct hearth_task *tc)
{
	if (tc->queue == RUN_QUEUE)
		return is_migration_disabled(p);
	return !(tc->counted & (COUNTED_SHARED | COUNTED_STRAY));
}

/* At which CPU a task wakes: where its fragment is. */
static __always_inline s32 wakes_at(struct task_struct *p, struct hearth_task *tc, s32 at,
				    u64 wake_flags)
{
	s32 home = fragment_cpu(p, tc);

	return home >= 0 ? home : at;
}

/* An idle CPU for a task that waits at a CPU. */
static __always_inline s32 any_idle_cpu(struct task_struct *p, struct hearth_task *tc, s32 at,
					u64 will_wait)
{
	s32 attached = attached_to(p, tc);

	if (is_planned(tc))
		return idle_cpu_of_plan(p, tc);
	if (attached >= 0)
		return scx_bpf_test_and_clear_cpu_idle(attached) ? attached : NO_CPU;
	return scx_bpf_pick_idle_cpu(p->cpus_ptr, 0);
}

/* The idle CPU where the task has most credit. With fair a new one, which has none, begins near
 * who made it, whose files and memory it shares; in the papers it takes any. */
static __always_inline s32 idle_cpu(struct task_struct *p, struct hearth_task *tc, s32 prev_cpu,
				    u64 wake_flags)
{
	bool begins_near = policy.discipline == HEARTH_FAIR && tc->last_cpu < 0;
	s32 last = begins_near ? prev_cpu : tc->last_cpu;

	if (is_attached())
		return any_idle_cpu(p, tc, prev_cpu, 0);
	if (last >= 0 && (policy.llc_ns || policy.node_ns))
		return idle_cpu_near(p, last, wake_flags);
	if (last >= 0 && (policy.time_ns || policy.processor_ns) &&
	    bpf_cpumask_test_cpu(last, p->cpus_ptr) && scx_bpf_test_and_clear_cpu_idle(last))
		return last;
	return scx_bpf_pick_idle_cpu(p->cpus_ptr, 0);
}

/* A task that waits at a CPU. */
static __always_inline bool take_from_cpu(s32 other, s32 cpu)
{
	return (queue_ctx(shared_queue(other))->waiting > 0 && take(shared_queue(other), cpu)) ||
	       (queue_ctx(pinned_queue(other))->strays > 0 && take(pinned_queue(other), cpu));
}

/* Whether there is work of any rank, also in cells of the shape before. */
static __always_inline bool is_work_for(s32 cpu)
{
	u32 now = shape_index(published), before = shape_index_before(published);

	if (run_queue_waiting() > 0 && run_queue_has_work(cpu))
		return true;
	if (queued_at(cpu) > 0)
		return true;
	return is_work_in(now, cpu) || (before != now && is_work_in(before, cpu));
}

/* See preempt.h. */
static void running_note(struct hearth_task *tc, s32 cpu, u64 now);
verified_alone int preempt(struct task_struct *p __arg_trusted,
			   struct hearth_task *tc __arg_nonnull);

#endif
