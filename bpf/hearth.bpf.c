// SPDX-License-Identifier: GPL-2.0-only
/*
 * Hearth: a scheduler that runs work where its data is warm.
 *
 * A CPU that looks for work compares the task that it just ran, the heads of its
 * own two queues, and the first of each cache domain, each by usage (usage.h) less
 * the credit it has on this CPU (credit.h), and runs the least. A CPU is never
 * idle while a task that it may run waits.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include "scx.h"
#include "interface.h"
#include "queue_ids.h"
#include "state.h"
#include "usage.h"
#include "credit.h"
#include "slices.h"
#include "queues.h"
#include "waits.h"
#include "decisions.h"
#include "exit.h"

char _license[] SEC("license") = "GPL";

/* Tasks of its queue that a CPU looks at in a tick, for others that idle. */
#define MOST_LOOKS 8

/* ---- Where a task that wakes up goes ---- */

/* Our own note spares most questions to the kernel. A CPU that is about to go idle may
 * not have made it yet, and looks again when it has (hearth_update_idle). */
static __always_inline bool claim_idle(s32 cpu)
{
	return cpu_ctx(cpu)->is_idle && scx_bpf_test_and_clear_cpu_idle(cpu);
}

/* The idle CPU where the task has most credit. */
static __always_inline s32 idle_cpu(struct task_struct *p, struct hearth_task *tc, u64 wake_flags)
{
	s32 last = tc->last_cpu;
	bool is_idle = false;
	s32 cpu;

	if (last >= 0 && !is_attached() && (policy.llc_ns || policy.node_ns)) {
		/* The kernel's own search: the last CPU, its cache domain, its node, any; whole
		 * cores before those whose sibling is busy. For a wake-up of who is about to
		 * sleep, also the CPU that makes it. */
		cpu = scx_bpf_select_cpu_dfl(p, last, wake_flags, &is_idle);
		return is_idle ? cpu : NO_CPU;
	}
	if (last >= 0 && (is_attached() || policy.time_ns || policy.processor_ns)) {
		if (bpf_cpumask_test_cpu(last, p->cpus_ptr) &&
		    scx_bpf_test_and_clear_cpu_idle(last))
			return last;
		if (is_attached())
			return NO_CPU;
	}
	return scx_bpf_pick_idle_cpu(p->cpus_ptr, 0);
}

/* Runs the task at once on a CPU that was idle. */
static __always_inline void place(struct task_struct *p, struct hearth_task *tc, s32 cpu, u64 lag,
				  u64 enq_flags)
{
	cpu_ctx(cpu)->is_claimed = true;
	usage_arrive(tc, cpu, lag);
	stats_count(&stats_of(cpu)->direct);
	if (tracing)
		decision_direct(cpu);
	scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, tc->slice_ns, enq_flags);
}

s32 BPF_STRUCT_OPS(hearth_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	struct hearth_task *tc = task_ctx(p);
	s32 cpu;

	if (!tc)
		return prev_cpu;
	cpu = idle_cpu(p, tc, wake_flags);
	if (cpu < 0)
		return prev_cpu;
	usage_update(p, tc);
	place(p, tc, cpu, sums.slept, 0);
	return cpu;
}

/* Has a CPU that was idle, and is claimed, look for work. */
static __always_inline void wake(s32 cpu)
{
	cpu_ctx(cpu)->is_claimed = true;
	scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
}

/* A task that wakes up preempts one that has had more: with unix on the CPU that
 * handles the wake-up, as in the paper (section 5.3); with fair on the CPU in
 * whose queue it waits. A task that is bound to no CPU yet waits in none. */
static void preempt(struct task_struct *p, struct hearth_task *tc)
{
	bool here = tc->queue < 0 || (policy.discipline == HEARTH_UNIX && !is_attached());
	s32 cpu = here ? (s32)bpf_get_smp_processor_id() : cpu_of_queue(tc->queue);
	s64 running = cpu_ctx(cpu)->running_rank;
	u64 away = is_complex() ? scx_bpf_now() - tc->stopped_at : 0;

	if (!bpf_cpumask_test_cpu(cpu, p->cpus_ptr) ||
	    rank_of_task(tc, p->pid, cpu, away) >= running)
		return;
	stats_count(&stats_of(cpu)->preempted);
	cpu_ctx(cpu)->expired = true;
	scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
}

