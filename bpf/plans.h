/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Plans: what the daemon wants of tasks. A plan (struct hearth_plan) may say of a task, or of its
 * group, a home, a part, a slice and a share. What it says is looked up when the task next comes to
 * wait, or at a tick, and remembered. Nothing of it is trusted: indices are checked, and a mask
 * goes before a plan. One that its daemon has not renewed is dropped.
 */
#ifndef HEARTH_PLANS_H
#define HEARTH_PLANS_H

#include "idle.h"
#include "places.h"

/* See moves.h. */
static s32 claim_any(struct task_struct *p, s32 at);

/* Of a task that has to look the plan up: no published word has this sequence number. */
#define PLANNED_NEVER (~0ull)

#define NO_PLAN (-1)
#define TARGET_BITS 10

_Static_assert(1 << TARGET_BITS == HEARTH_MAX_TARGETS, "a search halves until one is left");

/* ---- The plan in force ---- */

/* The index of the plan, or NO_PLAN. */
static __always_inline s32 plan_index(u64 word)
{
	return (s32)(word >> HEARTH_PUBLISHED_PLAN & 3) - 1;
}

/* Whether no task waits that is counted in a shape. */
verified_alone int is_shape_empty(u32 index)
{
	u32 i;

	bpf_for(i, 0, shape_at(index)->nr_cells) {
		struct cell_ctx *cc =
			cell_ctx(index << QUEUE_CPU_BITS | (i & (HEARTH_MAX_CPUS - 1)));

		if (cc->waiting > 0 || cc->strays > 0)
			return false;
	}
	return true;
}

/* A plan that its daemon has not renewed is dropped; and then its shape, when no task is looked for
 * any more in the one before. */
static __always_inline void plan_check(u64 now_ns)
{
	u64 word = published, next;
	u32 shape = shape_index(word), before = shape_index_before(word);
	s32 plan = plan_index(word);

	if (plan == NO_PLAN && !shape)
		return;
	if (plan != NO_PLAN) {
		if (now_ns <= plans[plan & (HEARTH_PLANS - 1)].until_ns)
			return;
	} else {
		if (before != shape && !is_shape_empty(before))
			return;
		before = shape;
		shape = 0;
	}
	next = ((word >> HEARTH_PUBLISHED_SEQUENCE) + 1) << HEARTH_PUBLISHED_SEQUENCE |
	       before << HEARTH_PUBLISHED_BEFORE | shape;
	__sync_val_compare_and_swap(&published, word, next);
}

/* ---- What it says of a task ---- */

/* By itself, for the verifier would follow each way that a search can take. */
verified_alone u64 target_id(u32 index, u32 i)
{
	return plans[index & (HEARTH_PLANS - 1)].targets[i & (HEARTH_MAX_TARGETS - 1)].id;
}

