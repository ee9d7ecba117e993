/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Usage: how much CPU time a task has had, as the order in which tasks run.
 * The least usage runs first.
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
 *   fair   virtual time: charged exactly, over weight, and not forgotten, but
 *          compared only as far as it can matter. Each CPU has a clock, the
 *          greatest usage with which a task began to run there. A task that
 *          comes to a CPU counts as
 *
 *            behind its clock by at most   if it
 *              sums.bound                    was there
 *              sums.slept                    slept: so sleep is not saved
 *              sums.foreign                  waited for another CPU
 *            (under a steady policy over its weight, if that is more than the common one)
 *            ahead of it by at most
 *              its own ahead_ns              was there: a slice of its own
 *              nothing                       waited for another CPU
 *
 *          So a task whose mask sends it to a crowded CPU does not wait for what
 *          the others did not get before it came. One that slept comes before
 *          those that are drawn from other CPUs, however far behind these are.
 *
 *          Under a steady policy one that slept begins at the clock. So who wakes
 *          comes after those that wait, in the order in which they came. Who has
 *          run for a quantum since it slept asks for another: it is ordered by what
 *          it will have had, as by a deadline, and comes after those that wake for
 *          a little, which preempt it.
 *
 *          Usages on two CPUs compare only as long as their clocks say who had
 *          less to do. A CPU that idles does not fall behind: its clock goes with
 *          those of busy ones. And a CPU where nobody waits has no right to be
 *          behind by more than sums.bound one where somebody does.
 *
 * A decay is lazy: a global epoch counts them, each task knows the epoch of its
 * usage. The run queue is searched, so its tasks need no order; tasks that a plan
 * has placed wait in order of usage, and only those of different epochs compare
 * wrongly, so such a queue is put in order anew once an epoch: queues.h.
 */
#ifndef HEARTH_USAGE_H
#define HEARTH_USAGE_H

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

/* As it counts: in whole points, for of equals who came first is to run. */
static __always_inline u64 usage_of(struct hearth_task *tc)
{
	u64 usage = decayed(tc->usage, tc->epoch, epoch);

	return has_run_queue() ? usage - usage % sums.point_ns : usage;
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

/* fair: charges a task for what it ran since it was last charged, by the kernel's
 * own account: at ticks, and whenever its usage is about to count. */
static __always_inline void usage_update(struct task_struct *p, struct hearth_task *tc)
{
	u64 ran_ns = p->se.sum_exec_runtime;

	if (policy.discipline != HEARTH_FAIR || ran_ns == tc->charged_ns)
		return;
	tc->usage += (ran_ns - tc->charged_ns) * tc->inverse_weight >> 16;
	tc->charged_ns = ran_ns;
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

/* All but fair: the timer interrupts a running task. */
static __always_inline void usage_tick(struct task_struct *p, struct hearth_task *tc)
{
	usage_update(p, tc);
	if (policy.discipline == HEARTH_FAIR)
		return;
	if (has_run_queue())
		decay_if_due();
	usage_charge(tc, policy.tick_ns);
}

/* A usage that is behind a clock by no more than `lag`. */
static __always_inline u64 no_further_behind(u64 usage, u64 clock, u64 lag)
{
	return usage + lag < clock ? clock - lag : usage;
}

/* steady: who has run for a quantum since it last slept asks for another; who has not, for little.
 */
static __always_inline void usage_request(struct task_struct *p, struct hearth_task *tc)
{
	if (!is_steady())
		return;
	tc->request = tc->last_cpu >= 0 && p->se.sum_exec_runtime - tc->woke_ns >= policy.quantum_ns
			      ? policy.quantum_ns * tc->inverse_weight >> 16
			      : 0;
}

/* fair: a usage as it counts on a CPU. */
static __always_inline u64 usage_raised(u64 usage, s32 cpu, u64 lag)
{
	u64 clock = cpu_ctx(cpu)->clock;

	return policy.discipline == HEARTH_FAIR ? no_further_behind(usage, clock, lag) : usage;
}

/* A task comes to a CPU that was idle; a new one begins with its clock. */
static __always_inline void usage_arrive(struct hearth_task *tc, s32 cpu, u64 lag)
{
	if (tc->last_cpu >= 0)
		tc->usage = usage_raised(tc->usage, cpu, weighed(lag, tc->inverse_weight));
	else if (policy.discipline == HEARTH_FAIR)
		tc->usage = cpu_ctx(cpu)->clock;
}

/* A task comes to wait for a CPU, or waits again. */
static __always_inline void usage_wait(struct hearth_task *tc, s32 cpu, u64 lag)
{
	u64 clock = cpu_ctx(cpu)->clock, most = clock;

	if (policy.discipline != HEARTH_FAIR)
		return;
	if (tc->last_cpu == cpu)
		most += tc->ahead_ns;
	if (tc->usage > most || tc->last_cpu < 0)
		tc->usage = most;
	else
		tc->usage = no_further_behind(tc->usage, clock, weighed(lag, tc->inverse_weight));
}

/* A CPU looks after another, or wakes it for a task. One that idles has given its time to nobody,
 * and is behind none for it. */
static __always_inline void clock_pass(s32 cpu, s32 other)
{
	u64 ours = cpu_ctx(cpu)->clock, theirs = cpu_ctx(other)->clock;

	if (cpu_ctx(other)->is_idle && theirs < ours)
		__sync_val_compare_and_swap(&cpu_ctx(other)->clock, theirs, ours);
}

/* Where nobody waits the task that goes on has had what it wanted: it is behind the clock of a CPU
 * where somebody waits by no more than one that was always there. */
static __always_inline void usage_catch_up(struct hearth_task *tc, s32 cpu)
{
	tc->usage = no_further_behind(tc->usage, cpu_ctx(cpu)->clock_ahead,
				      weighed(sums.bound, tc->inverse_weight));
}

/* A task begins to run, or goes on after its slice, and the clock with it. It may have come to
 * wait before the clock was moved by one from far ahead, or wait on another CPU. */
static __always_inline void usage_run(struct hearth_task *tc, s32 cpu, u64 lag)
{
	if (policy.discipline != HEARTH_FAIR)
		return;
	tc->usage = usage_raised(tc->usage, cpu, weighed(lag, tc->inverse_weight));
	if (tc->usage > cpu_ctx(cpu)->clock)
		cpu_ctx(cpu)->clock = tc->usage;
}

#endif
