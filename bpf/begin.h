/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Beginnings: what is known of a task that has not run, and of a machine that has not scheduled.
 */
#ifndef HEARTH_BEGIN_H
#define HEARTH_BEGIN_H

#include "plans.h"

/* A task comes to be, or is there when the scheduler begins; somebody made it, or nobody known. */
static __always_inline void task_begin(struct task_struct *p, struct hearth_task *tc,
				       struct hearth_task *of_maker)
{
	tc->attached_cpu = NO_CPU;
	tc->last_cpu = NO_CPU;
	tc->previous_cpu = NO_CPU;
	tc->queue = NO_CPU;
	tc->planned = PLANNED_NEVER;
	plan_forget(tc);
	tc->fragment = NO_FRAGMENT;
	tc->runs_in = NO_FRAGMENT;
	weigh(tc, COMMON_WEIGHT);
	tc->charged_ns = p->se.sum_exec_runtime;
	tc->woke_ns = p->se.sum_exec_runtime;
	task_begin_more(tc, of_maker);
}

/* The scheduler begins; an error of the kernel's, or 0. */
static __always_inline s32 machine_begin(void)
{
	u64 now = scx_bpf_now();
	s32 err;
	u32 i;

	sums_make();
	bpf_for(i, 0, NR_CELLS)
		cell_ctx(i)->first = NO_CPU;
	bpf_for(i, 0, shape_at(UNDIVIDED)->nr_cells)
		idle_ctx(i)->since = now;
	bpf_for(i, 0, topology.nr_online) {
		s32 cpu = member(UNDIVIDED, i);

		cpu_ctx(cpu)->is_idle = true;
		cpu_ctx(cpu)->place_in_cell = i - first_member(cell_in(UNDIVIDED, cpu));
		idle_set(cpu);
	}
	bpf_for(i, 0, topology.nr_cpus) {
		queue_ctx(i)->head = NO_USAGE;
		queue_ctx(pinned_queue(i))->head = NO_USAGE;
		cpu_ctx(i)->idle_since = now;
		cpu_ctx(i)->inverse_weight = COMMON_INVERSE;
		cpu_ctx(i)->looked_after = i;
		cpu_ctx(i)->left_alone = NO_QUEUE;
		err = scx_bpf_create_dsq(i, node_of(i))
			      ?: scx_bpf_create_dsq(pinned_queue(i), node_of(i));
		if (err)
			return err;
	}
	return machine_begin_more();
}

#endif
