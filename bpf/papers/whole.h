/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Fragments that are kept whole (data-affinity paper, section 3).
 *
 *   home      its tasks wait there, in the pinned queue, and run nowhere else as long as it is
 *             whole
 *   batch     within an epoch of virtual time they run in succession (fragments.h)
 *   whole     a CPU that is idle, or has less to do, takes a fragment of which no task runs, with
 *             all its tasks. A fragment of which one runs is split only when CPUs have been idle
 *             beside it for long
 *
 * So a task may be moved from one queue to another while it leaves the first. It counts in both
 * until that is over, and who comes last counts it out.
 */
#ifndef HEARTH_PAPERS_WHOLE_H
#define HEARTH_PAPERS_WHOLE_H

#include "moves.h"
#include "../take.h"
#include "../waits.h"

/* A change of the word that others keep from being made is tried so often. */
#define MOST_TRIES 16
/* Tasks of fragments that a CPU looks at to move one. */
#define MOST_OF_FRAGMENT 64

static __always_inline bool is_kept_whole(struct hearth_task *tc)
{
	return is_of_fragment(tc);
}

/* Its tasks wait in pinned queues, which are not compared. */
static __always_inline u64 epoch_slack(void)
{
	return 0;
}

static __always_inline void count_of_fragment(s32 queue, s64 change)
{
	__sync_fetch_and_add(&papers_queue(queue)->of_fragments, change);
}

/* Of the run queue nothing else is counted. Who is about to move a task counts it out. */
static __always_inline s32 queue_to_leave(struct hearth_task *tc)
{
	if (tc->queue == RUN_QUEUE) {
		__sync_fetch_and_add(&run_queue.waiting, -1);
		return NO_QUEUE;
	}
	if (tc->counted & COUNTED_FRAGMENT)
		return __sync_lock_test_and_set(&tc->queue, NO_QUEUE);
	return tc->queue;
}

static __always_inline bool is_of_batch(struct task_struct *p)
{
	struct hearth_task *tc = task_ctx(p);

	return tc && tc->counted & COUNTED_FRAGMENT;
}

/* A task of a fragment goes to the fragment's home, where it will run; false if that is elsewhere
 * by now. */
verified_alone int fragment_claim(struct hearth_task *tc __arg_nonnull, s32 cpu)
{
	struct fragment *f = fragment_at(tc->fragment);
	u32 i;

	bpf_for(i, 0, MOST_TRIES) {
		u64 word = f->word;

		if (home_in(word) != cpu)
			return false;
		if (__sync_val_compare_and_swap(&f->word, word, word + ONE_RUNS) != word)
			continue;
		tc->runs_in = tc->fragment;
		return true;
	}
	return false;
}

/* A fragment's tasks may run beside each other. That ends when no CPU has been idle beside it for a
 * while. */
static __always_inline bool is_split(struct fragment *f)
{
	u64 now = bpf_jiffies64();

	return is_before(f->uneven_from + papers_sums.split, now) &&
	       !is_before(f->uneven_until + papers_sums.fragment_patience + 2, now);
}

/* A CPU is idle beside a fragment of which a task runs elsewhere. */
static __always_inline void fragment_is_uneven(struct fragment *f)
{
	u64 now = bpf_jiffies64();

	if (is_before(f->uneven_until + papers_sums.fragment_patience + 2, now))
		f->uneven_from = now;
	f->uneven_until = now;
}

/* Whether a CPU has a quarter more to do than another (data-affinity paper, section 4). */
static __always_inline bool is_uneven(s32 one, s32 other)
{
	s64 more = waiting_at(one), less = waiting_at(other);

	return more > less + 1 && 4 * (more + 1) > 5 * (less + 1);
}

/* This CPU is about to move a task that waits in a pinned queue to another: from here on it counts
 * in both. Unless it has been taken, or another CPU moves it. */
verified_alone int queue_moves(struct hearth_task *tc __arg_nonnull, s32 from, s32 to, u64 since)
{
	s32 mark = MOVED_BY(bpf_get_smp_processor_id());

	if (from == to || __sync_val_compare_and_swap(&tc->queue, from, mark) != from)
		return false;
	queue_ages(to, since, __sync_fetch_and_add(&queue_ctx(to)->waiting, 1));
	count(COUNTED_FRAGMENT, to, 1);
	return true;
}

static __always_inline void queue_is_other(s32 queue)
{
	queue_ctx(queue)->head_is_known = false;
	head_renew(queue);
}

/* It waits in this one of the two now; or has left it meanwhile, and counts in neither. */
verified_alone int queue_moved(struct hearth_task *tc __arg_nonnull, s32 from, s32 to, s32 now)
{
	s32 mark = MOVED_BY(bpf_get_smp_processor_id());
	bool has_left = __sync_val_compare_and_swap(&tc->queue, mark, now) != mark;

	if (has_left || now != from)
		queue_uncount(COUNTED_FRAGMENT, from);
	if (has_left || now != to)
		queue_uncount(COUNTED_FRAGMENT, to);
	queue_is_other(to);
	queue_is_other(from);
	return 0;
}

