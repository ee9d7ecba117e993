/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Hooks: where the papers' schedulers (papers.bpf.c) do otherwise than this one. Of each, what it
 * is here, which is mostly nothing. They define their own in papers/, and leave out moves.h,
 * paid.h and preempt.h, for which they have others.
 */
#ifndef HEARTH_HOOKS_H
#define HEARTH_HOOKS_H

#include "state.h"

#ifdef HEARTH_PAPERS
#define HOOK(type, name, parameters, value) static type name parameters;
#define HOOK_DO(name, parameters) static void name parameters;
/* They go by the kernel's own mask of idle CPUs. */
#define IDLE_FLAGS SCX_OPS_KEEP_BUILTIN_IDLE
#else
#define IDLE_FLAGS 0
#define HOOK(type, name, parameters, value)         \
	static __always_inline type name parameters \
	{                                           \
		return value;                       \
	}
#define HOOK_DO(name, parameters)                   \
	static __always_inline void name parameters \
	{                                           \
	}
#endif

/* ---- The order of tasks ---- */

/* Whether usage is virtual time. */
HOOK(bool, is_virtual_time, (void), true)
/* A task's usage, as it counts. */
HOOK(u64, usage_of, (struct hearth_task * tc), tc->usage)
/* The timer interrupts a running task. */
HOOK_DO(usage_tick_more, (struct hearth_task * tc))
/* What CPU time that bounds usage counts as, for a task of this inverse weight: a heavy task is
 * charged little for each slice, and would otherwise have many before a bound is reached. */
HOOK(u64, weighed, (u64 ns, u32 inverse_weight),
     inverse_weight < COMMON_INVERSE ? ns * inverse_weight >> 16 : ns)
/* The usage of a queue's first task, as it was noted; and it is noted. */
HOOK(u64, head_usage, (s32 queue), queue_ctx(queue)->head)
HOOK_DO(head_noted, (s32 queue))
/* What orders a task in its queue. */
HOOK(u64, order_in_queue, (struct task_struct * p), p->scx.dsq_vtime)
/* How much less that is than usage, at most, where tasks of fragments wait. */
HOOK(u64, epoch_slack, (void), sums.epoch_rest)
/* Puts a CPU's queues in order anew. */
HOOK_DO(queues_renew, (s32 cpu))

/* ---- Where a task waits ---- */

/* Whether it waits in a queue of all CPUs; and how many do. */
HOOK(bool, run_queue_insert, (struct task_struct * p, struct hearth_task *tc, u64 enq_flags), false)
HOOK(s64, run_queue_waiting, (void), 0)
/* Whether a fragment's tasks wait at its home, for that CPU alone; and such a one is counted. */
HOOK(bool, is_kept_whole, (struct hearth_task * tc), false)
HOOK_DO(count_of_fragment, (s32 queue, s64 change))
/* The queue in which a task waits that leaves it; less than 0 if it is not counted in one. */
HOOK(s32, queue_to_leave, (struct hearth_task * tc), tc->queue)
/* Whether a CPU may take a task that waits. */
HOOK(bool, may_take, (struct task_struct * p, struct hearth_task *tc, s32 cpu), may_go_to(p, cpu))

/* ---- What a CPU runs ---- */

/* Whether a CPU that has work may draw from another: that one's tasks weigh more. */
HOOK(bool, is_heavier, (s32 other, s32 cpu), weight_at(other) > weight_at(cpu))

/* Offers a task that is not first in its queue; takes it by its pid, or any such. */
HOOK_DO(offer_searched, (s32 cpu))
HOOK(bool, take_searched, (s32 pid, s32 cpu), false)
HOOK(u64, least_searched, (s32 cpu), NO_USAGE)
/* Takes the first task of a queue. */
HOOK(bool, move_to_local, (s32 queue, s32 cpu), scx_bpf_dsq_move_to_local(queue))
/* Whether a task is left to the CPU in whose queue it waits. */
HOOK(bool, is_of_batch, (struct task_struct * p), false)
/* Fragments of another CPU: whether one is to be moved here, it is moved, and any is taken. */
HOOK_DO(look_after_fragments, (s32 cpu, s32 other))
HOOK_DO(move_fragment, (s32 cpu))
HOOK(bool, take_fragment, (s32 cpu), false)
/* Has idle CPUs look for what waits in the queue of all, or at the home of its fragment. */
HOOK_DO(offer_run_queue, (void))
HOOK_DO(offer_fragments, (s32 cpu))

/* ---- A task runs, stops, begins; the scheduler begins ---- */

HOOK_DO(ran_first, (struct hearth_task * tc, s32 cpu))
HOOK_DO(stopped, (struct hearth_task * tc))
HOOK_DO(task_begin_more, (struct hearth_task * tc, struct hearth_task *of_maker))
HOOK(s32, machine_begin_more, (void), 0)

#endif
