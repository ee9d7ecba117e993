// SPDX-License-Identifier: GPL-2.0-only
/*
 * Hearth: a scheduler that runs work where its data is warm.
 *
 * A CPU that looks for work compares the task that it just ran with candidates
 * (candidates.h), each by usage (usage.h) less the credit it has on this CPU (credit.h),
 * and runs the least. No CPU is idle while a task waits that it may run, or for no longer than
 * what its move costs (moves.h), and no task waits for too long (waits.h).
 */
#include "usage.h"
#include "waits.h"
#include "false_waits.h"
#include "rule.h"
#include "spill.h"
#include "take.h"
#include "begin.h"
#include "exit.h"
#include "dump.h"
#include "words.h"

char _license[] SEC("license") = "GPL";

/* ---- Where a task that wakes up goes ---- */

/* Runs the task at once on a CPU that was idle. */
static __always_inline void insert_local(struct task_struct *p, struct hearth_task *tc, s32 cpu,
					 u64 lag, u64 enq_flags)
{
	cpu_ctx(cpu)->claimed = CLAIM_TASK;
	fragment_run(p, tc);
	clock_pass(bpf_get_smp_processor_id(), cpu);
	usage_arrive(tc, cpu, lag);
	usage_request(p, tc);
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
	waker_note(wake_flags);
	plan_follow(p, tc);
	run_note(p, tc);
	if (is_planned(tc)) {
		cpu = idle_cpu_of_plan(p, tc);
	} else {
		prev_cpu = wakes_at(p, tc, prev_cpu, wake_flags);
		cpu = idle_cpu(p, tc, prev_cpu, wake_flags);
	}
	if (cpu < 0)
		return prev_cpu;
	usage_update(p, tc);
	move_is_paid(p, tc, cpu);
	insert_local(p, tc, cpu, sums.slept, 0);
	return cpu;
}

/* What it will cost that a task has come to wait for a CPU: of one that ran until now, nothing is
 * said. */
static __always_inline u64 expected_wait(s32 cpu, u64 enq_flags, u64 now)
{
	return enq_flags & SCX_ENQ_WAKEUP ? wait_expect(cpu, queued_at(cpu) - 1, now) : 0;
}

void BPF_STRUCT_OPS(hearth_enqueue, struct task_struct *p, u64 enq_flags)
{
	struct hearth_task *tc = task_ctx(p);
	u64 lag = enq_flags & SCX_ENQ_WAKEUP ? sums.slept : sums.lag_limit;
	s32 at = scx_bpf_task_cpu(p), cpu = at;
	u64 now;
	s32 idle;

	if (!tc) {
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, sums.slice, enq_flags);
		return;
	}
	false_wait_note(p, tc);
	if (enq_flags & SCX_ENQ_WAKEUP)
		run_note(p, tc);
	usage_update(p, tc);
	/* From one queue to another, where the kernel moves it. */
	queue_left(tc);
	fragment_stop(p, tc);
	plan_follow(p, tc);
	if ((is_planned(tc) || is_of_fragment(tc)) && !is_migration_disabled(p))
		cpu = place_of(p, tc, at);
	if (cpu == at && may_take(p, tc, cpu) && claim_idle(cpu)) {
		insert_local(p, tc, cpu, lag, enq_flags);
		return;
	}
	if (cpu_ctx(at)->yields && cpu_ctx(at)->last_pid == p->pid)
		yield_charge(tc);
	usage_wait(tc, cpu, lag);
	usage_request(p, tc);
	now = scx_bpf_now();
	wait_begin(tc, now);
	if (!run_queue_insert(p, tc, enq_flags))
		queue_insert(p, tc, cpu, enq_flags);
	if (is_in_row(tc))
		cpu_ctx(cpu)->has_member = true;
	if (cpu != at && claim_idle(cpu)) {
		idle = cpu;
	} else {
		/* It idles, and is claimed for another. It may look before the kernel has linked
		 * this one in, and nobody tells it then: the kick comes when that is done. */
		if (cpu_ctx(cpu)->is_idle)
			scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
		idle = is_kept_apart(p, tc)
			       ? NO_CPU
			       : any_idle_cpu(p, tc, cpu, expected_wait(cpu, enq_flags, now));
	}
	if (idle >= 0)
		kick_idle(idle);
	else if (is_in_row(tc) && (cpu != at || enq_flags & SCX_ENQ_WAKEUP))
		summon(cpu);
	else if (enq_flags & SCX_ENQ_WAKEUP && !is_member(tc))
		preempt(p, tc);
}

