/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Gangs: tasks of one program that run at the same time (Ousterhout's matrix). A plan has rows
 * of time; it may give a task a row, and as its home a column, a CPU:
 *
 *   time  CPU 0  CPU 1  CPU 2  CPU 3
 *    row 0  A      A      A      A
 *    row 1  B      B      B      .       a hole
 *    row 2  .      .      .      .       everybody else's time
 *
 * In its row's time a member goes before all but those that have waited for too long (waits.h),
 * on the CPU of its column. For the rest of the time it fills holes: it goes after everybody
 * else, and gives way to whoever wakes. It waits in the pinned queue of its column, as a stray, so
 * that CPUs that idle find it. What members run is the matrix's business, not that of usage, so
 * no clock (usage.h) moves with them. The kernel's threads for a CPU are members there in every
 * row.
 *
 * A row's time is over at the tick nearest to its end. The first CPU that ticks then begins the
 * next row, and stops what runs where the matrix has something to say: so rows change on all
 * CPUs at once.
 */
#ifndef HEARTH_GANGS_H
#define HEARTH_GANGS_H

#include "decisions.h"
#include "plans.h"

/* The rank that goes before all others, and what puts a usage behind all others. */
#define FIRST_RANK INT64_MIN
#define LAST_USAGE (1ull << 62)

/* The row whose time it is, and when that is over. */
static volatile u32 row_now;
static u64 row_until_ns;

static __always_inline struct hearth_plan *plan_in_force(void)
{
	s32 plan = plan_index(published);

	return plan == NO_PLAN ? NULL : &plans[plan & (HEARTH_PLANS - 1)];
}

static __always_inline bool is_member(struct hearth_task *tc)
{
	return tc->row >= 0;
}

/* Whether it is this task's time. */
static __always_inline bool is_in_row(struct hearth_task *tc)
{
	return is_member(tc) && ((u32)tc->row == row_now || tc->row == EVERY_ROW);
}

/* What a task is ordered by where it waits. */
static __always_inline u64 order_of(struct hearth_task *tc)
{
	if (is_member(tc))
		return usage_of(tc) + LAST_USAGE;
	return is_of_fragment(tc) ? order_in_epoch(usage_of(tc), tc->fragment)
				  : usage_of(tc) + tc->request;
}

/* How much of that is what it asks for. */
static __always_inline u64 asked_of(struct hearth_task *tc)
{
	return is_member(tc) || is_of_fragment(tc) ? 0 : tc->request;
}

/* Whether it is this task's time, and not its place. */
static __always_inline bool is_out_of_column(struct task_struct *p, struct hearth_task *tc, s32 cpu)
{
	return is_in_row(tc) && cpu != tc->home && bpf_cpumask_test_cpu(tc->home, p->cpus_ptr) &&
	       !is_migration_disabled(p);
}

/* Has a CPU look for its member of the row, whatever runs there. */
static __always_inline void summon(s32 cpu)
{
	cpu_ctx(cpu)->has_member = true;
	cpu_ctx(cpu)->expired = true;
	scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
}

/* The next row begins, on all CPUs where members run or wait. */
verified_alone int row_begin(u32 nr_rows)
{
	struct hearth_shape *whole = shape_at(UNDIVIDED);
	u32 next = row_now + 1;
	u32 i;

	next = next < nr_rows ? next : 0;
	if (next == row_now)
		return 0;
	row_now = next;
	bpf_for(i, 0, topology.nr_online) {
		s32 cpu = whole->member[i & (HEARTH_MAX_CPUS - 1)];

		if (queue_ctx(pinned_queue(cpu))->members > 0 || cpu_ctx(cpu)->runs_member)
			summon(cpu);
	}
	return 0;
}

/* At a tick: whether the row's time is over. */
static __always_inline void look_at_row(u64 now_ns)
{
	struct hearth_plan *plan = plan_in_force();
	u64 due = row_until_ns, next;

	if (!plan || !plan->nr_rows || now_ns + policy.tick_ns / 2 < due)
		return;
	next = due + plan->row_ns;
	if (next < now_ns)
		next = now_ns + plan->row_ns;
	if (__sync_val_compare_and_swap(&row_until_ns, due, next) == due)
		row_begin(plan->nr_rows);
}

/* Takes the own member of the row, if it waits. */
verified_alone int take_member(s32 cpu)
{
	struct task_struct *p;

	/* The kernel's thread and a gang's member may both wait. */
	cpu_ctx(cpu)->has_member = queue_ctx(pinned_queue(cpu))->members > 1;
	bpf_for_each(scx_dsq, p, pinned_queue(cpu), 0) {
		struct hearth_task *tc = task_ctx(p);

		if (!tc)
			continue;
		plan_follow(p, tc);
		if (!is_in_row(tc) || tc->home != cpu || !may_go_to(p, cpu))
			continue;
		if (!scx_bpf_dsq_move(BPF_FOR_EACH_ITER, p, SCX_DSQ_LOCAL, 0))
			return false;
		came_from(cpu, HEARTH_SOURCE_MEMBER, cpu);
		return true;
	}
	cpu_ctx(cpu)->has_member = false;
	return false;
}

#endif