/* No other CPU may run it, by its mask. */
static __always_inline bool is_bound(struct task_struct *p)
{
	return p->nr_cpus_allowed == 1 && topology.nr_cpus > 1;
}

void BPF_STRUCT_OPS(hearth_enqueue, struct task_struct *p, u64 enq_flags)
{
	struct hearth_task *tc = task_ctx(p);
	u64 lag = enq_flags & SCX_ENQ_WAKEUP ? sums.slept : sums.bound;
	s32 cpu = scx_bpf_task_cpu(p);
	bool bound = is_bound(p);
	s32 idle;

	if (!tc) {
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, sums.slice, enq_flags);
		return;
	}
	usage_update(p, tc);
	/* From one queue to another, where the kernel moves it. */
	queue_left(tc);
	if (claim_idle(cpu)) {
		place(p, tc, cpu, lag, enq_flags);
		return;
	}
	usage_wait(tc, cpu, lag);
	if (tc->last_cpu < 0 && is_attached())
		scx_bpf_dsq_insert_vtime(p, UNBOUND, tc->slice_ns, usage_of(tc), enq_flags);
	else
		queue_insert(p, tc, bound ? bound_queue(cpu) : shared_queue(cpu), enq_flags);
	idle = bound || (is_attached() && tc->last_cpu >= 0)
		       ? NO_CPU
		       : scx_bpf_pick_idle_cpu(p->cpus_ptr, 0);
	if (idle >= 0)
		wake(idle);
	else if (enq_flags & SCX_ENQ_WAKEUP)
		preempt(p, tc);
}

/* ---- What a CPU runs next ---- */

/* The queue whose head ranks first here, this CPU's own aside: the first of each
 * domain, for all queues of a domain but the own one grant the same credit. Leaves
 * its rank in found_rank. */
verified_alone int best_elsewhere(s32 cpu)
{
	s32 best = NO_CPU;
	s64 best_rank = 0;
	u32 domain;

	for (domain = 0; domain < topology.nr_domains; domain++) {
		s32 first = domain_ctx(domain)->first;
		s64 first_rank;
		u64 usage;

		if (first < 0 || first == cpu)
			continue;
		usage = head_usage(first);
		if (usage == NO_USAGE)
			continue;
		first_rank =
			rank(usage_raised(usage, cpu, sums.foreign), credit_of_queue(first, cpu));
		if (best < 0 || first_rank < best_rank) {
			best = first;
			best_rank = first_rank;
		}
	}
	cpu_ctx(cpu)->found_rank = best_rank;
	return best;
}

/* complex: the credit of each task of the own queue is its own. The one that ranks
 * first, by its pid; its rank is left in found_rank. */
verified_alone int best_of_own(s32 cpu)
{
	struct cpu_ctx *cc = cpu_ctx(cpu);
	u64 now = scx_bpf_now();
	s32 best = NO_PID;
	struct task_struct *p;

	bpf_for_each(scx_dsq, p, cpu, 0) {
		struct hearth_task *tc = task_ctx(p);
		s64 rank;

		if (!tc)
			continue;
		rank = rank_of_task(tc, p->pid, cpu, now - tc->stopped_at);
		if (best == NO_PID || rank < cc->found_rank) {
			best = p->pid;
			cc->found_rank = rank;
		}
	}
	return best;
}

static __always_inline bool take(s32 queue, s32 cpu)
{
	struct hearth_stats *st = stats_of(cpu);
	u32 source;

	if (!scx_bpf_dsq_move_to_local(queue)) {
		queue_missed(queue);
		return false;
	}
	queue_taken(queue);
	if (cpu_of_queue(queue) == cpu) {
		source = HEARTH_SOURCE_OWN;
		st->own++;
	} else if (domain_of(cpu_of_queue(queue)) == domain_of(cpu)) {
		source = HEARTH_SOURCE_DOMAIN;
		st->domain++;
	} else {
		source = HEARTH_SOURCE_FOREIGN;
		st->foreign++;
	}
	if (tracing)
		decision_source(cpu, source, cpu_of_queue(queue));
	return true;
}

