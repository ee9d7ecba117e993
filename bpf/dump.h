/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the scheduler knows, for the kernel's account of an error, in which it stands beside what
 * the kernel knows: of all, of each CPU that is busy or where tasks wait, and of each task that is
 * runnable. Times are in ms, or usage: CPU time over weight.
 */
#ifndef HEARTH_DUMP_H
#define HEARTH_DUMP_H

#include "gangs.h"

#define MS_NS 1000000

static __always_inline void dump_all(void)
{
	scx_bpf_dump("hearth: plan %lu in shape %lu; row %u; %ld wait in a queue of all CPUs\n",
		     published >> HEARTH_PUBLISHED_SEQUENCE, (u64)shape_index(published), row_now,
		     run_queue_waiting());
}

static __always_inline void dump_cpu(s32 cpu, bool idle)
{
	struct queue_ctx *shared = queue_ctx(shared_queue(cpu)),
			 *pinned = queue_ctx(pinned_queue(cpu));
	struct cpu_ctx *cc = cpu_ctx(cpu);

	/* The kernel leaves out idle CPUs of which nothing is said. */
	if (idle && !shared->waiting && !pinned->waiting)
		return;
	scx_bpf_dump("hearth: %ld wait in the shared queue, %ld in the pinned one: %ld may run "
		     "elsewhere, %ld of gangs\n",
		     shared->waiting, pinned->waiting, pinned->strays, pinned->members);
	scx_bpf_dump("hearth: idle %d, claimed %d, held by a higher class %d; pid %d ran last, of "
		     "usage %lu; clock %lu\n",
		     cc->is_idle, cc->claimed, cc->is_held, cc->last_pid, cc->running_usage / MS_NS,
		     cc->clock / MS_NS);
}

static __always_inline void dump_task(struct hearth_task *tc)
{
	scx_bpf_dump("hearth: usage %lu, weight %u; queue %d, CPU %d last; waited %lu beside "
		     "idle CPUs; home %d, part %d, row %d, fragment %d\n",
		     tc->usage / MS_NS, tc->weight, tc->queue, tc->last_cpu, tc->waited_ns / MS_NS,
		     tc->home, tc->part, tc->row, tc->fragment);
}

#endif
