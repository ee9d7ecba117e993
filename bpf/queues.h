/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Queues: two for each CPU, dispatch queues ordered by usage. A runnable task waits where it last
 * ran, so all tasks of a queue have the same credit on any CPU and only its head needs to be
 * looked at.
 *
 * In the shared one wait tasks that other CPUs may run, too, in the pinned one those that
 * only this CPU may (queue_ids.h). Each queue's head is kept as a number beside the
 * queue, and each cell (places.h) knows the CPU whose shared queue's head comes first. All
 * queues of a cell but a CPU's own give a task the same credit there, so looking for work
 * costs one comparison for each own queue and one for each cell of the CPU's part, whatever
 * the number of CPUs and tasks. When a cell's first head goes, the heads of its CPUs, 16 at
 * most, are looked through.
 *
 * On a real kernel CPUs race for these numbers, which are then a moment old: a
 * CPU may take a task that is not quite the first. What may not happen is that
 * a task is forgotten, so tasks are counted exactly, each once when it comes
 * and once when it leaves; who finds nothing where the count says otherwise
 * looks into every queue (take_anything).
 */
#ifndef HEARTH_QUEUES_H
#define HEARTH_QUEUES_H

#include "gangs.h"

static __always_inline void head_set(s32 queue, u64 usage)
{
	queue_ctx(queue)->head = usage;
	head_noted(queue);
}

/* Looks for the first of a cell's heads. */
verified_alone int cell_refresh(u32 cell)
{
	u64 best = NO_USAGE;
	s32 first = NO_CPU;
	u32 i;

	for (i = first_member(cell); i < end_of_members(cell) && can_loop; i++) {
		s32 cpu = member(cell, i);
		u64 usage = head_usage(shared_queue(cpu));

		if (usage < best) {
			best = usage;
			first = cpu;
		}
	}
	cell_ctx(cell)->first = first;
	return 0;
}

/* A queue's head is gone, or is another. */
static __always_inline void cell_look(s32 queue, s64 still_waiting)
{
	struct cell_ctx *cc;
	u32 cell;

	if (is_pinned_queue(queue))
		return;
	cell = cell_of(queue);
	cc = cell_ctx(cell);
	if (cc->waiting <= still_waiting) {
		__sync_lock_test_and_set(&cc->first, NO_CPU);
		if (cc->waiting <= still_waiting)
			return;
	}
	if (cc->first == queue || cc->first < 0)
		cell_refresh(cell);
}

/* Nothing waits here but `still_waiting`, unless one comes at this very moment: who
 * comes counts first and looks at the head then, so this does the reverse. */
static __always_inline bool head_clear(s32 queue, s64 still_waiting)
{
	struct queue_ctx *qc = queue_ctx(queue);

	__sync_lock_test_and_set(&qc->head, NO_USAGE);
	if (qc->waiting <= still_waiting)
		return true;
	/* Its usage is not known: somebody shall look. */
	head_set(queue, 0);
	return false;
}

/* The usage of a queue's first task, from the queue itself. */
static __always_inline u64 head_look(s32 queue)
{
	struct task_struct *p = dsq_first(queue);

	return p ? order_in_queue(p) : NO_USAGE;
}

/* Notes a queue's head anew, from the queue itself. */
static __always_inline void head_renew(s32 queue)
{
	u64 usage;

	if (queue_ctx(queue)->waiting <= 0 && head_clear(queue, 0))
		return;
	usage = head_look(queue);
	/* It is counted and not yet linked in: somebody shall look again, soon. */
	head_set(queue, usage == NO_USAGE ? 0 : usage);
}

/* The head of a queue may have changed. */
verified_alone int head_refresh(s32 queue)
{
	head_renew(queue);
	cell_look(queue, 0);
	return 0;
}

/* A CPU took nothing from a queue whose head it had seen. If the queue is empty, that was what a
 * look has left that another CPU overtook: it would come first for ever, and hide what waits. */
static __always_inline void queue_missed(s32 queue)
{
	if (dsq_first(queue))
		return;
	queue_ctx(queue)->head_is_known = false;
	head_refresh(queue);
}

