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

/* Has a task wait at another CPU, from within a walk over the queue where it waits. Only of tasks
 * of fragments, which are counted nowhere else. The kernel does not move one that has come back
 * since the walk began. */
#define fragment_task_move(it, p, tc, from, to)                                                 \
	do {                                                                                    \
		if (!queue_moves(tc, from, bound_queue(to), (p)->scx.runnable_at))              \
			break;                                                                  \
		scx_bpf_dsq_move_set_vtime(it, order_of(tc));                                   \
		queue_moved(tc, from, bound_queue(to),                                          \
			    scx_bpf_dsq_move_vtime(it, p, bound_queue(to), 0) ? bound_queue(to) \
									      : from);          \
	} while (0)

/* A queue where tasks of fragments wait: the first that may run here. Those whose fragment has
 * moved go after it. */
verified_alone int take_of_fragments(s32 queue, s32 cpu)
{
	bool is_own = cpu_of_queue(queue) == cpu;
	struct task_struct *p;

	bpf_for_each(scx_dsq, p, queue, 0) {
		struct hearth_task *tc = task_ctx(p);
		bool is_of_one = tc && tc->counted & COUNTED_FRAGMENT;
		s32 home;

		if (!tc || (is_of_one && !is_own) || !may_go_to(p, cpu))
			continue;
		home = is_of_one ? fragment_cpu(p, tc) : NO_CPU;
		if (home >= 0 && !fragment_claim(tc, cpu)) {
			fragment_task_move(BPF_FOR_EACH_ITER, p, tc, queue, home);
			if (claim_idle(home))
				wake(home);
			continue;
		}
		return scx_bpf_dsq_move(BPF_FOR_EACH_ITER, p, SCX_DSQ_LOCAL, 0);
	}
	return false;
}

static __always_inline bool move_to_local(s32 queue, s32 cpu)
{
	if (queue_ctx(queue)->of_fragments > 0)
		return take_of_fragments(queue, cpu);
	return scx_bpf_dsq_move_to_local(queue);
}

/* A CPU has taken a task that waited at another, or ran there last. */
static __always_inline void taken_from(s32 from, s32 cpu)
{
	if (from == cpu)
		came_from(cpu, HEARTH_SOURCE_OWN, from);
	else if (domain_of(from) == domain_of(cpu))
		came_from(cpu, HEARTH_SOURCE_DOMAIN, from);
	else
		came_from(cpu, HEARTH_SOURCE_FOREIGN, from);
}

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

/* Of the first tasks of a queue, one that may run here and has paid for the move. */
verified_alone int take_who_paid(s32 queue, s32 cpu)
{
	s32 at = cpu_of_queue(queue);
	struct task_struct *p;
	u64 will_wait;
	u32 looks = 0;

	if (queue_ctx(queue)->waiting <= 0)
		return false;
	will_wait = wait_expect(at, queued_at(at) - 1);
	bpf_for_each(scx_dsq, p, queue, 0) {
		struct hearth_task *tc = task_ctx(p);

		if (!tc || is_kept_apart(p, tc))
			continue;
		if (++looks > MOST_LOOKS)
			break;
		if (!may_go_to(p, cpu) || is_of_other_part(tc, cpu))
			continue;
		wait_collect(tc, at);
		if (!may_move(p, tc, at, cpu, will_wait))
			continue;
		if (scx_bpf_dsq_move(BPF_FOR_EACH_ITER, p, SCX_DSQ_LOCAL, 0)) {
			move_is_paid(p, tc, cpu);
			taken_from(at, cpu);
			return true;
		}
	}
	return false;
}

/* A task of a cell's queues that may run here: of the shared ones, and strays of the bound ones. */
verified_alone int take_from_cell(u32 cell, s32 cpu)
{
	u32 i;

	bpf_for(i, first_member(cell), end_of_members(cell)) {
		s32 other = member(cell, i);

		if (cost_of_move(distance(other, cpu))) {
			if (take_who_paid(shared_queue(other), cpu) ||
			    take_who_paid(bound_queue(other), cpu))
				return true;
			continue;
		}

		if (queue_ctx(shared_queue(other))->waiting > 0 && take(shared_queue(other), cpu))
			return true;
		if (queue_ctx(bound_queue(other))->strays > 0 && take(bound_queue(other), cpu))
			return true;
	}
	return false;
}

