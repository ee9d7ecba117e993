// SPDX-License-Identifier: GPL-2.0-only
/*
 * The baseline: what Linux 7's own scheduler does, kernel/sched/fair.c, as a scheduler of the
 * simulated machine. It is a model, written anew after that file's rules; each function names the
 * kernel's. Constants are the kernel's.
 *
 *   eevdf.h    which task of a CPU runs next
 *   select.h   where a task goes that wakes up or begins
 *   balance.h  which tasks CPUs take from others
 *   domains.h  levels and groups of CPUs; average.h what they did lately; state.h the rest
 *
 * A task waits in sched_ext's queue of the CPU that it came to, and is moved from there when it is
 * picked. Balancing moves it from one run queue here to another, and the kernel's queue stays the
 * same: so nothing here needs more of sched_ext than Hearth's own scheduler does.
 *
 * Not modelled: groups of tasks, bandwidth, idle and batch tasks, buddies, core scheduling,
 * util_est, misfits, energy, hardware threads, balancing by NUMA faults, `exec`.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include "interface.h"
#include "scx.h"
#include "baseline/state.h"
#include "baseline/average.h"
#include "baseline/eevdf.h"
#include "baseline/domains.h"
#include "baseline/select.h"
#include "baseline/balance.h"

/* Until a tick, a wake-up or a yield ends it. */
#define NO_END (~0ull)

s32 BPF_STRUCT_OPS(hearth_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	struct entity *se = entity_of(p);

	/* ttwu_runnable: it has not left its queue. */
	if (se->delayed && may_run_on(p, se->cpu))
		return se->cpu;
	return select_cpu(p, se, bpf_get_smp_processor_id(), prev_cpu, wake_flags & SCX_WAKE_SYNC,
			  scx_bpf_now());
}

/* enqueue_task_fair; also a task that stops, or whose mask is another. */
void BPF_STRUCT_OPS(hearth_enqueue, struct task_struct *p, u64 enq_flags)
{
	struct entity *se = entity_of(p);
	s32 cpu = scx_bpf_task_cpu(p), to = se->pushed_to;
	u64 now = scx_bpf_now();
	bool comes = false;

	se->pushed_to = NO_CPU;
	if (se->delayed && se->cpu == cpu) {
		entity_requeue(&rqs[cpu], se, now);
		comes = true;
	} else if (se->on_rq && !se->delayed) {
		if (to >= 0 && may_run_on(p, to)) {
			entity_migrate(se, to, now);
			scx_bpf_kick_cpu(to, SCX_KICK_IDLE);
		} else if (!may_run_on(p, se->cpu)) {
			entity_migrate(se, cpu, now);
		}
	} else {
		if (se->delayed)
			entity_dequeue(&rqs[se->cpu], se, false, now);
		entity_moves(se, cpu, now);
		entity_enqueue(&rqs[cpu], se, now);
		comes = true;
	}
	se->dsq = cpu;
	scx_bpf_dsq_insert(p, cpu, NO_END, enq_flags);
	if (comes)
		check_preempt(cpu, se, now);
}

/* Moves a task that waits to the CPU that runs it next. */
static void run_next(struct entity *next)
{
	struct task_struct *p;

	bpf_for_each(scx_dsq, p, next->dsq, 0) {
		if (p == next->p && scx_bpf_dsq_move(BPF_FOR_EACH_ITER, p, SCX_DSQ_LOCAL, 0))
			return;
	}
	scx_bpf_error("a task that was picked waits nowhere");
}

/* pick_next_task_fair */
void BPF_STRUCT_OPS(hearth_dispatch, s32 cpu, struct task_struct *prev)
{
	struct run_queue *rq = &rqs[cpu];
	struct entity *curr = prev && prev->scx.flags & SCX_TASK_QUEUED ? entity_of(prev) : NULL;
	u64 now = scx_bpf_now();
	struct entity *next;

	rq->resched = false;
	curr_update(rq, now);
	if (curr && rq->push_to >= 0 && is_idle_cpu(rq->push_to)) {
		curr->pushed_to = rq->push_to;
		curr = NULL;
	}
	rq->push_to = NO_CPU;
	next = pick_runnable(rq, curr, now);
	if (!next && !rq->curr && balance_newidle(cpu, now))
		next = pick_runnable(rq, NULL, now);
	if (!next) {
		stats[cpu].idle++;
	} else if (next == curr) {
		stats[cpu].kept++;
		task_set_slice(prev, NO_END);
	} else {
		stats[cpu].own++;
		run_next(next);
	}
}

/* set_next_task_fair */
void BPF_STRUCT_OPS(hearth_running, struct task_struct *p)
{
	struct entity *se = entity_of(p);
	s32 cpu = scx_bpf_task_cpu(p);
	struct run_queue *rq = &rqs[cpu];
	u64 now = scx_bpf_now();

	if (se->cpu != cpu)
		entity_migrate(se, cpu, now);
	update_averages(rq, se, now);
	list_remove(rq, se);
	rq->curr = se;
	/* Where a higher class or the stopper makes it stop it stays in the CPU's local queue. */
	se->dsq = NO_CPU;
	rq->resched = false;
	rq->is_held = false;
	se->exec_start = now;
	se->protected = se->deadline;
	task_set_slice(p, NO_END);
}

