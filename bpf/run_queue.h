/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The run queue: one for the machine, as in the UNIX of the papers (disciplines system-v and
 * 4.3bsd). Tasks wait in it in the order in which they came, all but those that a plan has placed
 * (places.h). A CPU that looks for work searches it: the least rank runs, and of equals who came
 * first. Credits count then, and at no other time.
 *
 * attached: a task stays for life on the CPU where it first ran, and so do the tasks that it makes.
 * A mask that has lost this CPU goes before that.
 *
 * A search looks at the MOST_SEARCHED tasks that have waited longest. One of them that has waited
 * for too long (waits.h) goes first.
 */
#ifndef HEARTH_RUN_QUEUE_H
#define HEARTH_RUN_QUEUE_H

#define MOST_SEARCHED 256

/* The CPU to which a task is attached, or NO_CPU. */
static __always_inline s32 attached_to(struct task_struct *p, struct hearth_task *tc)
{
	s32 cpu = tc->attached_cpu;

	return is_attached() && cpu >= 0 && bpf_cpumask_test_cpu(cpu, p->cpus_ptr) ? cpu : NO_CPU;
}

/* Whether a CPU may take a task that waits. */
static __always_inline bool may_take(struct task_struct *p, struct hearth_task *tc, s32 cpu)
{
	s32 attached = attached_to(p, tc);

	return (attached < 0 || attached == cpu) && may_go_to(p, cpu);
}

/* A task comes to wait. It is counted before the kernel links it in: who finds fewer knows that
 * one is on its way. */
static __always_inline void run_queue_insert(struct task_struct *p, struct hearth_task *tc,
					     u64 enq_flags)
{
	tc->queue = RUN_QUEUE;
	tc->counted = 0;
	__sync_fetch_and_add(&run_queue.waiting, 1);
	scx_bpf_dsq_insert(p, RUN_QUEUE, tc->slice_ns, enq_flags);
}

/* Whether there is a task that a CPU may take, or is to come. */
verified_alone int run_queue_has_work(s32 cpu)
{
	struct cpu_ctx *cc = cpu_ctx(cpu);
	struct task_struct *p;

	cc->looks = 0;
	bpf_for_each(scx_dsq, p, RUN_QUEUE, 0) {
		struct hearth_task *tc = task_ctx(p);

		if (++cc->looks > MOST_SEARCHED)
			return false;
		if (tc && may_take(p, tc, cpu))
			return true;
	}
	return run_queue.waiting > cc->looks;
}

#endif
