/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the papers' schedulers remember beside what all do.
 */
#ifndef HEARTH_PAPERS_STATE_H
#define HEARTH_PAPERS_STATE_H

#include "../state.h"

/* Of a task that a CPU moves from one queue to another: it waits in either. */
#define MOVED_BY(cpu) (NO_QUEUE - 1 - (s32)(cpu))

struct papers_queue {
	/* The decay that the head's usage has seen. */
	u64 head_epoch;
	/* Tasks that wait at the home of their fragment; see whole.h. */
	s64 of_fragments;
} __attribute__((aligned(CACHE_LINE)));

struct papers_cpu {
	/* The decay that the order of the queues has seen. */
	u64 queue_epoch;
	/* Of the task that runs here. */
	s64 running_rank;
	/* The CPU from whose queue a fragment is to be moved here, or NO_CPU. */
	s32 moves_from;
	/* Of a walk over a queue: tasks looked at, and the least usage of those that may run here.
	 * In memory, for the verifier would follow each value. */
	u32 looks;
	u64 least_usage;
} __attribute__((aligned(CACHE_LINE)));

/* Tasks in the run queue, or moved from it to a CPU where they will run. */
struct {
	s64 waiting;
} __attribute__((aligned(CACHE_LINE))) run_queue;

/* Made once, of the policy's numbers. */
struct {
	/* system-v, 4.3bsd: CPU time for which priority falls by one point. */
	u64 point_ns;
	/* Jiffies for which a fragment's tasks are left to its home, and CPUs idle beside it. */
	u64 fragment_patience;
	u64 split;
} papers_sums;

struct papers_queue papers_queues[NR_CPU_QUEUES];
struct papers_cpu papers_cpus[HEARTH_MAX_CPUS];

static __always_inline struct papers_queue *papers_queue(s32 queue)
{
	return &papers_queues[queue & (NR_CPU_QUEUES - 1)];
}

static __always_inline struct papers_cpu *papers_cpu(s32 cpu)
{
	return &papers_cpus[cpu & (HEARTH_MAX_CPUS - 1)];
}

/* Whether tasks wait in one run queue, as far as no plan has placed them. */
static __always_inline bool has_run_queue(void)
{
	return policy.discipline == HEARTH_SYSTEM_V || policy.discipline == HEARTH_BSD;
}

static __always_inline bool is_attached(void)
{
	return policy.flags & HEARTH_ATTACHED;
}

static __always_inline bool is_complex(void)
{
	return policy.flags & HEARTH_COMPLEX;
}

#endif
