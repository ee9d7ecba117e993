/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a CPU takes that would idle: tasks that have paid for the move (moves.h).
 */
#ifndef HEARTH_PAID_H
#define HEARTH_PAID_H

#include "moves.h"
#include "decisions.h"

/* Of the first tasks of a queue, one that may run here and has paid for the move. */
verified_alone int take_who_paid(s32 queue, s32 cpu)
{
	s32 at = cpu_of_queue(queue);
	struct task_struct *p;
	u64 now, will_wait;
	u32 looks = 0;

	if (queue_ctx(queue)->waiting <= 0)
		return false;
	now = scx_bpf_now();
	will_wait = wait_expect(at, queued_at(at) - 1, now);
	bpf_for_each(scx_dsq, p, queue, 0) {
		struct hearth_task *tc = task_ctx(p);

		if (!tc || is_kept_apart(p, tc))
			continue;
		if (++looks > MOST_LOOKS)
			break;
		if (!may_go_to(p, cpu) || is_of_other_part(tc, cpu))
			continue;
		wait_collect(tc, at, now);
		if (!may_move(p, tc, at, cpu, will_wait, now))
			continue;
		if (scx_bpf_dsq_move(BPF_FOR_EACH_ITER, p, SCX_DSQ_LOCAL, 0)) {
			move_is_paid(p, tc, cpu);
			taken_from(at, cpu);
			return true;
		}
	}
	return false;
}

/* A task that waits at a CPU. */
static __always_inline bool take_from_cpu(s32 other, s32 cpu)
{
	return take_who_paid(shared_queue(other), cpu) || take_who_paid(pinned_queue(other), cpu);
}

/* Whether a CPU of a cell has work for which to wait will cost as much as to move. */
verified_alone int is_due_in(u32 cell)
{
	u64 now = scx_bpf_now();
	u32 i;

	bpf_for(i, first_member(cell), end_of_members(cell)) {
		s32 other = member(cell, i);

		if (queued_at(other) > 0 && wait_expect(other, 0, now) >= topology.cpu_move_ns)
			return true;
	}
	return false;
}

/* Whether a CPU that goes idle is to look again: there is work in its own queues, or such in others
 * of this cache domain. */
verified_alone int is_work_for(s32 cpu)
{
	u32 index = shape_index(published), part = part_of(shape_at(index), cpu);
	u32 i;

	if (queued_at(cpu) > 0)
		return true;
	bpf_for(i, first_with_work(index, part), shape_at(index)->nr_cells) {
		u32 cell = i & (HEARTH_MAX_CPUS - 1);

		if (has_work(index, part, cell) &&
		    distance_of_cell(index << QUEUE_CPU_BITS | cell, cpu) == DISTANCE_CACHE &&
		    is_due_in(index << QUEUE_CPU_BITS | cell))
			return true;
	}
	return false;
}

#endif