/* ---- What a CPU runs next ---- */

/* A task begins to run, or goes on: it neither yields nor is to stop. */
static __always_inline void stretch_begin(struct cpu_ctx *cc)
{
	cc->expired = false;
	cc->yields = false;
	cc->yields_at_tick = false;
	cc->sleeps_soon = false;
}

/* A CPU was claimed for a task that another has taken by now. A task that came in the meantime
 * found it claimed, and the kernel tells nobody that an idle CPU stays idle. */
static __always_inline void look_again(s32 cpu)
{
	if (!cpu_ctx(cpu)->claimed)
		return;
	cpu_ctx(cpu)->claimed = CLAIM_NONE;
	stats_of(cpu)->in_vain++;
	scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
}

/* The least usage of tasks that wait here, or were found elsewhere. */
static __always_inline u64 least_usage(s32 cpu)
{
	u64 shared = head_usage(shared_queue(cpu)), pinned = head_usage(pinned_queue(cpu));
	u64 least = shared < pinned ? shared : pinned, searched = least_searched(cpu);

	return searched < least ? searched : least;
}

/* Looks what a task that runs here declares. Whether it has to go elsewhere: for that, or by the
 * plan. */
verified_alone int leaves(struct task_struct *p __arg_trusted, struct hearth_task *tc __arg_nonnull,
			  s32 cpu)
{
	fragment_follow(p, tc);
	return is_misplaced(p, tc, cpu) || is_out_of_column(p, tc, cpu) || is_away(p, tc, cpu);
}

void BPF_STRUCT_OPS(hearth_dispatch, s32 cpu, struct task_struct *prev)
{
	bool is_runnable = prev && prev->scx.flags & SCX_TASK_QUEUED;
	struct cpu_ctx *cc = cpu_ctx(cpu);
	s64 kept_rank = HEARTH_NO_RANK;
	struct hearth_task *tc = NULL;
	u64 now;

	if (stalls) {
		if (is_runnable)
			task_set_slice(prev, sums.slice);
		return;
	}
	queues_renew(cpu);
	if (cc->has_late && take_late(cpu))
		return;
	if (cc->has_member && take_member(cpu))
		return;
	move_fragment(cpu);
	if (is_runnable && (cc->expired || !cc->yields)) {
		tc = task_ctx(prev);
		if (tc && !leaves(prev, tc, cpu)) {
			usage_update(prev, tc);
			usage_request(prev, tc);
			kept_rank = running_rank(tc, cpu);
			cc->kept_request = asked_of(tc);
		}
	}
	now = scx_bpf_now();
	look_begin(cpu, is_runnable, now);
	if (take_best(cpu, kept_rank))
		return;
	if (!is_runnable) {
		stats_of(cpu)->idle++;
		look_again(cpu);
		return;
	}
	if (!tc)
		tc = task_ctx(prev);
	/* Without a slice it comes to hearth_enqueue, and waits elsewhere. */
	if (!tc || leaves(prev, tc, cpu))
		return;
	stats_of(cpu)->kept++;
	usage_update(prev, tc);
	if (!is_member(tc)) {
		usage_catch_up(tc, cpu);
		usage_run(tc, cpu, sums.lag_limit);
	}
	if (usage_of(tc) > least_usage(cpu))
		tc->by_credit++;
	task_set_slice(prev, slice_of(tc, cpu));
	stretch_begin(cc);
	running_note(tc, cpu, now);
	if (tracing) {
		decision_source(cpu, HEARTH_SOURCE_KEPT, NO_CPU);
		decision_tell(prev, tc, cpu);
	}
}

/* sched_yield: anybody who waits goes first, unless the task was to stop anyway. That its slice has
 * ended does not tell that it yields: the kernel may ask a CPU twice what runs next. If nobody
 * waits the task goes on until the next tick, without a question, and yields then. */