/* A task of this queue was moved to a CPU, where it will run: a lone one leaves the
 * queue empty, and nobody needs to look. */
static __always_inline void queue_taken(s32 queue)
{
	if (queue_ctx(queue)->waiting != 1)
		return;
	queue_ctx(queue)->head_is_known = head_clear(queue, 1);
	cell_look(queue, 1);
}

/* A task is counted no more where it waited. */
static __always_inline void queue_uncount(u32 counted, s32 queue)
{
	if (__sync_fetch_and_add(&queue_ctx(queue)->waiting, -1) <= 0)
		scx_bpf_error("hearth: a task left queue %d, where none was counted", queue);
	count(counted, queue, -1);
}

/* A task no longer waits: it runs, or is not runnable any more. */
verified_alone int queue_leave(struct hearth_task *tc __arg_nonnull)
{
	s32 queue = queue_to_leave(tc);

	tc->queue = NO_QUEUE;
	if (queue < 0)
		return 0;
	queue_uncount(tc->counted, queue);
	__sync_fetch_and_add(&queue_ctx(queue)->weight, -(s64)tc->counted_weight);
	if (queue_ctx(queue)->head_is_known)
		queue_ctx(queue)->head_is_known = false;
	else
		head_refresh(queue);
	return 0;
}

static __always_inline void queue_left(struct hearth_task *tc)
{
	if (tc->queue != NO_QUEUE)
		queue_leave(tc);
}

/* A task that waits since some time comes to a queue with `others`. */
static __always_inline void queue_ages(s32 queue, u64 since, s64 others)
{
	struct queue_ctx *qc = queue_ctx(queue);

	if (others <= 0 || is_before(since, qc->oldest))
		qc->oldest = since;
}

/* A task is counted where it will wait for a CPU: in this queue. */
verified_alone s32 queue_come(struct task_struct *p __arg_trusted,
			      struct hearth_task *tc __arg_nonnull, s32 cpu, u64 usage)
{
	u32 counted = counted_as(p, tc, cpu);
	s32 queue = counted & COUNTED_SHARED ? shared_queue(cpu) : pinned_queue(cpu);
	struct cell_ctx *cell;

	tc->queue = queue;
	tc->counted = counted;
	tc->counted_weight = tc->weight;
	__sync_fetch_and_add(&queue_ctx(queue)->weight, (s64)tc->weight);
	queue_ages(queue, p->scx.runnable_at, __sync_fetch_and_add(&queue_ctx(queue)->waiting, 1));
	if (usage < head_usage(queue))
		head_set(queue, usage);
	count(counted, queue, 1);
	if (counted & COUNTED_SHARED) {
		cell = cell_ctx(counted & COUNTED_CELL);
		if (cell->first < 0 || usage < head_usage(shared_queue(cell->first)))
			cell->first = cpu;
	}
	return queue;
}

/* A task comes to wait for a CPU. The kernel links it in when the callback has returned. */
static __always_inline void queue_insert(struct task_struct *p, struct hearth_task *tc, s32 cpu,
					 u64 enq_flags)
{
	u64 usage = order_of(tc);
	s32 queue = queue_come(p, tc, cpu, usage);

	/* Another plan has been published. If it has another shape, its publisher may not have seen
	 * the task in the one before, where then nobody would look. */
	if (tc->planned != published) {
		queue_leave(tc);
		plan_follow(p, tc);
		queue = queue_come(p, tc, cpu, usage);
	}
	scx_bpf_dsq_insert_vtime(p, queue, tc->slice_ns, usage, enq_flags);
}

/* Takes a task out of a queue by its pid, unless it may not run here any more. */
verified_alone int take_pid(s32 queue, s32 pid, s32 cpu)
{
	struct task_struct *p;

	bpf_for_each(scx_dsq, p, queue, 0) {
		if (p->pid == pid && may_go_to(p, cpu))
			return scx_bpf_dsq_move(BPF_FOR_EACH_ITER, p, SCX_DSQ_LOCAL, 0);
	}
	return false;
}

#endif