verified_alone int take_from_domain(u32 domain, s32 cpu)
{
	u32 i;

	bpf_for(i, first_member(domain), end_of_members(domain)) {
		s32 queue = member(i);

		if (queue_ctx(queue)->waiting > 0 && take(queue, cpu))
			return true;
	}
	return false;
}

/* What seemed first is gone, or may not run here: anything that may, near ones first. */
verified_alone int take_anything(s32 cpu)
{
	u32 own = domain_of(cpu);
	u32 domain;

	if (queue_ctx(bound_queue(cpu))->waiting > 0 && take(bound_queue(cpu), cpu))
		return true;
	if (is_attached())
		return take(cpu, cpu);
	if (domain_ctx(own)->waiting > 0 && take_from_domain(own, cpu))
		return true;
	bpf_for(domain, 0, topology.nr_domains) {
		if (domain != own && domain_ctx(domain)->waiting > 0 &&
		    take_from_domain(domain, cpu))
			return true;
	}
	return false;
}

/* complex: a task of the own queue, by its pid. */
static __always_inline bool take_found(s32 cpu, s32 pid)
{
	if (!take_pid(cpu, pid))
		return false;
	stats_of(cpu)->own++;
	if (tracing)
		decision_source(cpu, HEARTH_SOURCE_OWN, cpu);
	return true;
}

/* What waits and ranks first here, unless the task that just ran ranks before it.
 * Among equals what has waited goes before what has just run, and the own queues
 * before others. */
static __always_inline bool take_best(s32 cpu, bool may_keep, s64 kept_rank)
{
	u64 bound_head = head_usage(bound_queue(cpu));
	struct cpu_ctx *cc = cpu_ctx(cpu);
	s64 own_rank = HEARTH_NO_RANK;
	s32 own = cpu, pid = NO_PID;
	s32 elsewhere;

	if (is_complex()) {
		pid = best_of_own(cpu);
		if (pid != NO_PID)
			own_rank = cc->found_rank;
	} else if (queue_ctx(cpu)->head != NO_USAGE) {
		own_rank = rank(head_usage(cpu), sums.own_credit);
	}
	if (bound_head != NO_USAGE && rank(bound_head, sums.own_credit) < own_rank) {
		own = bound_queue(cpu);
		own_rank = rank(bound_head, sums.own_credit);
	}
	elsewhere = is_attached() ? NO_CPU : best_elsewhere(cpu);
	if (!may_keep)
		kept_rank = HEARTH_NO_RANK;
	if (tracing)
		decision_considered(cpu, kept_rank, own_rank,
				    elsewhere < 0 ? HEARTH_NO_RANK : cc->found_rank, elsewhere);
	/* It may be gone, or may not run here. */
	if (elsewhere >= 0 && cc->found_rank < own_rank && cc->found_rank <= kept_rank &&
	    take(elsewhere, cpu))
		return true;
	if (own_rank != HEARTH_NO_RANK && own_rank <= kept_rank &&
	    ((is_complex() && own == cpu ? take_found(cpu, pid) : take(own, cpu)) ||
	     take(other_own_queue(own), cpu)))
		return true;
	return !may_keep && take_anything(cpu);
}

/* A CPU was claimed for a task that another has taken by now. A task that came in the meantime
 * found it claimed, and the kernel tells nobody that an idle CPU stays idle. */
static __always_inline void look_again(s32 cpu)
{
	if (!cpu_ctx(cpu)->is_claimed)
		return;
	cpu_ctx(cpu)->is_claimed = false;
	scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
}

void BPF_STRUCT_OPS(hearth_dispatch, s32 cpu, struct task_struct *prev)
{
	struct hearth_task *tc = prev ? task_ctx(prev) : NULL;
	bool runnable = tc && prev->scx.flags & SCX_TASK_QUEUED;
	struct cpu_ctx *cc = cpu_ctx(cpu);
	s64 kept_rank = 0;

	if (stalls)
		return;
	if (is_attached() && scx_bpf_dsq_move_to_local(UNBOUND))
		return;
	if (policy.discipline == HEARTH_UNIX && cc->queue_epoch != epoch) {
		cc->queue_epoch = epoch;
		queue_renew(cpu);
		queue_renew(bound_queue(cpu));
	}
	if (take_late(cpu)) {
		stats_of(cpu)->late++;
		return;
	}
	if (runnable) {
		usage_update(prev, tc);
		kept_rank = rank(usage_of(tc), running_credit(tc));
	}
	if (take_best(cpu, runnable && cc->expired, kept_rank))
		return;
	if (!runnable) {
		stats_of(cpu)->idle++;
		look_again(cpu);
		return;
	}
	stats_of(cpu)->kept++;
	usage_run(tc, cpu, sums.bound);
	if (usage_of(tc) > head_usage(cpu) || usage_of(tc) > head_usage(bound_queue(cpu)))
		tc->by_credit++;
	task_set_slice(prev, slice_of(tc, cpu));
	cc->expired = false;
	cc->running_rank = kept_rank;
	if (tracing) {
		decision_source(cpu, HEARTH_SOURCE_KEPT, NO_CPU);
		decision_tell(prev, tc, cpu);
	}
}