bool BPF_STRUCT_OPS(hearth_yield, struct task_struct *from, struct task_struct *to)
{
	s32 cpu = scx_bpf_task_cpu(from);
	struct cpu_ctx *cc = cpu_ctx(cpu);

	cc->yields = yields_to_anyone(cpu);
	cc->yields_at_tick = !cc->yields;
	if (cc->yields)
		task_set_slice(from, 0);
	else if (from->scx.slice < policy.tick_ns)
		task_set_slice(from, 2 * policy.tick_ns);
	return false;
}

/* ---- A task runs ---- */

static __always_inline void moved(struct task_struct *p, struct hearth_task *tc, s32 cpu)
{
	s32 from = tc->last_cpu;

	tc->last_cpu = cpu;
	tc->previous_cpu = from;
	if (from < 0)
		return;
	tc->moves[distance(from, cpu)]++;
	tc->came_ns = p->se.sum_exec_runtime;
}

void BPF_STRUCT_OPS(hearth_running, struct task_struct *p)
{
	struct hearth_task *tc = task_ctx(p);
	s32 cpu = scx_bpf_task_cpu(p);
	struct cpu_ctx *cc = cpu_ctx(cpu);
	bool is_drawn;
	s32 queue;
	u64 now;

	if (!tc)
		return;
	now = scx_bpf_now();
	queue = tc->queue;
	is_drawn = queue >= 0 && cpu_of_queue(queue) != cpu;
	if (queue >= 0 && !is_drawn)
		wait_end(tc, cpu, now);
	queue_left(tc);
	/* It was too far behind for its home to keep it. */
	if (is_drawn && !cc->is_out_of_work)
		home_follows(p, tc, cpu, ~0u);
	fragment_run(p, tc);
	if (tracing)
		decision_tell(p, tc, cpu);
	if (tc->last_cpu != cpu)
		moved(p, tc, cpu);
	ran_first(tc, cpu);
	if (!is_member(tc))
		usage_run(tc, cpu, is_drawn ? sums.foreign : sums.lag_limit);
	if (is_crowd(waiting_at(cpu)))
		task_set_slice(p, slice_of(tc, cpu));
	run_begin(p, tc, cpu, now);
	tc->runs++;
	cc->last_pid = p->pid;
	cc->is_held = false;
	stretch_begin(cc);
	cc->runs_member = is_member(tc);
	running_note(tc, cpu, now);
}

void BPF_STRUCT_OPS(hearth_tick, struct task_struct *p)
{
	struct hearth_task *tc = task_ctx(p);
	s32 cpu = scx_bpf_task_cpu(p);
	struct cpu_ctx *cc = cpu_ctx(cpu);
	u64 now_ns;

	if (!tc)
		return;
	/* A CPU that was busy when the scheduler began has not told it so. */
	idle_note(cpu, false);
	usage_tick(p, tc);
	plan_follow(p, tc);
	cc->runs_member = is_member(tc);
	running_note(tc, cpu, scx_bpf_now());
	cc->yields |= cc->yields_at_tick;
	if (cc->yields || leaves(p, tc, cpu))
		task_set_slice(p, 0);
	if (!cc->yields && !p->scx.slice)
		cc->expired = true;
	look_for_late(cpu);
	offer_to_idle(cpu);
	now_ns = bpf_ktime_get_ns();
	plan_check(now_ns);
	look_at_row(now_ns);
}

/* What it has declared is where it will wait. */
void BPF_STRUCT_OPS(hearth_stopping, struct task_struct *p, bool runnable)
{
	struct hearth_task *tc = task_ctx(p);

	if (!tc)
		return;
	stopped(tc);
	fragment_stop(p, tc);
}

/* A task comes from another scheduling class, in which it is not charged. */
void BPF_STRUCT_OPS(hearth_enable, struct task_struct *p)
{
	struct hearth_task *tc = task_ctx(p);

	if (!tc)
		return;
	tc->charged_ns = p->se.sum_exec_runtime;
	tc->woke_ns = p->se.sum_exec_runtime;
	tc->has_joined = true;
}

