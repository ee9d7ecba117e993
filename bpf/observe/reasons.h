/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Why a task left its CPU, as far as tracepoints tell.
 *
 *   its state says that it sleeps          blocked
 *   its state says that it is dead         exited
 *   runnable, inside sched_yield           yielded
 *   runnable, next is the task that woke
 *   last on this CPU, a moment ago,
 *   or a kernel thread                     preempted
 *   runnable, else                         its slice was used up
 */
#ifndef HEARTH_OBSERVE_REASONS_H
#define HEARTH_OBSERVE_REASONS_H

#define STATE_DEAD 0x80
/* A wake-up that leads to a switch does so at once; one that waits for the slice's end waits for
 * milliseconds. */
#define PREEMPTION_NS 300000ULL

struct task_struct___old {
	long state;
	unsigned int cpu;
} __attribute__((preserve_access_index));

struct pt_regs___arm64 {
	int syscallno;
} __attribute__((preserve_access_index));

/* The last wake-up onto each CPU, a cache line each. */
struct wake {
	u64 at;
	u32 pid;
	u32 pad[13];
};

struct wake wakes[OBSERVE_MAX_CPUS];

/* The number of sched_yield among system calls; set by the host. */
const volatile long yield_call = -2;

static __always_inline u32 cpu_of(struct task_struct *p)
{
	if (bpf_core_field_exists(p->thread_info.cpu))
		return p->thread_info.cpu;
	return BPF_CORE_READ((struct task_struct___old *)p, cpu);
}

static __always_inline u64 state_of(struct task_struct *p)
{
	if (bpf_core_field_exists(p->__state))
		return p->__state;
	return BPF_CORE_READ((struct task_struct___old *)p, state);
}

static __always_inline bool in_yield(struct task_struct *p)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(p);

	if (bpf_core_field_exists(struct pt_regs, orig_ax))
		return (long)BPF_CORE_READ(regs, orig_ax) == yield_call;
	if (bpf_core_field_exists(struct pt_regs___arm64, syscallno))
		return BPF_CORE_READ((struct pt_regs___arm64 *)regs, syscallno) == yield_call;
	return false;
}

static __always_inline bool just_woke(struct task_struct *next, u64 now)
{
	u32 here = bpf_get_smp_processor_id() & (OBSERVE_MAX_CPUS - 1);

	if (next->flags & PF_KTHREAD)
		return true;
	return wakes[here].pid == next->pid && now - wakes[here].at < PREEMPTION_NS;
}

static __always_inline u32 why_it_ends(bool preempt, struct task_struct *prev,
				       struct task_struct *next, u64 now)
{
	u64 state = state_of(prev);

	if (state & STATE_DEAD)
		return OBSERVE_EXITED;
	if (state && !preempt)
		return OBSERVE_BLOCKED;
	if (in_yield(prev))
		return OBSERVE_YIELDED;
	return just_woke(next, now) ? OBSERVE_PREEMPTED : OBSERVE_SLICE;
}

static __always_inline void note_wake(struct task_struct *p)
{
	u32 cpu = cpu_of(p) & (OBSERVE_MAX_CPUS - 1);
	u64 now = bpf_ktime_get_ns();

	wakes[cpu].pid = p->pid;
	wakes[cpu].at = now;
	wait_begins_awake(p, now);
}

SEC("tp_btf/sched_wakeup")
int BPF_PROG(on_wakeup, struct task_struct *p)
{
	note_wake(p);
	return 0;
}

SEC("tp_btf/sched_wakeup_new")
int BPF_PROG(on_wakeup_new, struct task_struct *p)
{
	note_wake(p);
	return 0;
}

#endif
