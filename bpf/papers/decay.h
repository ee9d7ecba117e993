/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Usage under the disciplines of the papers' machines. The least runs first.
 *
 *   system-v  charged one tick whenever the timer interrupts it, up to `saturation`, and
 *             halved for every task once in `decay`. It counts in whole points of
 *             priority, one for 20 ms (Torrellas, Tucker and Gupta, section 4:
 *             prio = base + cpu / 2). A task that blocks before the tick is not
 *             charged, and comes first when it wakes.
 *   4.3bsd    the same, but what is left after a decay is 2 load / (2 load + 1), and a
 *             point is 40 ms (Leffler and others, The Design and Implementation of the
 *             4.3BSD UNIX Operating System, section 4.4)
 *   fixed     charged one tick, and never forgotten
 *   fair      virtual time (usage.h). One that slept begins behind the clock by all credits and a
 *             quantum, so it comes before those that are drawn from other CPUs, however far
 *             behind these are. No bound is over its weight
 *
 * A decay is lazy: a global epoch counts them, each task knows the epoch of its
 * usage. The run queue is searched, so its tasks need no order; tasks that a plan
 * has placed wait in order of usage, and only those of different epochs compare
 * wrongly, so such a queue is put in order anew once an epoch.
 */
#ifndef HEARTH_PAPERS_DECAY_H
#define HEARTH_PAPERS_DECAY_H

#include "state.h"
#include "../queues.h"

/* Two clock ticks of 10 ms of System V (prio = base + cpu / 2), four of 4.3BSD (p_cpu / 4). */
#define SYSTEM_V_POINT_NS 20000000ull
#define BSD_POINT_NS 40000000ull

/* system-v, 4.3bsd: decays so far, and when the next one is due. */
u64 epoch;
static u64 next_decay;

/* 4.3bsd: the load of a CPU, the average over a minute, in 1024ths; and what a decay leaves under
 * it, in 65536ths. */
u64 load;
u64 decay_leaves;

/* exp(-5/60), in 1024ths: what is left of a load after the five seconds between two looks. */
#define LOAD_LEFT 942
#define LOAD_EACH 5

/* So many decays leave nothing that counts. */
#define AGE_BITS 6

/* Decays that a task has not seen leave what the last of them did, as updatepri() of 4.3BSD has it
 * for one that slept: the load of a minute changes slowly. */
static __always_inline u64 decayed_by_load(u64 usage, u64 age)
{
	u64 leaves = decay_leaves;
	u32 bit;

	if (age >> AGE_BITS)
		return 0;
	for (bit = 0; bit < AGE_BITS; bit++) {
		if (age >> bit & 1)
			usage = usage * leaves >> 16;
		leaves = leaves * leaves >> 16;
	}
	return usage;
}

static __always_inline u64 decayed(u64 usage, u64 from_epoch, u64 to_epoch)
{
	u64 age;

	if (!has_run_queue())
		return usage;
	age = to_epoch - from_epoch;
	if (policy.discipline == HEARTH_BSD)
		return decayed_by_load(usage, age);
	return age < 64 ? usage >> age : 0;
}

/* In whole points, for of equals who came first is to run. */
static __always_inline u64 usage_of(struct hearth_task *tc)
{
	u64 usage = decayed(tc->usage, tc->epoch, epoch);

	return has_run_queue() ? usage - usage % papers_sums.point_ns : usage;
}

/* The timer interrupts a running task. */
static __always_inline void usage_charge(struct hearth_task *tc, u64 ns)
{
	u64 now = epoch, usage = decayed(tc->usage, tc->epoch, now);

	if (!has_run_queue() || usage < policy.saturation_ns)
		usage += ns * tc->inverse_weight >> 16;
	if (has_run_queue() && usage > policy.saturation_ns)
		usage = policy.saturation_ns;
	tc->usage = usage;
	tc->epoch = now;
}

/* 4.3bsd: how much of usage the next decay leaves. */
verified_alone int decay_by_load(u64 next)
{
	s64 runnable = run_queue.waiting;
	u64 now;
	u32 i;

	bpf_for(i, 0, topology.nr_cpus)
		runnable += !cpu_ctx(i)->is_idle;
	now = (u64)runnable * 1024 / topology.nr_online;
	/* A machine is as if it had been under its first load for long. */
	if (next == 1)
		load = now;
	else if (next % LOAD_EACH == 0)
		load = (load * LOAD_LEFT + now * (1024 - LOAD_LEFT)) >> 10;
	decay_leaves = (load * 2 << 16) / (load * 2 + 1024);
	return 0;
}

/* One of the CPUs that tick when a decay is due makes it. */
static __always_inline void decay_if_due(void)
{
	u64 now = scx_bpf_now(), due = next_decay;

	if (now < due ||
	    __sync_val_compare_and_swap(&next_decay, due, now + policy.decay_ns) != due)
		return;
	if (!due)
		return;
	if (policy.discipline == HEARTH_BSD)
		decay_by_load(epoch + 1);
	__sync_fetch_and_add(&epoch, 1);
}

static __always_inline bool is_virtual_time(void)
{
	return policy.discipline == HEARTH_FAIR;
}

static __always_inline void usage_tick_more(struct hearth_task *tc)
{
	if (policy.discipline == HEARTH_FAIR)
		return;
	if (has_run_queue())
		decay_if_due();
	usage_charge(tc, policy.tick_ns);
}

static __always_inline u64 weighed(u64 ns, u32 inverse_weight)
{
	return ns;
}

/* ---- Queues of tasks that a plan has placed ---- */

static __always_inline u64 head_usage(s32 queue)
{
	u64 head = queue_ctx(queue)->head;

	return head == NO_USAGE ? head : decayed(head, papers_queue(queue)->head_epoch, epoch);
}

static __always_inline void head_noted(s32 queue)
{
	if (has_run_queue())
		papers_queue(queue)->head_epoch = epoch;
}

static __always_inline u64 order_in_queue(struct task_struct *p)
{
	struct hearth_task *tc;

	if (policy.discipline == HEARTH_FAIR)
		return p->scx.dsq_vtime;
	tc = task_ctx(p);
	return tc ? order_of(tc) : 0;
}

/* Puts a queue in order anew after a decay. */
verified_alone int queue_renew(s32 queue)
{
	struct task_struct *p;

	bpf_for_each(scx_dsq, p, queue, 0) {
		struct hearth_task *tc = task_ctx(p);

		if (!tc)
			continue;
		scx_bpf_dsq_move_set_vtime(BPF_FOR_EACH_ITER, order_of(tc));
		scx_bpf_dsq_move_vtime(BPF_FOR_EACH_ITER, p, queue, 0);
	}
	return head_refresh(queue);
}

static __always_inline void queues_renew(s32 cpu)
{
	if (!has_run_queue() || papers_cpu(cpu)->queue_epoch == epoch)
		return;
	papers_cpu(cpu)->queue_epoch = epoch;
	queue_renew(shared_queue(cpu));
	queue_renew(pinned_queue(cpu));
}

#endif
