// SPDX-License-Identifier: GPL-2.0-only
/*
 * A scheduler that is worse on purpose: each task that wakes goes to the idle CPU that is farthest,
 * by number, from where its data is. What waits for a CPU waits for all of them, first come, first
 * served. Or it takes the nearest, and is the same in all else: comparisons of schedulers have to
 * tell the two apart.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#define BPF_STRUCT_OPS(name, args...) SEC("struct_ops/" #name) BPF_PROG(name, ##args)

#define MOST_CPUS 512

char _license[] SEC("license") = "GPL";

/* Set before it is loaded. */
const volatile bool to_nearest = false;

static bool takes(struct task_struct *p, s32 cpu, s32 cpus)
{
	return cpu >= 0 && cpu < cpus && bpf_cpumask_test_cpu(cpu, p->cpus_ptr) &&
	       scx_bpf_test_and_clear_cpu_idle(cpu);
}

s32 BPF_STRUCT_OPS(farthest_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	s32 cpus = (s32)scx_bpf_nr_cpu_ids(), distance;

	bpf_for(distance, 0, MOST_CPUS) {
		s32 away = to_nearest ? distance : cpus - 1 - distance, cpu = -1;

		if (away < 0 || away >= cpus)
			break;
		if (takes(p, prev_cpu + away, cpus))
			cpu = prev_cpu + away;
		else if (takes(p, prev_cpu - away, cpus))
			cpu = prev_cpu - away;
		if (cpu >= 0) {
			scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SCX_SLICE_DFL, 0);
			return cpu;
		}
	}
	return prev_cpu;
}

void BPF_STRUCT_OPS(farthest_enqueue, struct task_struct *p, u64 enq_flags)
{
	scx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, SCX_SLICE_DFL, enq_flags);
}

SEC(".struct_ops.link")
struct sched_ext_ops farthest_ops = {
	.select_cpu = (void *)farthest_select_cpu,
	.enqueue = (void *)farthest_enqueue,
	.name = "farthest",
};
