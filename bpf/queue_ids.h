/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Ids of dispatch queues, and what they say.
 *
 *   bit  10  9 | 8 ......... 0
 *        kind  |     CPU
 *
 *   kind               who may take from it
 *   0  SHARED          any CPU that the task's mask allows
 *   1  PINNED          this CPU alone: its tasks shall not hide others from other CPUs
 *   2  RUN             any CPU: one for the machine (CPU 0), see papers/run_queue.h
 *
 * Ids of the first two kinds are also indices of queue_ctxs.
 */
#ifndef HEARTH_QUEUE_IDS_H
#define HEARTH_QUEUE_IDS_H

#include "interface.h"

#define QUEUE_CPU_BITS 9
#define QUEUE_KIND_BITS 2

enum queue_kind {
	QUEUE_SHARED = 0,
	QUEUE_PINNED = 1,
	QUEUE_RUN = 2,
};

/* Queues that belong to a CPU. */
#define NR_CPU_QUEUES (2 << QUEUE_CPU_BITS)

#define RUN_QUEUE (QUEUE_RUN << QUEUE_CPU_BITS)

_Static_assert(1 << QUEUE_CPU_BITS == HEARTH_MAX_CPUS, "a queue's id has room for each CPU");
_Static_assert(QUEUE_RUN < 1 << QUEUE_KIND_BITS, "a queue's id has room for each kind");

static __always_inline s32 shared_queue(s32 cpu)
{
	return QUEUE_SHARED << QUEUE_CPU_BITS | cpu;
}

static __always_inline s32 pinned_queue(s32 cpu)
{
	return QUEUE_PINNED << QUEUE_CPU_BITS | cpu;
}

static __always_inline bool is_pinned_queue(s32 queue)
{
	return queue >> QUEUE_CPU_BITS == QUEUE_PINNED;
}

static __always_inline s32 cpu_of_queue(s32 queue)
{
	return queue & ((1 << QUEUE_CPU_BITS) - 1);
}

#endif