/* task_tick_fair, sched_balance_trigger */
void BPF_STRUCT_OPS(hearth_tick, struct task_struct *p)
{
	s32 cpu = scx_bpf_task_cpu(p);
	struct run_queue *rq = &rqs[cpu];
	u64 now = scx_bpf_now();

	rq->is_idle = false;
	if (curr_update(rq, now) && rq->nr_queued > 1)
		rq->resched = true;
	balance_domains(cpu, NOT_IDLE, now);
	balance_for_idle(cpu, now);
	if (rq->resched)
		task_set_slice(p, 0);
}

/* put_prev_task_fair, or dequeue_task_fair of a task that sleeps. */
void BPF_STRUCT_OPS(hearth_stopping, struct task_struct *p, bool runnable)
{
	struct entity *se = entity_of(p);
	struct run_queue *rq = &rqs[se->cpu];
	u64 now = scx_bpf_now();

	if (rq->curr != se)
		return;
	if (runnable) {
		curr_update(rq, now);
		update_averages(rq, se, now);
		rq->curr = NULL;
		list_add(rq, se);
	} else if (!entity_delay(rq, se, now)) {
		entity_dequeue(rq, se, false, now);
	}
}

/* yield_task_fair: one that is eligible gives up the rest of its request, and all the next. */
bool BPF_STRUCT_OPS(hearth_yield, struct task_struct *from, struct task_struct *to)
{
	struct entity *se = entity_of(from);
	struct run_queue *rq = &rqs[se->cpu];

	task_set_slice(from, 0);
	if (rq->nr_queued == 1)
		return false;
	curr_update(rq, scx_bpf_now());
	if (is_eligible(rq, se))
		se->vruntime = se->deadline;
	se->deadline += virtual_ns(base_slice, se);
	return false;
}

void BPF_STRUCT_OPS(hearth_update_idle, s32 cpu, bool idle)
{
	struct run_queue *rq = &rqs[cpu];

	rq->is_idle = idle;
	rq->is_held = rq->is_held && !idle;
	if (!idle)
		idle_note(rq, scx_bpf_now());
}

/* A higher class takes the CPU. */
void BPF_STRUCT_OPS(hearth_cpu_release, s32 cpu, struct scx_cpu_release_args *args)
{
	rqs[cpu].is_held = true;
	scx_bpf_reenqueue_local();
}

/* The kernel's weights: 1024 at nice 0, for sched_ext's 100. */
void BPF_STRUCT_OPS(hearth_set_weight, struct task_struct *p, u32 weight)
{
	struct entity *se = entity_of(p);
	u64 own = (u64)weight * ONE / 100;

	/* Not of one that has ended. */
	if (se)
		entity_weigh(se, own ? own : 1, scx_bpf_now());
}

/* sched_fork, __sched_fork */
s32 BPF_STRUCT_OPS_SLEEPABLE(hearth_init_task, struct task_struct *p,
			     struct scx_init_task_args *args)
{
	struct entity *se = bpf_task_storage_get(&entities, p, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!se)
		return -ENOMEM;
	*se = (struct entity){.p = p, .cpu = NO_CPU, .weight = ONE, .is_new = true};
	se->dsq = NO_CPU;
	se->pushed_to = NO_CPU;
	se->recent_cpu = NO_CPU;
	se->avg.at_ns = scx_bpf_now();
	return 0;
}

/* switched_from_fair, or its end: nothing of it stays. */
void BPF_STRUCT_OPS(hearth_disable, struct task_struct *p)
{
	struct entity *se = entity_of(p);
	u64 now = scx_bpf_now();

	if (!se || se->cpu < 0)
		return;
	if (se->on_rq)
		entity_dequeue(&rqs[se->cpu], se, false, now);
	update_averages(&rqs[se->cpu], se, now);
	average_detach(&rqs[se->cpu], se);
	se->cpu = NO_CPU;
}

s32 BPF_STRUCT_OPS_SLEEPABLE(hearth_init)
{
	u32 place;
	s32 err;

	base_slice_make();
	domains_make();
	for (place = 0; place < topology.nr_online; place++) {
		struct run_queue *rq = &rqs[order[place]];

		rq->is_idle = true;
		rq->push_to = NO_CPU;
		rq->avg_idle = 2 * MIGRATION_COST_NS;
		err = scx_bpf_create_dsq(order[place], topology.node_of[order[place]]);
		if (err)
			return err;
	}
	return 0;
}

/* No watchdog ends the kernel's own scheduler. */
struct sched_ext_ops hearth_ops = {
	.select_cpu = hearth_select_cpu,
	.enqueue = hearth_enqueue,
	.dispatch = hearth_dispatch,
	.tick = hearth_tick,
	.running = hearth_running,
	.stopping = hearth_stopping,
	.yield = hearth_yield,
	.cpu_release = hearth_cpu_release,
	.update_idle = hearth_update_idle,
	.set_weight = hearth_set_weight,
	.init_task = hearth_init_task,
	.disable = hearth_disable,
	.init = hearth_init,
	.flags = SCX_OPS_KEEP_BUILTIN_IDLE | SCX_OPS_ENQ_LAST | SCX_OPS_ENQ_EXITING,
	.timeout_ms = ~0u,
	.name = "kernel",
};
