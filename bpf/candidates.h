/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Candidates: what a CPU that looks for work may run next. Each kind is offered with its rank;
 * the least is taken, and if it is gone by then, or may not run here, the next.
 *
 *   SEARCHED   the task of the run queue that ranks first (run_queue.h)
 *   SHARED     the head of the own shared queue
 *   BOUND      the head of the own bound queue
 *   ELSEWHERE  the head that ranks first of the cells of this CPU's part
 *
 * Of equals the one that is offered first is taken, and any before the task that just ran. To add
 * a kind: its name here, a function that offers it, and a call in candidates_offer.
 */
#ifndef HEARTH_CANDIDATES_H
#define HEARTH_CANDIDATES_H

enum {
	CANDIDATE_SHARED = 1 << 0,
	CANDIDATE_BOUND = 1 << 1,
	CANDIDATE_ELSEWHERE = 1 << 2,
	CANDIDATE_SEARCHED = 1 << 3,
	ALL_CANDIDATES = (1 << 4) - 1,
};

static __always_inline u32 kind_of(struct candidate *candidate, s32 cpu)
{
	if (candidate->queue == RUN_QUEUE)
		return CANDIDATE_SEARCHED;
	if (cpu_of_queue(candidate->queue) != cpu)
		return CANDIDATE_ELSEWHERE;
	return is_bound_queue(candidate->queue) ? CANDIDATE_BOUND : CANDIDATE_SHARED;
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

/* The queue whose head ranks first here, the own ones aside: the first of each cell, for all
 * queues of a cell but the own one grant the same credit. */
verified_alone int offer_elsewhere(s32 cpu)
{
	u32 index = shape_index(published), part = part_of(shape_at(index), cpu);
	struct hearth_shape *shape = shape_at(index);
	struct cpu_ctx *cc = cpu_ctx(cpu);
	struct candidate *best = &cc->best;
	u64 occupied = *occupied_cells(index, part);
	u64 bound = weighed(sums.bound, cc->inverse_weight);
	u64 far_ahead = queued_at(cpu) ? NO_USAGE : cc->clock + bound;
	u32 cell;

	for (cell = shape->part_first[part]; cell < shape->part_end[part] && can_loop; cell++) {
		s32 first;
		u64 usage;

		if (!(occupied >> occupied_bit(cell) & 1))
			continue;
		first = cell_ctx(index << QUEUE_CPU_BITS | cell)->first;
		if (first < 0 || first == cpu)
			continue;
		usage = head_usage(shared_queue(first));
		if (usage == NO_USAGE)
			continue;
		/* The order of a fragment's task is as much less than its usage at most. */
		if (is_steady() && fragments_are_used)
			usage += sums.epoch_rest;
		if (usage > far_ahead && cpu_ctx(first)->clock > cc->clock_ahead)
			cc->clock_ahead = cpu_ctx(first)->clock;
		offer(best, shared_queue(first), NO_PID,
		      rank(usage_raised(usage, cpu, sums.foreign), credit_of_queue(first, cpu)));
	}
	return 0;
}

/* The task of the run queue that ranks first here. */
verified_alone int offer_searched(s32 cpu)
{
	struct cpu_ctx *cc = cpu_ctx(cpu);
	struct candidate *best = &cc->best;
	u64 now = scx_bpf_now();
	struct task_struct *p;

	cc->looks = 0;
	cc->least_usage = NO_USAGE;
	bpf_for_each(scx_dsq, p, RUN_QUEUE, 0) {
		struct hearth_task *tc = task_ctx(p);

		if (++cc->looks > MOST_SEARCHED)
			break;
		if (!tc || !may_take(p, tc, cpu))
			continue;
		if (is_late(p->scx.runnable_at, sums.patience)) {
			offer(best, RUN_QUEUE, p->pid, FIRST_RANK);
			break;
		}
		if (usage_of(tc) < cc->least_usage)
			cc->least_usage = usage_of(tc);
		offer(best, RUN_QUEUE, p->pid, rank_of_task(tc, p->pid, cpu, now - tc->stopped_at));
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
	if (kinds & CANDIDATE_SEARCHED && has_run_queue() && run_queue.waiting > 0)
		offer_searched(cpu);
	if (kinds & CANDIDATE_SHARED)
		offer(best, shared_queue(cpu), NO_PID, rank_of_head(shared_queue(cpu), cpu));
	if (kinds & CANDIDATE_BOUND)
		offer(best, bound_queue(cpu), NO_PID, rank_of_head(bound_queue(cpu), cpu));
	/* Who would idle goes by what tasks have paid: take_anything. */
	if (kinds & CANDIDATE_ELSEWHERE && !cpu_ctx(cpu)->is_out_of_work &&
	    *occupied_cells(index, part_of(shape_at(index), cpu)))
		offer_elsewhere(cpu);
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