/* ---- A task runs ---- */

static __always_inline void moved(struct hearth_task *tc, s32 cpu)
{
	s32 from = tc->last_cpu;

	tc->last_cpu = cpu;
	tc->previous_cpu = from;
	if (from >= 0)
		tc->moves[domain_of(from) == domain_of(cpu) ? 0
			  : node_of(from) == node_of(cpu)   ? 1
							    : 2]++;
}

void BPF_STRUCT_OPS(hearth_running, struct task_struct *p)
{
	struct hearth_task *tc = task_ctx(p);
	s32 cpu = scx_bpf_task_cpu(p);
	struct cpu_ctx *cc = cpu_ctx(cpu);
	bool is_drawn;

	if (!tc)
		return;
	is_drawn = tc->queue >= 0 && cpu_of_queue(tc->queue) != cpu;
	queue_left(tc);
	if (tracing)
		decision_tell(p, tc, cpu);
	if (tc->last_cpu != cpu)
		moved(tc, cpu);
	usage_run(tc, cpu, is_drawn ? sums.foreign : sums.bound);
	if (is_crowd(waiting_at(cpu)))
		task_set_slice(p, slice_of(tc, cpu));
	tc->runs++;
	cc->last_pid = p->pid;
	cc->expired = false;
	cc->running_rank = rank(usage_of(tc), running_credit(tc));
}

/* A task waits here beside an idle CPU that it may run on, which looked in the very moment in
 * which the task came. Masks are few; the first tasks are looked at. */
verified_alone int spill(s32 cpu)
{
	struct task_struct *p;
	u32 looks = 0;

	bpf_for_each(scx_dsq, p, cpu, 0) {
		s32 idle = scx_bpf_pick_idle_cpu(p->cpus_ptr, 0);

		if (idle >= 0) {
			wake(idle);
			break;
		}
		if (++looks == MOST_LOOKS)
			break;
	}
	return 0;
}

void BPF_STRUCT_OPS(hearth_tick, struct task_struct *p)
{
	struct hearth_task *tc = task_ctx(p);
	s32 cpu = scx_bpf_task_cpu(p);
	struct cpu_ctx *cc = cpu_ctx(cpu);

	if (!tc)
		return;
	usage_tick(p, tc);
	cc->running_rank = rank(usage_of(tc), running_credit(tc));
	if (!p->scx.slice)
		cc->expired = true;
	if (is_attached())
		return;
	if (queue_ctx(cpu)->waiting > 0)
		spill(cpu);
	look_after_others(cpu);
}

/* complex only: its credits fade from here on. */
void BPF_STRUCT_OPS(hearth_stopping, struct task_struct *p, bool runnable)
{
	struct hearth_task *tc = task_ctx(p);

	if (tc)
		tc->stopped_at = scx_bpf_now();
}

/* A task comes from another scheduling class, in which it is not charged. */
void BPF_STRUCT_OPS(hearth_enable, struct task_struct *p)
{
	struct hearth_task *tc = task_ctx(p);

	if (tc)
		tc->charged_ns = p->se.sum_exec_runtime;
}

/* The task leaves for another scheduling class, or for good; it may be waiting. */
void BPF_STRUCT_OPS(hearth_disable, struct task_struct *p)
{
	struct hearth_task *tc = task_ctx(p);

	if (tc)
		queue_left(tc);
}

/* A CPU goes idle. A task that came to wait after the CPU had looked has not seen it
 * idle, so the CPU looks again. */
