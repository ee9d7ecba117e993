/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Candidates: what a CPU that looks for work may run next. Each kind is offered with its rank;
 * the least is taken, and if it is gone by then, or may not run here, the next.
 *
 *   SHARED     the head of the own shared queue
 *   PINNED     the head of the own pinned queue
 *   ELSEWHERE  the head that ranks first of the cells of this CPU's part
 *   SEARCHED   a task that is not first in its queue (the papers' run queue)
 *
 * Of equals the one that is offered first is taken, and any before the task that just ran. To add
 * a kind: its name here, a function that offers it, and a call in candidates_offer.
 */
#ifndef HEARTH_CANDIDATES_H
#define HEARTH_CANDIDATES_H

#include "credit.h"
#include "queues.h"
#include "usage.h"

enum {
	CANDIDATE_SHARED = 1 << 0,
	CANDIDATE_PINNED = 1 << 1,
	CANDIDATE_ELSEWHERE = 1 << 2,
	CANDIDATE_SEARCHED = 1 << 3,
	ALL_CANDIDATES = (1 << 4) - 1,
};

static __always_inline u32 kind_of(struct candidate *candidate, s32 cpu)
{
	if (candidate->pid != NO_PID)
		return CANDIDATE_SEARCHED;
	if (cpu_of_queue(candidate->queue) != cpu)
		return CANDIDATE_ELSEWHERE;
	return is_pinned_queue(candidate->queue) ? CANDIDATE_PINNED : CANDIDATE_SHARED;
}

static __always_inline void offer(struct candidate *best, s32 queue, s32 pid, s64 rank)
{
	if (rank < best->rank)
		*best = (struct candidate){.rank = rank, .queue = queue, .pid = pid};
}

static __always_inline s64 rank_of_head(s32 queue, s32 cpu)
{
	u64 head = head_usage(queue);

	return head == NO_USAGE ? HEARTH_NO_RANK : rank(head, credit_here(sums.own_credit, cpu));
}

/* Of the task that runs here, or would go on. */
static __always_inline s64 running_rank(struct hearth_task *tc, s32 cpu)
{
	return is_in_row(tc) ? FIRST_RANK : rank(order_of(tc), running_credit(tc, cpu));
}

/* The queue whose head ranks first here, the own ones aside: the first of each cell, for all
 * queues of a cell but the own one grant the same credit. Only from where more waits: a clock says
 * what tasks have had since long ago, so by clocks alone a CPU that is ahead would draw until the
 * others have caught up, and have too many by then. */
verified_alone int offer_elsewhere(s32 cpu)
{
	u32 index = shape_index(published), part = part_of(shape_at(index), cpu);
	struct hearth_shape *shape = shape_at(index);
	struct cpu_ctx *cc = cpu_ctx(cpu);
	struct candidate *best = &cc->best;
	u64 occupied = *occupied_cells(index, part);
	u64 limit = weighed(sums.lag_limit, cc->inverse_weight);
	u64 far_ahead = queued_at(cpu) ? NO_USAGE : cc->clock + limit;
	u32 cell;

	for (cell = shape->part_first[part]; cell < shape->part_end[part] && can_loop; cell++) {
		s32 first;
		u64 usage;

		if (!(occupied >> occupied_bit(cell) & 1))
			continue;
		first = cell_ctx(index << QUEUE_CPU_BITS | cell)->first;
		if (first < 0 || first == cpu || !is_heavier(first, cpu))
			continue;
		usage = head_usage(shared_queue(first));
		if (usage == NO_USAGE)
			continue;
		if (fragments_are_used)
			usage += epoch_slack();
		if (usage > far_ahead && cpu_ctx(first)->clock > cc->clock_ahead)
			cc->clock_ahead = cpu_ctx(first)->clock;
		offer(best, shared_queue(first), NO_PID,
		      rank(usage_raised(usage, cpu, sums.foreign), credit_of_queue(first, cpu)));
	}
	return 0;
}

/* Finds the best candidate of some kinds. */
static __always_inline void candidates_offer(s32 cpu, u32 kinds)
{
	u32 index = shape_index(published);
	struct candidate *best = &cpu_ctx(cpu)->best;

	best->rank = HEARTH_NO_RANK;
	cpu_ctx(cpu)->clock_ahead = 0;
	if (kinds & CANDIDATE_SEARCHED)
		offer_searched(cpu);
	if (kinds & CANDIDATE_SHARED)
		offer(best, shared_queue(cpu), NO_PID, rank_of_head(shared_queue(cpu), cpu));
	if (kinds & CANDIDATE_PINNED)
		offer(best, pinned_queue(cpu), NO_PID, rank_of_head(pinned_queue(cpu), cpu));
	if (kinds & CANDIDATE_ELSEWHERE && cpu_ctx(cpu)->looks_elsewhere &&
	    *occupied_cells(index, part_of(shape_at(index), cpu)))
		offer_elsewhere(cpu);
}

/* What the first task of a queue asks for. */
verified_alone u64 head_request(s32 queue)
{
	struct task_struct *p = dsq_first(queue);
	struct hearth_task *tc = p ? task_ctx(p) : NULL;

	return tc ? asked_of(tc) : 0;
}

static __always_inline s64 rank_unasked(s64 rank, u64 request)
{
	return rank == HEARTH_NO_RANK ? rank : rank - (s64)request;
}

static __always_inline s64 rank_of_head_unasked(s32 queue, s32 cpu)
{
	return rank_unasked(rank_of_head(queue, cpu), head_request(queue));
}

/* Whether a candidate of another CPU ranks first here also if nobody asked for anything. What a
 * task asks for (preempt.h) has it wait for those of its own CPU. To others it is no closer to
 * having had its due for that, and who waits for one of them stays where its data is. */
verified_alone int is_due_here(s32 cpu, s64 kept_rank)
{
	struct cpu_ctx *cc = cpu_ctx(cpu);
	s64 rank = rank_unasked(cc->best.rank, head_request(cc->best.queue));

	return rank <= rank_unasked(kept_rank, cc->kept_request) &&
	       rank <= rank_of_head_unasked(shared_queue(cpu), cpu) &&
	       rank <= rank_of_head_unasked(pinned_queue(cpu), cpu);
}

/* For who traces: all that is considered. */
verified_alone int candidates_tell(s32 cpu, s64 kept_rank)
{
	struct candidate *best = &cpu_ctx(cpu)->best;

	candidates_offer(cpu, CANDIDATE_ELSEWHERE);
	decision_elsewhere(cpu, best);
	candidates_offer(cpu, ALL_CANDIDATES & ~CANDIDATE_ELSEWHERE);
	decision_considered(cpu, kept_rank, best->rank);
	return 0;
}

#endif
