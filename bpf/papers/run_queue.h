/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The run queue: one for the machine, as in the UNIX of the papers (disciplines system-v and
 * 4.3bsd). Tasks wait in it in the order in which they came, all but those that a plan has placed
 * (plans.h). A CPU that looks for work searches it: the least rank runs, and of equals who came
 * first. Credits count then, and at no other time.
 *
 * attached: a task stays for life on the CPU where it first ran, and so do the tasks that it makes.
 * A mask that has lost this CPU goes before that.
 *
 * A search looks at the MOST_SEARCHED tasks that have waited longest. One of them that has waited
 * for too long (waits.h) goes first.
 *
 * complex (Torrellas, Tucker and Gupta, section 5.4): every task that last ran here has the time
 * credit, less fade x the time since.
 */
#ifndef HEARTH_PAPERS_RUN_QUEUE_H
#define HEARTH_PAPERS_RUN_QUEUE_H

#include "moves.h"
#include "../candidates.h"
#include "../spill.h"
#include "../waits.h"

#define MOST_SEARCHED 256

/* The CPU to which a task is attached, or NO_CPU. */
static __always_inline s32 attached_to(struct task_struct *p, struct hearth_task *tc)
{
	s32 cpu = tc->attached_cpu;

	return is_attached() && cpu >= 0 && bpf_cpumask_test_cpu(cpu, p->cpus_ptr) ? cpu : NO_CPU;
}

static __always_inline bool may_take(struct task_struct *p, struct hearth_task *tc, s32 cpu)
{
	s32 attached = attached_to(p, tc);

	return (attached < 0 || attached == cpu) && may_go_to(p, cpu);
}

/* A CPU makes a task run for the first time. */
static __always_inline void ran_first(struct hearth_task *tc, s32 cpu)
{
	if (is_attached() && tc->attached_cpu < 0)
		tc->attached_cpu = cpu;
}

static __always_inline s64 run_queue_waiting(void)
{
	return has_run_queue() ? run_queue.waiting : 0;
}

/* A task comes to wait. It is counted before the kernel links it in: who finds fewer knows that
 * one is on its way. */
static __always_inline bool run_queue_insert(struct task_struct *p, struct hearth_task *tc,
					     u64 enq_flags)
{
	if (!has_run_queue() || is_planned(tc))
		return false;
	tc->queue = RUN_QUEUE;
	tc->counted = 0;
	__sync_fetch_and_add(&run_queue.waiting, 1);
	scx_bpf_dsq_insert(p, RUN_QUEUE, tc->slice_ns, enq_flags);
	return true;
}

/* Whether there is a task that a CPU may take, or is to come. */
verified_alone int run_queue_has_work(s32 cpu)
{
	struct papers_cpu *pc = papers_cpu(cpu);
	struct task_struct *p;

	pc->looks = 0;
	bpf_for_each(scx_dsq, p, RUN_QUEUE, 0) {
		struct hearth_task *tc = task_ctx(p);

		if (++pc->looks > MOST_SEARCHED)
			return false;
		if (tc && may_take(p, tc, cpu))
			return true;
	}
	return run_queue.waiting > pc->looks;
}

/* Of a task on a CPU, `away` ns after it last ran. */
static __always_inline u64 credit_of_task(struct hearth_task *tc, s32 pid, s32 cpu, u64 away)
{
	u64 credit, faded;

	if (tc->last_cpu < 0)
		return 0;
	credit = credit_of_queue(tc->last_cpu, cpu);
	if (tc->last_cpu != cpu)
		return credit;
	if (is_complex()) {
		faded = away / 1000 * policy.fade_milli;
		if (faded < tc->time_ns)
			credit += tc->time_ns - faded;
	} else if (cpu_ctx(cpu)->last_pid == pid) {
		credit += tc->time_ns;
	}
	return credit;
}

verified_alone s64 rank_of_task(struct hearth_task *tc __arg_nonnull, s32 pid, s32 cpu, u64 away)
{
	return rank(usage_of(tc), credit_of_task(tc, pid, cpu, away));
}

/* The task that ranks first here. */
verified_alone int search(s32 cpu)
{
	struct papers_cpu *pc = papers_cpu(cpu);
	struct candidate *best = &cpu_ctx(cpu)->best;
	u64 now = scx_bpf_now();
	struct task_struct *p;

	pc->looks = 0;
	pc->least_usage = NO_USAGE;
	bpf_for_each(scx_dsq, p, RUN_QUEUE, 0) {
		struct hearth_task *tc = task_ctx(p);

		if (++pc->looks > MOST_SEARCHED)
			break;
		if (!tc || !may_take(p, tc, cpu))
			continue;
		if (is_late(p->scx.runnable_at, sums.patience)) {
			offer(best, RUN_QUEUE, p->pid, FIRST_RANK);
			break;
		}
		if (usage_of(tc) < pc->least_usage)
			pc->least_usage = usage_of(tc);
		offer(best, RUN_QUEUE, p->pid, rank_of_task(tc, p->pid, cpu, now - tc->stopped_at));
	}
	return 0;
}

static __always_inline void offer_searched(s32 cpu)
{
	if (run_queue_waiting() > 0)
		search(cpu);
}

static __always_inline u64 least_searched(s32 cpu)
{
	return run_queue_waiting() > 0 ? papers_cpu(cpu)->least_usage : NO_USAGE;
}

/* Takes a task: by its pid, or the first that may run here. */
verified_alone int take_by_pid(s32 pid, s32 cpu)
{
	struct task_struct *p;

	bpf_for_each(scx_dsq, p, RUN_QUEUE, 0) {
		struct hearth_task *tc = task_ctx(p);

		if (!tc || (pid != NO_PID && p->pid != pid) || !may_take(p, tc, cpu))
			continue;
		if (scx_bpf_dsq_move(BPF_FOR_EACH_ITER, p, SCX_DSQ_LOCAL, 0)) {
			taken_from(tc->last_cpu >= 0 ? tc->last_cpu : cpu, cpu);
			return true;
		}
		if (pid != NO_PID)
			break;
	}
	return false;
}

static __always_inline bool take_searched(s32 pid, s32 cpu)
{
	return (pid != NO_PID || run_queue_waiting() > 0) && take_by_pid(pid, cpu);
}

static __always_inline void offer_run_queue(void)
{
	if (run_queue_waiting() > 0)
		spill(RUN_QUEUE, MOST_SEARCHED);
}

#endif