/* The task leaves for another scheduling class, or for good; it may be waiting. */
void BPF_STRUCT_OPS(hearth_disable, struct task_struct *p)
{
	struct hearth_task *tc = task_ctx(p);

	if (!tc)
		return;
	queue_left(tc);
	fragment_ran(tc);
	fragment_leave(tc);
	/* The kernel tells nobody that such a one has taken the CPU (hearth_cpu_release). */
	if (keeps_cpu(p)) {
		cpu_ctx(scx_bpf_task_cpu(p))->is_held = true;
		offer_to_idle(scx_bpf_task_cpu(p));
	}
}

/* A CPU goes idle. A task that came to wait after the CPU had looked has not seen it
 * idle, so the CPU looks again. */
void BPF_STRUCT_OPS(hearth_update_idle, s32 cpu, bool idle)
{
	/* It may have been claimed when it had just ceased to idle. */
	u32 claimed = __sync_lock_test_and_set(&cpu_ctx(cpu)->claimed, CLAIM_NONE);

	idle_note(cpu, idle);
	if (!idle) {
		if (claimed == CLAIM_TASK)
			stats_of(cpu)->direct++;
		return;
	}
	cpu_ctx(cpu)->is_held = false;
	if (tracing)
		decision_idle(cpu);
	if (is_work_for(cpu))
		scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
}

/* ---- A task, or the scheduler, begins ---- */

void BPF_STRUCT_OPS(hearth_set_weight, struct task_struct *p, u32 weight)
{
	struct hearth_task *tc = task_ctx(p);

	if (tc)
		weigh(tc, weight ? weight : 1);
}

/* What it covers is looked up anew. */
void BPF_STRUCT_OPS(hearth_set_cpumask, struct task_struct *p, const struct cpumask *cpumask)
{
	struct hearth_task *tc = task_ctx(p);

	if (tc)
		tc->planned = PLANNED_NEVER;
}

/* A higher class takes the CPU. What was to run there next goes where it may run now. */
void BPF_STRUCT_OPS(hearth_cpu_release, s32 cpu, struct scx_cpu_release_args *args)
{
	cpu_ctx(cpu)->is_held = true;
	scx_bpf_reenqueue_local();
	offer_to_idle(cpu);
}

s32 BPF_STRUCT_OPS_SLEEPABLE(hearth_init_task, struct task_struct *p,
			     struct scx_init_task_args *args)
{
	struct hearth_task *tc =
		bpf_task_storage_get(&task_ctxs, p, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	struct task_struct *maker = maker_of(args);
	struct hearth_task *of_maker = maker ? task_ctx(maker) : NULL;

	if (!tc)
		return -ENOMEM;
	task_begin(p, tc, of_maker);
	return 0;
}

s32 BPF_STRUCT_OPS_SLEEPABLE(hearth_init)
{
	return machine_begin();
}

void BPF_STRUCT_OPS(hearth_dump, struct scx_dump_ctx *dump)
{
	exit_look(dump);
	dump_all();
}

void BPF_STRUCT_OPS(hearth_dump_cpu, struct scx_dump_ctx *dump, s32 cpu, bool idle)
{
	dump_cpu(cpu, idle);
}

void BPF_STRUCT_OPS(hearth_dump_task, struct scx_dump_ctx *dump, struct task_struct *p)
{
	struct hearth_task *tc = task_ctx(p);

	if (tc)
		dump_task(tc);
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
	.yield = (void *)hearth_yield,
	.tick = (void *)hearth_tick,
	.running = (void *)hearth_running,
	.stopping = (void *)hearth_stopping,
	.enable = (void *)hearth_enable,
	.disable = (void *)hearth_disable,
	.cpu_release = (void *)hearth_cpu_release,
	.update_idle = (void *)hearth_update_idle,
	.set_weight = (void *)hearth_set_weight,
	.set_cpumask = (void *)hearth_set_cpumask,
	.init_task = (void *)hearth_init_task,
	.init = (void *)hearth_init,
	.dump = (void *)hearth_dump,
	.dump_cpu = (void *)hearth_dump_cpu,
	.dump_task = (void *)hearth_dump_task,
	.exit = (void *)hearth_exit,
	.flags = IDLE_FLAGS | SCX_OPS_ENQ_LAST | SCX_OPS_ENQ_EXITING,
	.timeout_ms = HEARTH_WATCHDOG_MS,
	.name = "hearth",
};