/* Whether tasks wait in a shape's i-th cell that a CPU of this part may run, as far as counts tell:
 * in the part all that wait in shared queues, in others those that may leave their part. */
static __always_inline bool has_work(u32 index, u32 part, u32 i)
{
	struct cell_ctx *cc = cell_ctx(index << QUEUE_CPU_BITS | (i & (HEARTH_MAX_CPUS - 1)));
	struct hearth_shape *shape = shape_at(index);
	bool is_own_part = i >= shape->part_first[part] && i < shape->part_end[part];

	return (is_own_part ? cc->waiting : cc->outgoing) > 0 || cc->strays > 0;
}

verified_alone int is_work_in(u32 index, s32 cpu)
{
	u32 part = part_of(shape_at(index), cpu);
	u32 i;

	bpf_for(i, 0, shape_at(index)->nr_cells) {
		if (has_work(index, part, i))
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
	bpf_for(i, 0, shape_at(index)->nr_cells) {
		if (has_work(index, part, i) && take_from_cell(index << QUEUE_CPU_BITS | i, cpu))
			return true;
	}
	return false;
}

/* Whether a CPU of a cell has work for which to wait will cost as much as to move. */
verified_alone int is_due_in(u32 cell)
{
	u32 i;

	bpf_for(i, first_member(cell), end_of_members(cell)) {
		s32 other = member(cell, i);

		if (queued_at(other) > 0 && wait_expect(other, 0) >= topology.cpu_move_ns)
			return true;
	}
	return false;
}

/* Whether there is work in the own queues, or such in others of this cache domain. */
verified_alone int is_work_near(s32 cpu)
{
	u32 index = shape_index(published), part = part_of(shape_at(index), cpu);
	u32 i;

	if (queued_at(cpu) > 0)
		return true;
	bpf_for(i, 0, shape_at(index)->nr_cells) {
		u32 cell = i & (HEARTH_MAX_CPUS - 1);

		if (has_work(index, part, cell) &&
		    distance_of_cell(index << QUEUE_CPU_BITS | cell, cpu) == DISTANCE_CACHE &&
		    is_due_in(index << QUEUE_CPU_BITS | cell))
			return true;
	}
	return false;
}

/* Whether there is work of any rank, also in cells of the shape before. */
static __always_inline bool is_work_anywhere(s32 cpu)
{
	u32 now = shape_index(published), before = shape_index_before(published);

	if (has_run_queue() && run_queue.waiting > 0 && run_queue_has_work(cpu))
		return true;
	if (queued_at(cpu) > 0)
		return true;
	return is_work_in(now, cpu) || (before != now && is_work_in(before, cpu));
}

enum moved {
	MOVED_NONE = 0,
	/* With what waited of it. */
	MOVED_FRAGMENT = 1,
	/* One task, to run at once. */
	MOVED_TASK = 2,
};

/* Moves a fragment here of which tasks wait in a queue and none runs: whole, and only one of at
 * most so many tasks. A CPU that idles splits one beside which CPUs have been idle for long: it
 * takes a task. */
verified_alone int fragment_take(s32 queue, s32 cpu, u32 most_tasks, bool is_idle)
{
	struct cpu_ctx *cc = cpu_ctx(cpu);
	s32 moved = NO_FRAGMENT;
	struct task_struct *p;

	cc->looks = 0;
	bpf_for_each(scx_dsq, p, queue, 0) {
		struct hearth_task *tc = task_ctx(p);
		struct fragment *f;

		if (!tc || !(tc->counted & COUNTED_FRAGMENT) || !is_of_fragment(tc) ||
		    !may_go_to(p, cpu))
			continue;
		if (++cc->looks > MOST_OF_FRAGMENT)
			break;
		if (moved >= 0 && tc->fragment != moved)
			continue;
		if (moved < 0) {
			f = fragment_at(tc->fragment);
			if (is_idle && runs_in(f->word)) {
				fragment_is_uneven(f);
				if (!is_split(f))
					continue;
				fragment_run(p, tc);
				if (!scx_bpf_dsq_move(BPF_FOR_EACH_ITER, p, SCX_DSQ_LOCAL, 0))
					return MOVED_NONE;
				came_from(cpu, HEARTH_SOURCE_FRAGMENT, cpu_of_queue(queue));
				return MOVED_TASK;
			}
			if (is_idle && !is_late(p->scx.runnable_at, sums.fragment_patience))
				continue;
			if (tasks_in(f->word) > most_tasks || !fragment_move(tc->fragment, cpu, 0))
				continue;
			moved = tc->fragment;
		}
		fragment_task_move(BPF_FOR_EACH_ITER, p, tc, queue, cpu);
	}
	return moved >= 0 ? MOVED_FRAGMENT : MOVED_NONE;
}

/* A CPU that has less to do than another: it moves a fragment that makes that even; any, if the
 * other leaves them alone. */
verified_alone int move_fragment(s32 cpu)
{
	struct cpu_ctx *cc = cpu_ctx(cpu);
	s32 from = cc->moves_from;
	u32 most_tasks;

	cc->moves_from = NO_CPU;
	if (from < 0)
		return 0;
	if (is_left_alone(bound_queue(from)))
		most_tasks = ~0u;
	else if (is_uneven(from, cpu))
		most_tasks = waiting_at(from) - waiting_at(cpu) - 1;
	else
		return 0;
	return fragment_take(bound_queue(from), cpu, most_tasks, false);
}

/* A CPU that would idle: whether fragments wait for others. */
verified_alone int take_fragment(s32 cpu)
{
	struct hearth_shape *whole = shape_at(UNDIVIDED);
	u32 i;

	bpf_for(i, 0, topology.nr_online) {
		s32 other = whole->member[i & (HEARTH_MAX_CPUS - 1)];
		int moved;

		if (other == cpu || queue_ctx(bound_queue(other))->of_fragments <= 0)
			continue;
		moved = fragment_take(bound_queue(other), cpu, ~0u, true);
		if (moved == MOVED_TASK || (moved == MOVED_FRAGMENT && take(bound_queue(cpu), cpu)))
			return true;
	}
	return false;
}

/* Takes a task of the run queue: by its pid, or the first that may run here. */
verified_alone int take_searched(s32 pid, s32 cpu)
{
	struct task_struct *p;

	bpf_for_each(scx_dsq, p, RUN_QUEUE, 0) {
		struct hearth_task *tc = task_ctx(p);

		if (!tc || (pid != NO_PID && p->pid != pid) || !may_take(p, tc, cpu))
			continue;
		if (scx_bpf_dsq_move(BPF_FOR_EACH_ITER, p, SCX_DSQ_LOCAL, 0)) {
			taken_from(tc->last_cpu >= 0 ? tc->last_cpu : cpu, cpu);
			return true;
		}
		if (pid != NO_PID)
			break;
	}
	return false;
}

/* Anything that may run here, of any rank. */
verified_alone int take_anything(s32 cpu)
{
	u32 now = shape_index(published), before = shape_index_before(published);

	if (has_run_queue() && run_queue.waiting > 0 && take_searched(NO_PID, cpu))
		return true;
	if (queue_ctx(bound_queue(cpu))->waiting > 0 && take(bound_queue(cpu), cpu))
		return true;
	if (queue_ctx(shared_queue(cpu))->waiting > 0 && take(shared_queue(cpu), cpu))
		return true;
	return take_from_shape(now, cpu) || (before != now && take_from_shape(before, cpu)) ||
	       (policy.fragment_ns && fragments_are_used && take_fragment(cpu));
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
	if (best->rank != HEARTH_NO_RANK && best->rank <= kept_rank) {
		if (take_candidate(best, cpu) || take_next_best(cpu, kept_rank))
			return true;
	}
	return kept_rank == HEARTH_NO_RANK && take_anything(cpu);
}

#endif