/* The first of a plan's targets whose id is not below this one. */
verified_alone u32 target_search(u32 index, u64 id)
{
	u32 from = 0, to = plans[index & (HEARTH_PLANS - 1)].nr_targets, i;

	bpf_for(i, 0, TARGET_BITS + 1) {
		u32 middle = (from + to) / 2;

		if (from >= to)
			break;
		if (target_id(index, middle) < id)
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

/* What a plan says of an id; later words go before earlier ones. */
static __always_inline void target_follow(u32 index, u64 id, struct hearth_task *tc)
{
	struct hearth_plan *plan = &plans[index & (HEARTH_PLANS - 1)];
	u32 i = target_search(index, id);
	struct hearth_target *target = &plan->targets[i & (HEARTH_MAX_TARGETS - 1)];

	if (i >= plan->nr_targets || i >= HEARTH_MAX_TARGETS || target->id != id)
		return;
	if (target->home >= 0 && target->home < (s32)topology.nr_cpus)
		tc->home = target->home;
	if (target->part >= 0 && target->part < HEARTH_MAX_PARTS)
		tc->part = target->part;
	if (target->slice_permille)
		tc->slice_permille = target->slice_permille;
	if (target->share_permille >= HEARTH_LEAST_SHARE)
		tc->share_permille = target->share_permille;
	if (target->row >= 0 && tc->home >= 0)
		tc->row = target->row;
}

/* Of task->flags; the kernel has it as a macro, too. */
#define PF_KTHREAD 0x00200000

/* A thread of the kernel's own for the CPU that it is bound to: whoever runs there, in whatever
 * row, may wait for what it does. */
static __always_inline bool serves_one_cpu(struct task_struct *p)
{
	return p->flags & PF_KTHREAD && p->nr_cpus_allowed == 1;
}

/* No plan says anything of a task. */
static __always_inline void plan_forget(struct hearth_task *tc)
{
	tc->home = NO_CPU;
	tc->part = NO_PART;
	tc->slice_permille = 1000;
	tc->share_permille = 1000;
	tc->row = NO_ROW;
}

/* Looks up what is published now, and what of it is this task's. */
verified_alone int plan_look_up(struct task_struct *p __arg_trusted,
				struct hearth_task *tc __arg_nonnull, u64 word)
{
	bool is_same =
		tc->planned != PLANNED_NEVER && shape_index(tc->planned) == shape_index(word);
	s32 plan = plan_index(word);

	if (!is_same)
		tc->covers = covered_parts(p, shape_index(word));
	tc->planned = word;
	plan_forget(tc);
	if (plan != NO_PLAN) {
		target_follow(plan, task_group(p), tc);
		target_follow(plan, HEARTH_OF_TASK | (u32)p->pid, tc);
		if (plans[plan & (HEARTH_PLANS - 1)].nr_rows && serves_one_cpu(p)) {
			tc->home = scx_bpf_task_cpu(p);
			tc->row = EVERY_ROW;
		}
	}
	weigh(tc, tc->weight);
	return 0;
}

static __always_inline void plan_follow(struct task_struct *p, struct hearth_task *tc)
{
	u64 word = published;

	if (tc->planned != word)
		plan_look_up(p, tc, word);
}

/* ---- Where it has a task wait ---- */

/* Whether a plan says where, or the task itself. */
static __always_inline bool is_planned(struct hearth_task *tc)
{
	return tc->home >= 0 || tc->part >= 0 || is_kept_whole(tc);
}

/* The CPU of a part where fewest wait, of those that a task may run on; `otherwise` if none. */
verified_alone int cpu_of_part(struct task_struct *p __arg_trusted, u32 part, s32 otherwise)
{
	u32 index = shape_index(published);
	struct hearth_shape *shape = shape_at(index);
	s32 best = otherwise;
	s64 fewest = 0;
	u32 i;

	bpf_for(i, 0, topology.nr_online) {
		s32 cpu = shape->member[i & (HEARTH_MAX_CPUS - 1)];
		s64 waiting = waiting_at(cpu);

		if (part_of(shape, cpu) != part || !bpf_cpumask_test_cpu(cpu, p->cpus_ptr))
			continue;
		if (best == otherwise || waiting < fewest) {
			best = cpu;
			fewest = waiting;
		}
	}
	return best;
}

/* In the queue of which CPU a task waits, that is at `cpu` now. */
static __always_inline s32 place_of(struct task_struct *p, struct hearth_task *tc, s32 cpu)
{
	struct hearth_shape *shape = shape_at(shape_index(tc->planned));
	s32 home = fragment_cpu(p, tc);

	if (home >= 0)
		cpu = home;
	else if (tc->home >= 0 && bpf_cpumask_test_cpu(tc->home, p->cpus_ptr))
		cpu = tc->home;
	if (tc->part >= 0 && part_of(shape, cpu) != (u32)tc->part)
		cpu = cpu_of_part(p, tc->part, cpu);
	return cpu;
}

/* Whether a plan keeps a task to another part than that of the CPU where it runs. */
static __always_inline bool is_misplaced(struct task_struct *p, struct hearth_task *tc, s32 cpu)
{
	struct hearth_shape *shape = shape_at(shape_index(tc->planned));

	if (tc->part < 0 || part_of(shape, cpu) == (u32)tc->part)
		return false;
	return !is_migration_disabled(p) && cpu_of_part(p, tc->part, cpu) != cpu;
}

/* Of a task that a plan has placed: its home if that is idle, else an idle CPU of its part. Of one
 * of a fragment: only the fragment's home. */
verified_alone int idle_cpu_of_plan(struct task_struct *p __arg_trusted,
				    struct hearth_task *tc __arg_nonnull)
{
	struct hearth_shape *shape = shape_at(shape_index(tc->planned));
	s32 home = fragment_cpu(p, tc);
	u32 i;

	if (home >= 0)
		return claim_idle(home) ? home : NO_CPU;
	if (tc->home >= 0 && bpf_cpumask_test_cpu(tc->home, p->cpus_ptr) && claim_idle(tc->home))
		return tc->home;
	if (tc->part < 0)
		return claim_any(p, tc->home >= 0 ? tc->home : scx_bpf_task_cpu(p));
	bpf_for(i, 0, topology.nr_online) {
		s32 cpu = shape->member[i & (HEARTH_MAX_CPUS - 1)];

		if (part_of(shape, cpu) == (u32)tc->part &&
		    bpf_cpumask_test_cpu(cpu, p->cpus_ptr) && claim_idle(cpu))
			return cpu;
	}
	return NO_CPU;
}

#endif