/* Has a task wait at another CPU, from within a walk over the queue where it waits. Only of tasks
 * of fragments, which are counted nowhere else. The kernel does not move one that has come back
 * since the walk began. */
#define fragment_task_move(it, p, tc, from, to)                                                   \
	do {                                                                                      \
		if (!queue_moves(tc, from, pinned_queue(to), (p)->scx.runnable_at))               \
			break;                                                                    \
		scx_bpf_dsq_move_set_vtime(it, order_of(tc));                                     \
		queue_moved(tc, from, pinned_queue(to),                                           \
			    scx_bpf_dsq_move_vtime(it, p, pinned_queue(to), 0) ? pinned_queue(to) \
									       : from);           \
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
				kick_idle(home);
			continue;
		}
		return scx_bpf_dsq_move(BPF_FOR_EACH_ITER, p, SCX_DSQ_LOCAL, 0);
	}
	return false;
}

static __always_inline bool move_to_local(s32 queue, s32 cpu)
{
	if (papers_queue(queue)->of_fragments > 0)
		return take_of_fragments(queue, cpu);
	return scx_bpf_dsq_move_to_local(queue);
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
	struct papers_cpu *pc = papers_cpu(cpu);
	s32 moved = NO_FRAGMENT;
	struct task_struct *p;

	pc->looks = 0;
	bpf_for_each(scx_dsq, p, queue, 0) {
		struct hearth_task *tc = task_ctx(p);
		struct fragment *f;

		if (!tc || !(tc->counted & COUNTED_FRAGMENT) || !is_of_fragment(tc) ||
		    !may_go_to(p, cpu))
			continue;
		if (++pc->looks > MOST_OF_FRAGMENT)
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
			if (is_idle && !is_late(p->scx.runnable_at, papers_sums.fragment_patience))
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
verified_alone int fragment_move_here(s32 cpu)
{
	struct papers_cpu *pc = papers_cpu(cpu);
	s32 from = pc->moves_from;
	u32 most_tasks;

	pc->moves_from = NO_CPU;
	if (is_left_alone(pinned_queue(from)))
		most_tasks = ~0u;
	else if (is_uneven(from, cpu))
		most_tasks = waiting_at(from) - waiting_at(cpu) - 1;
	else
		return 0;
	return fragment_take(pinned_queue(from), cpu, most_tasks, false);
}

/* A CPU that would idle: whether fragments wait for others. */
verified_alone int fragment_take_any(s32 cpu)
{
	struct hearth_shape *whole = shape_at(UNDIVIDED);
	u32 i;

	bpf_for(i, 0, topology.nr_online) {
		s32 other = whole->member[i & (HEARTH_MAX_CPUS - 1)];
		int moved;

		if (other == cpu || papers_queue(pinned_queue(other))->of_fragments <= 0)
			continue;
		moved = fragment_take(pinned_queue(other), cpu, ~0u, true);
		if (moved == MOVED_TASK ||
		    (moved == MOVED_FRAGMENT && take(pinned_queue(cpu), cpu)))
			return true;
	}
	return false;
}

static __always_inline void look_after_fragments(s32 cpu, s32 other)
{
	if (papers_queue(pinned_queue(other))->of_fragments > 0 &&
	    (is_uneven(other, cpu) || is_left_alone(pinned_queue(other))))
		papers_cpu(cpu)->moves_from = other;
}

static __always_inline void move_fragment(s32 cpu)
{
	if (papers_cpu(cpu)->moves_from >= 0)
		fragment_move_here(cpu);
}

static __always_inline bool take_fragment(s32 cpu)
{
	return policy.fragment_ns && fragments_are_used && fragment_take_any(cpu);
}

/* Tasks of fragments wait here beside an idle CPU, which takes what it may (fragment_take). */
verified_alone int spill_fragments(s32 cpu)
{
	struct task_struct *p;
	u32 looks = 0;

	bpf_for_each(scx_dsq, p, pinned_queue(cpu), 0) {
		s32 idle;

		if (++looks > MOST_LOOKS)
			break;
		if (!is_of_batch(p))
			continue;
		idle = scx_bpf_pick_idle_cpu(p->cpus_ptr, 0);
		if (idle >= 0)
			kick_idle(idle);
		break;
	}
	return 0;
}

static __always_inline void offer_fragments(s32 cpu)
{
	if (papers_queue(pinned_queue(cpu))->of_fragments > 0)
		spill_fragments(cpu);
}

/* Whether a task runs away from its fragment, without need. */
static __always_inline bool is_away(struct task_struct *p, struct hearth_task *tc, s32 cpu)
{
	s32 home = fragment_cpu(p, tc);
	struct fragment *f;

	if (home < 0 || home == cpu || is_migration_disabled(p))
		return false;
	f = fragment_at(tc->fragment);
	if (cpu_ctx(home)->is_idle || !is_split(f))
		return true;
	f->uneven_until = bpf_jiffies64();
	return false;
}

#endif
