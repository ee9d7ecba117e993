/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Candidates: what a CPU that looks for work may run next. Each kind is offered with its rank;
 * the least is taken, and if it is gone by then, or may not run here, the next.
 *
 *   SHARED     the head of the own shared queue (complex: the task of it that ranks first)
 *   BOUND      the head of the own bound queue
 *   ELSEWHERE  the head that ranks first of the cells of this CPU's part
 *
 * Of equals the one of the earlier kind is taken, and any before the task that just ran. To add
 * a kind: its name in state.h, a function here that offers it, and a call in candidates_offer.
 */
#ifndef HEARTH_CANDIDATES_H
#define HEARTH_CANDIDATES_H

static __always_inline struct candidate *candidate(s32 cpu, u32 kind)
{
	return &cpu_ctx(cpu)->candidates[kind];
}

static __always_inline void offer(s32 cpu, u32 kind, s32 queue, s64 rank)
{
	*candidate(cpu, kind) = (struct candidate){.rank = rank, .queue = queue, .pid = NO_PID};
}

static __always_inline void offer_none(s32 cpu, u32 kind)
{
	offer(cpu, kind, NO_QUEUE, HEARTH_NO_RANK);
}

static __always_inline void offer_head(s32 cpu, u32 kind, s32 queue)
{
	u64 head = head_usage(queue);

	offer(cpu, kind, queue, head == NO_USAGE ? HEARTH_NO_RANK : rank(head, sums.own_credit));
}

/* The queue whose head ranks first here, the own ones aside: the first of each cell, for all
 * queues of a cell but the own one grant the same credit. */
verified_alone int offer_elsewhere(s32 cpu)
{
	u32 index = shape_index(published), part = part_of(shape_at(index), cpu);
	struct hearth_shape *shape = shape_at(index);
	struct candidate *best = candidate(cpu, CANDIDATE_ELSEWHERE);
	u32 cell;

	offer_none(cpu, CANDIDATE_ELSEWHERE);
	for (cell = shape->part_first[part]; cell < shape->part_end[part] && can_loop; cell++) {
		s32 first = cell_ctx(index << QUEUE_CPU_BITS | cell)->first;
		s64 first_rank;
		u64 usage;

		if (first < 0 || first == cpu)
			continue;
		usage = head_usage(shared_queue(first));
		if (usage == NO_USAGE)
			continue;
		first_rank =
			rank(usage_raised(usage, cpu, sums.foreign), credit_of_queue(first, cpu));
		if (first_rank < best->rank)
			offer(cpu, CANDIDATE_ELSEWHERE, shared_queue(first), first_rank);
	}
	return 0;
}

/* complex: the credit of each task of the own queue is its own. */
verified_alone int offer_warmest(s32 cpu)
{
	struct candidate *best = candidate(cpu, CANDIDATE_SHARED);
	u64 now = scx_bpf_now();
	struct task_struct *p;

	offer_none(cpu, CANDIDATE_SHARED);
	bpf_for_each(scx_dsq, p, shared_queue(cpu), 0) {
		struct hearth_task *tc = task_ctx(p);
		s64 rank;

		if (!tc)
			continue;
		rank = rank_of_task(tc, p->pid, cpu, now - tc->stopped_at);
		if (rank < best->rank)
			*best = (struct candidate){
				.rank = rank, .queue = shared_queue(cpu), .pid = p->pid};
	}
	return 0;
}

static __always_inline void candidates_offer(s32 cpu)
{
	if (is_complex())
		offer_warmest(cpu);
	else
		offer_head(cpu, CANDIDATE_SHARED, shared_queue(cpu));
	offer_head(cpu, CANDIDATE_BOUND, bound_queue(cpu));
	if (is_attached())
		offer_none(cpu, CANDIDATE_ELSEWHERE);
	else
		offer_elsewhere(cpu);
}

/* The candidate that ranks first. */
static __always_inline struct candidate *candidate_best(s32 cpu)
{
	struct candidate *best = candidate(cpu, 0);
	u32 kind;

	for (kind = 1; kind < NR_CANDIDATES; kind++)
		if (candidate(cpu, kind)->rank < best->rank)
			best = candidate(cpu, kind);
	return best;
}

#endif
