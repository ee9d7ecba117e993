// SPDX-License-Identifier: GPL-2.0-only
/*
 * A snapshot: one pass over all tasks that the scheduler may run, a record each. It is an object of
 * its own, which is loaded when the scheduler is on. It stops nobody: the kernel walks
 * its tasks under RCU, and each record says what held when its task was met.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>
#include "interface.h"
#include "snapshot.h"

char _license[] SEC("license") = "GPL";

#define SCHED_FIFO 1
#define SCHED_RR 2
#define SCHED_DEADLINE 6
#define SCHED_EXT 7

/* Set by the host: the scheduler has the tasks of the class SCHED_EXT only. */
const volatile bool is_partial;

/* The scheduler's own: the host has this object use it. */
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct hearth_task);
} task_ctxs SEC(".maps");

static __always_inline bool is_scheduled(struct task_struct *p)
{
	if (is_partial)
		return p->policy == SCHED_EXT;
	return p->policy != SCHED_FIFO && p->policy != SCHED_RR && p->policy != SCHED_DEADLINE;
}

static __always_inline u32 state_of(struct task_struct *task)
{
	/* Kernels have them as bytes or as integers. */
	if (BPF_CORE_READ_BITFIELD(task, on_cpu))
		return HEARTH_RUNNING;
	return BPF_CORE_READ_BITFIELD(task, on_rq) ? HEARTH_WAITING : HEARTH_ASLEEP;
}

SEC("iter/task")
int snapshot(struct bpf_iter__task *ctx)
{
	struct task_struct *p = ctx->task;
	struct hearth_sample sample = {};
	struct hearth_task *tc;
	u32 mask_bytes;

	if (!p || !is_scheduled(p))
		return 0;
	tc = bpf_task_storage_get(&task_ctxs, p, 0, 0);
	if (tc)
		sample.usage = tc->usage;
	sample.group = p->cgroups->dfl_cgrp->kn->id;
	sample.ran_ns = p->se.sum_exec_runtime;
	if (bpf_core_field_exists(p->sched_info.run_delay))
		sample.waited_ns = p->sched_info.run_delay;
	if (bpf_core_field_exists(p->scx.weight))
		sample.weight = p->scx.weight;
	mask_bytes = bpf_core_type_size(struct cpumask);
	if (mask_bytes > sizeof(sample.mask))
		mask_bytes = sizeof(sample.mask);
	bpf_probe_read_kernel(sample.mask, mask_bytes, p->cpus_ptr);
	sample.tid = p->pid;
	sample.process = p->tgid;
	sample.parent = BPF_CORE_READ(p, real_parent, tgid);
	sample.cpu = p->thread_info.cpu;
	sample.state = state_of(p);
	bpf_seq_write(ctx->meta->seq, &sample, sizeof(sample));
	return 0;
}
