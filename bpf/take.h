/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Taking: how a CPU comes to the task that it runs next.
 *
 *   take_best       the best candidate (candidates.h); if it is gone, the next
 *   take_anything   who has no candidate and would idle looks where counts say that
 *                   tasks wait, near ones first
 *
 * A queue's head may be a moment old, so each take can find nothing. Counts are exact.
 */
#ifndef HEARTH_TAKE_H
#define HEARTH_TAKE_H

#include "candidates.h"
#include "rule.h"

verified_alone int take(s32 queue, s32 cpu)
{
	if (!move_to_local(queue, cpu)) {
		queue_missed(queue);
		return false;
	}
	queue_taken(queue);
	taken_from(cpu_of_queue(queue), cpu);
	return true;
}

/* A task of a cell's queues that may run here: of the shared ones, and strays of the pinned ones.
 */
verified_alone int take_from_cell(u32 cell, s32 cpu)
{
	u32 i;

	bpf_for(i, first_member(cell), end_of_members(cell)) {
		if (take_from_cpu(member(cell, i), cpu))
			return true;
	}
	return false;
}

verified_alone int take_from_shape(u32 index, s32 cpu)
{
	u32 part = part_of(shape_at(index), cpu), own = cell_in(index, cpu);
	u32 i;

	/* Near ones first. */
	if (has_work(index, part, own & (HEARTH_MAX_CPUS - 1)) && take_from_cell(own, cpu))
		return true;
	bpf_for(i, first_with_work(index, part), shape_at(index)->nr_cells) {
		if (has_work(index, part, i) && take_from_cell(index << QUEUE_CPU_BITS | i, cpu))
			return true;
	}
	return false;
}

/* Anything that may run here, of any rank. */
verified_alone int take_anything(s32 cpu)
{
	u32 now = shape_index(published), before = shape_index_before(published);

	if (take_searched(NO_PID, cpu))
		return true;
	if (queue_ctx(pinned_queue(cpu))->waiting > 0 && take(pinned_queue(cpu), cpu))
		return true;
	if (queue_ctx(shared_queue(cpu))->waiting > 0 && take(shared_queue(cpu), cpu))
		return true;
	return take_from_shape(now, cpu) || (before != now && take_from_shape(before, cpu)) ||
	       take_fragment(cpu);
}

static __always_inline bool take_candidate(struct candidate *best, s32 cpu)
{
	return best->pid != NO_PID ? take_searched(best->pid, cpu) : take(best->queue, cpu);
}

/* The first of some kinds, if it ranks before `kept_rank`. */
verified_alone int take_of_kinds(s32 cpu, u32 kinds, s64 kept_rank)
{
	struct candidate *best = &cpu_ctx(cpu)->best;

	candidates_offer(cpu, kinds);
	return best->rank != HEARTH_NO_RANK && best->rank <= kept_rank && take_candidate(best, cpu);
}

/* The best candidate is gone, or may not run here: the next, and the one after. */
verified_alone int take_next_best(s32 cpu, s64 kept_rank)
{
	struct candidate *best = &cpu_ctx(cpu)->best;
	u32 kinds = ALL_CANDIDATES & ~kind_of(best, cpu);

	if (take_of_kinds(cpu, kinds, kept_rank))
		return true;
	return take_of_kinds(cpu, kinds & ~kind_of(best, cpu), kept_rank);
}

/* What ranks first here, unless the task that just ran ranks before it; anything, if that has no
 * rank, for it may not go on. */
static __always_inline bool take_best(s32 cpu, s64 kept_rank)
{
	struct candidate *best = &cpu_ctx(cpu)->best;

	if (tracing)
		candidates_tell(cpu, kept_rank);
	candidates_offer(cpu, ALL_CANDIDATES);
	if (best->rank != HEARTH_NO_RANK && best->rank <= kept_rank &&
	    kind_of(best, cpu) == CANDIDATE_ELSEWHERE && !is_due_here(cpu, kept_rank))
		candidates_offer(cpu, ALL_CANDIDATES & ~CANDIDATE_ELSEWHERE);
	if (best->rank != HEARTH_NO_RANK && best->rank <= kept_rank) {
		if (take_candidate(best, cpu) || take_next_best(cpu, kept_rank))
			return true;
	}
	return kept_rank == HEARTH_NO_RANK && take_anything(cpu);
}

#endif
