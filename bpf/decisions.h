/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Decisions, told to whoever traces: what was considered at a dispatch is noted on
 * the CPU, and goes out when the task begins to run, for only then is it known
 * which task came. While nobody traces, this costs a test at each step.
 */
#ifndef HEARTH_DECISIONS_H
#define HEARTH_DECISIONS_H

#include "state.h"

/* Set by the host: whether to tell, and of which task alone, if not 0. */
volatile u32 tracing;
volatile s32 traced_pid;
/* Decisions that found no room. */
u64 decisions_lost;

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} decisions SEC(".maps");

/* The best candidate of other CPUs' queues. */
static __always_inline void decision_elsewhere(s32 cpu, struct candidate *best)
{
	struct hearth_decision *noted = &cpu_ctx(cpu)->noted;

	noted->elsewhere_rank = best->rank;
	noted->elsewhere = best->rank == HEARTH_NO_RANK ? NO_CPU : best->queue;
}

/* The task that may go on, and the first of the own queues and the run queue. */
static __always_inline void decision_considered(s32 cpu, s64 kept, s64 own)
{
	struct hearth_decision *noted = &cpu_ctx(cpu)->noted;

	noted->kept_rank = kept;
	noted->own_rank = own;
}

static __always_inline void decision_no_ranks(s32 cpu)
{
	struct hearth_decision *noted = &cpu_ctx(cpu)->noted;

	decision_considered(cpu, HEARTH_NO_RANK, HEARTH_NO_RANK);
	noted->elsewhere_rank = HEARTH_NO_RANK;
	noted->elsewhere = NO_CPU;
}

static __always_inline void decision_source(s32 cpu, u32 source, s32 from)
{
	cpu_ctx(cpu)->noted.source = source;
	cpu_ctx(cpu)->noted.from = from;
}

/* The next task of a CPU waited at another, or here: counted, and told. */
static __always_inline void came_from(s32 cpu, u32 source, s32 from)
{
	struct hearth_stats *st = stats_of(cpu);

	switch (source) {
	case HEARTH_SOURCE_OWN:
		st->own++;
		break;
	case HEARTH_SOURCE_DOMAIN:
		st->domain++;
		break;
	case HEARTH_SOURCE_FOREIGN:
		st->foreign++;
		break;
	case HEARTH_SOURCE_LATE:
		st->late++;
		break;
	case HEARTH_SOURCE_STRAY:
		st->strays++;
		break;
	case HEARTH_SOURCE_MEMBER:
		st->members++;
		break;
	case HEARTH_SOURCE_FRAGMENT:
		st->fragments++;
		break;
	}
	if (tracing)
		decision_source(cpu, source, from);
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

/* A wake-up placed the task here: nothing was compared. */
static __always_inline void decision_direct(s32 cpu)
{
	decision_no_ranks(cpu);
	decision_source(cpu, HEARTH_SOURCE_DIRECT, NO_CPU);
}

static __always_inline void decision_tell(struct task_struct *p, struct hearth_task *tc, s32 cpu)
{
	struct hearth_decision *noted = &cpu_ctx(cpu)->noted;

	if (traced_pid && traced_pid != p->pid && traced_pid != p->tgid)
		return;
	noted->at_ns = bpf_ktime_get_ns();
	noted->pid = p->pid;
	noted->cpu = cpu;
	noted->last_cpu = tc->last_cpu;
	noted->usage = tc->usage;
	bpf_probe_read_kernel_str(noted->comm, sizeof(noted->comm), p->comm);
	if (bpf_ringbuf_output(&decisions, noted, sizeof(*noted), 0))
		__sync_fetch_and_add(&decisions_lost, 1);
	decision_no_ranks(cpu);
	decision_source(cpu, HEARTH_SOURCE_KERNEL, NO_CPU);
}

static __always_inline void decision_idle(s32 cpu)
{
	struct hearth_decision idle = {.source = HEARTH_SOURCE_IDLE, .cpu = cpu, .from = NO_CPU};

	if (traced_pid)
		return;
	idle.at_ns = bpf_ktime_get_ns();
	if (bpf_ringbuf_output(&decisions, &idle, sizeof(idle), 0))
		__sync_fetch_and_add(&decisions_lost, 1);
}

#endif