void BPF_STRUCT_OPS(hearth_update_idle, s32 cpu, bool idle)
{
	u32 domain;

	cpu_ctx(cpu)->is_idle = idle;
	if (!idle) {
		cpu_ctx(cpu)->is_claimed = false;
		return;
	}
	if (tracing)
		decision_idle(cpu);
	if (queue_ctx(bound_queue(cpu))->waiting > 0 ||
	    (is_attached() && queue_ctx(cpu)->waiting > 0)) {
		scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
		return;
	}
	if (is_attached())
		return;
	bpf_for(domain, 0, topology.nr_domains) {
		if (domain_ctx(domain)->waiting > 0) {
			scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
			return;
		}
	}
}

/* ---- A task, or the scheduler, begins ---- */

static __always_inline void weigh(struct hearth_task *tc, u32 weight)
{
	u64 longest_ns = policy.quantum_ns + 2 * policy.tick_ns;

	tc->inverse_weight = (COMMON_WEIGHT << 16) / weight;
	tc->slice_ns = slice_of_weight(weight);
	tc->time_ns =
		weight > COMMON_WEIGHT ? policy.time_ns * tc->inverse_weight >> 16 : policy.time_ns;
	tc->ahead_ns = sums.foreign + (longest_ns * tc->inverse_weight >> 16);
}

void BPF_STRUCT_OPS(hearth_set_weight, struct task_struct *p, u32 weight)
{
	struct hearth_task *tc = task_ctx(p);

	if (tc)
		weigh(tc, weight ? weight : 1);
}

/* A higher class takes the CPU. What was to run there next goes where it may run now. */
void BPF_STRUCT_OPS(hearth_cpu_release, s32 cpu, struct scx_cpu_release_args *args)
{
	scx_bpf_reenqueue_local();
}

s32 BPF_STRUCT_OPS_SLEEPABLE(hearth_init_task, struct task_struct *p,
			     struct scx_init_task_args *args)
{
	struct hearth_task *tc =
		bpf_task_storage_get(&task_ctxs, p, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!tc)
		return -ENOMEM;
	tc->last_cpu = NO_CPU;
	tc->previous_cpu = NO_CPU;
	tc->queue = NO_CPU;
	weigh(tc, COMMON_WEIGHT);
	tc->charged_ns = p->se.sum_exec_runtime;
	tc->epoch = epoch;
	return 0;
}

s32 BPF_STRUCT_OPS_SLEEPABLE(hearth_init)
{
	u32 i;
	s32 err = scx_bpf_create_dsq(UNBOUND, -1);

	sums_make();
	if (err)
		return err;
	bpf_for(i, 0, topology.nr_cpus) {
		queue_ctx(i)->head = NO_USAGE;
		queue_ctx(bound_queue(i))->head = NO_USAGE;
		cpu_ctx(i)->is_idle = true;
		cpu_ctx(i)->looked_after = i;
		cpu_ctx(i)->left_alone = NO_CPU;
		domain_ctx(i)->first = NO_CPU;
		err = scx_bpf_create_dsq(i, node_of(i))
			      ?: scx_bpf_create_dsq(bound_queue(i), node_of(i));
		if (err)
			return err;
	}
	return 0;
}

void BPF_STRUCT_OPS(hearth_exit, struct scx_exit_info *info)
{
	exit_record(info);
}

SEC(".struct_ops.link")
struct sched_ext_ops hearth_ops = {
	.select_cpu = (void *)hearth_select_cpu,
	.enqueue = (void *)hearth_enqueue,
	.dispatch = (void *)hearth_dispatch,
	.tick = (void *)hearth_tick,
	.running = (void *)hearth_running,
	.stopping = (void *)hearth_stopping,
	.enable = (void *)hearth_enable,
	.disable = (void *)hearth_disable,
	.cpu_release = (void *)hearth_cpu_release,
	.update_idle = (void *)hearth_update_idle,
	.set_weight = (void *)hearth_set_weight,
	.init_task = (void *)hearth_init_task,
	.init = (void *)hearth_init,
	.exit = (void *)hearth_exit,
	.flags = SCX_OPS_KEEP_BUILTIN_IDLE,
	.timeout_ms = TIMEOUT_MS,
	.name = "hearth",
};
