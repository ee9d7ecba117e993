/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Moves: a task moves to another CPU when staying has cost it, or is about to cost it, as much as
 * moving would.
 *
 * What a move costs is the machine's (topology): the private cache filled anew; but no more than it
 * took the task to gather what it leaves behind. A task that waits
 * while other CPUs idle collects what it has waited, over all its waits. When that, and what it
 * will yet wait as far as can be told, reaches the cost of the move to one of them, it may be taken
 * there, and begins anew. So together its waits beside idle CPUs and its moves cost at most twice
 * what the best decision would have cost, and nobody has to know the future. It is the rule that
 * Black, Gupta and Weber (1989) have for pages.
 *
 *   to a CPU of its cache   topology.cpu_move_ns     from the last-level cache
 *   to another cache        topology.cache_move_ns   from memory
 *   to another node         topology.node_move_ns    from memory that stays behind
 *
 * Waits are collected when a task begins to run where it waited, when an idle CPU looks at it, and
 * at each tick of the CPU where it waits. So a CPU idles beside a task for the cost of the move,
 * and two ticks.
 *
 * What a task will wait yet is what the one that runs there has left of its usual run, from one
 * sleep to the next; and where it has none left, as much as it has run already. So who wakes behind
 * a computation goes to an idle CPU at once, and who wakes behind a request that will soon be
 * answered waits for it.
 *
 * A CPU that idles between two runs of a task is no place for another: who ran there would come
 * back, and one of them wait. So it has to idle yet for as long as the move costs, or as the task
 * usually runs, as far as can be told; and the one is taken that has idled for longest.
 *
 * One thing moves a task to another cache at once: it is woken by who is about to sleep. Its
 * partner's data is warm in the cache of the CPU that wakes it, and nobody needs that CPU any more,
 * so it goes there.
 */
#ifndef HEARTH_MOVES_H
#define HEARTH_MOVES_H

#include "plans.h"

/* How often a CPU that was found idle may turn out to be another's. */
#define MOST_CLAIMS 4

/* What a move costs at most. */
static __always_inline u64 cost_of_move(u32 distance)
{
	if (distance == DISTANCE_CACHE)
		return topology.cpu_move_ns;
	return distance == DISTANCE_NODE ? topology.cache_move_ns : topology.node_move_ns;
}

/* What it costs a task: no longer than it took to gather what is left behind, which is as long as
 * it has run on its CPU, and beyond its cache as long as it has run at all. */
static __always_inline u64 cost_for(struct task_struct *p, struct hearth_task *tc, u32 distance)
{
	u64 most = cost_of_move(distance), ran = p->se.sum_exec_runtime;

	if (distance == DISTANCE_CACHE)
		ran -= tc->came_ns;
	return ran < most ? ran : most;
}

/* For how long a CPU has idled, as far as it can matter: twice the dearest move. */
static __always_inline u64 idle_for(struct cpu_ctx *cc, u64 now)
{
	u64 idled = now > cc->idle_since ? now - cc->idle_since : 0;
	u64 most = 2 * topology.node_move_ns;

	return idled < most ? idled : most;
}

/* A CPU goes idle, or no longer is. */
static __always_inline void idle_note(s32 cpu, bool idle)
{
	struct cpu_ctx *cc = cpu_ctx(cpu);
	u64 now;

	if (cc->is_idle == idle)
		return;
	cc->is_idle = idle;
	now = scx_bpf_now();
	if (!idle) {
		cc->usually_idle_ns = (3 * cc->usually_idle_ns + idle_for(cc, now)) / 4;
		idle_clear(cpu);
		return;
	}
	cc->idle_since = now;
	if (idle_set(cpu))
		idle_ctx(cell_in(UNDIVIDED, cpu))->since = now;
}

/* A task comes to wait. */
static __always_inline void wait_begin(struct hearth_task *tc, u64 now)
{
	tc->waits_since = now;
	tc->waited_before_ns = tc->waited_ns;
	tc->waited_near_before_ns = tc->waited_near_ns;
}

/* A task wakes: it has run since it last did. */
static __always_inline void run_note(struct task_struct *p, struct hearth_task *tc)
{
	u64 ran = p->se.sum_exec_runtime - tc->woke_ns;

	if (!ran)
		return;
	tc->usually_ns = (3 * tc->usually_ns + ran) / 4;
	tc->woke_ns += ran;
}

/* A task begins to run. */
static __always_inline void run_begin(struct task_struct *p, struct hearth_task *tc, s32 cpu,
				      u64 now)
{
	struct cpu_ctx *cc = cpu_ctx(cpu);

	cc->runs_since = now;
	cc->ran_ns = p->se.sum_exec_runtime - tc->woke_ns;
	cc->usually_ns = tc->usually_ns;
}

/* What it will cost that a task waits for a CPU, beside so many others. Who runs there runs on for
 * as long as it usually does; if it has run for longer, then for as long again. Each of the others
 * is taken to run for as long, too: the task waits for those before it, and those behind it for it.
 */
static __always_inline u64 wait_expect(s32 cpu, s64 others, u64 now)
{
	struct cpu_ctx *cc = cpu_ctx(cpu);
	u64 ran = cc->ran_ns, more;

	if (now > cc->runs_since)
		ran += now - cc->runs_since;
	more = ran < cc->usually_ns ? cc->usually_ns - ran : ran;
	return more + (others > 0 ? others * cc->usually_ns : 0);
}

/* How far a cell is from a CPU. */
static __always_inline u32 distance_of_cell(u32 cell, s32 cpu)
{
	return distance(member(cell, first_member(cell)), cpu);
}

/* For how long CPUs of a cell have idled until now, since some time at most. */
static __always_inline u64 idled_in(u32 cell, u64 since, u64 now)
{
	u64 idle_since;

	if (!idle_in(cell))
		return 0;
	idle_since = idle_ctx(cell)->since;
	if (since < idle_since)
		since = idle_since;
	return since < now ? now - since : 0;
}

/* A task has waited for a CPU: collects for how long another has idled beside it. Mostly one of the
 * same cell has, all the time. */
verified_alone int wait_collect(struct hearth_task *tc __arg_nonnull, s32 cpu, u64 now)
{
	u64 since = tc->waits_since, waited = now > since ? now - since : 0;
	u64 near = idled_in(cell_in(UNDIVIDED, cpu), since, now), longest = near;
	u32 cell;

	if (near == waited || !any_idle())
		goto out;
	for_each_cell(cell, shape_at(UNDIVIDED)) {
		u64 idled = idled_in(cell, since, now);

		if (idled > longest)
			longest = idled;
		if (idled > near && distance_of_cell(cell, cpu) == DISTANCE_CACHE)
			near = idled;
	}
out:
	tc->waited_near_ns += near;
	tc->waited_ns += longest;
	tc->waits_since = now;
	return 0;
}

/* A task begins to run where it waited. */
static __always_inline void wait_end(struct hearth_task *tc, s32 cpu, u64 now)
{
	struct hearth_stats *st = stats_of(cpu);

	wait_collect(tc, cpu, now);
	if (tc->waited_ns == tc->waited_before_ns)
		return;
	if (tc->waited_near_ns > tc->waited_near_before_ns)
		st->stayed_near++;
	else
		st->stayed_far++;
	st->stayed_ns += tc->waited_ns - tc->waited_before_ns;
}

/* Whether a task that waits stays with the CPU where it is. */
static __always_inline bool is_kept_apart(struct task_struct *p, struct hearth_task *tc)
{
	return !(tc->counted & (COUNTED_SHARED | COUNTED_STRAY));
}

/* Whether a task cannot stay with a CPU: its mask has lost it, or a higher class has taken it. */
static __always_inline bool has_to_move(struct task_struct *p, s32 cpu)
{
	return !bpf_cpumask_test_cpu(cpu, p->cpus_ptr) || cpu_ctx(cpu)->is_held;
}

/* Whether what a task has waited beside idle CPUs, and will wait yet, is as much as a move costs.
 */
static __always_inline bool pays(struct task_struct *p, struct hearth_task *tc, u32 far,
				 u64 will_wait)
{
	u64 waited = far == DISTANCE_CACHE ? tc->waited_near_ns : tc->waited_ns;

	return waited + will_wait >= cost_for(p, tc, far);
}

/* For how long a CPU will idle yet: for as long as it usually does, and at least for as long again
 * as it has idled. */
static __always_inline u64 idle_expect(s32 cpu, u64 now)
{
	struct cpu_ctx *cc = cpu_ctx(cpu);
	u64 idled = cc->is_idle ? idle_for(cc, now) : 0;

	return 2 * idled < cc->usually_idle_ns ? cc->usually_idle_ns - idled : idled;
}

/* For how long a CPU has to idle yet if a task is to go there: for a run of it, or for as long as
 * the move costs. Who ran there last would otherwise be back, and wait for it or move in its turn.
 */
static __always_inline u64 least_idle(struct task_struct *p, struct hearth_task *tc, u32 far)
{
	u64 cost = cost_for(p, tc, far);

	return tc->usually_ns < cost ? tc->usually_ns : cost;
}

/* Whether a task that waits at one CPU may be taken to another, which idles. A member of a gang
 * goes by its row. */
static __always_inline bool may_move(struct task_struct *p, struct hearth_task *tc, s32 at, s32 cpu,
				     u64 will_wait, u64 now)
{
	u32 far = distance(at, cpu);
	s32 data = data_cpu(p, tc);

	if (tc->counted & COUNTED_MEMBER || data < 0 || data == cpu || tc->last_cpu == cpu ||
	    has_to_move(p, at))
		return true;
	if (distance(data, cpu) == DISTANCE_CACHE)
		far = DISTANCE_CACHE;
	if (!pays(p, tc, far, will_wait))
		return false;
	if (idle_expect(cpu, now) >= least_idle(p, tc, far))
		return true;
	stats_of(cpu)->brief++;
	return false;
}

/* A task goes to another cache than that of its fragment's home, which moves along unless more of
 * the fragment's tasks run than so many. */
static __always_inline void home_follows(struct task_struct *p, struct hearth_task *tc, s32 cpu,
					 u32 most_run)
{
	s32 home = fragment_cpu(p, tc);

	if (home >= 0 && distance(home, cpu) != DISTANCE_CACHE)
		fragment_move(tc->fragment, cpu, most_run);
}

/* A task is taken to an idle CPU for what it has waited, and begins anew. */
static __always_inline void move_is_paid(struct task_struct *p, struct hearth_task *tc, s32 cpu)
{
	s32 data = data_cpu(p, tc);

	if (data < 0 || data == cpu)
		return;
	home_follows(p, tc, cpu, 0);
	tc->waited_near_ns = 0;
	if (distance(data, cpu) != DISTANCE_CACHE)
		tc->waited_ns = 0;
}

/* Of the idle CPUs so far from another that a task may run on, the one that has idled for longest:
 * who ran there last is the least likely to be back soon. Only one whose siblings idle, too, if it
 * has to be a whole core. */
verified_alone int longest_idle(struct task_struct *p __arg_trusted, s32 at, u32 far, u64 least_ns,
				bool is_whole_core)
{
	u64 since = ~0ull, now = scx_bpf_now();
	s32 longest = NO_CPU;
	u32 i, j;

	bpf_for(i, 0, shape_at(UNDIVIDED)->nr_cells) {
		u32 cell = i & (HEARTH_MAX_CPUS - 1), first = first_member(cell);
		u64 idle;

		if (!may_idle(cell) || distance_of_cell(cell, at) != far)
			continue;
		idle = idle_in(cell);
		bpf_for(j, first, end_of_members(cell)) {
			s32 cpu = member(cell, j);

			if (!(idle & place_bit(j - first)) || cpu_ctx(cpu)->claimed ||
			    cpu_ctx(cpu)->idle_since >= since || idle_expect(cpu, now) < least_ns ||
			    !bpf_cpumask_test_cpu(cpu, p->cpus_ptr) ||
			    (is_whole_core && !is_core_free(cpu)))
				continue;
			since = cpu_ctx(cpu)->idle_since;
			longest = cpu;
		}
	}
	return longest;
}

/* Claims it. Another CPU may claim the same at this moment. */
verified_alone int claim_longest(struct task_struct *p __arg_trusted, s32 at, u32 far, u64 least_ns,
				 bool is_whole_core)
{
	u32 tries;

	bpf_for(tries, 0, MOST_CLAIMS) {
		s32 cpu = longest_idle(p, at, far, least_ns, is_whole_core);

		if (cpu < 0 || claim_idle(cpu))
			return cpu;
	}
	return NO_CPU;
}

/* An idle CPU so far from another for a task; whole cores before those whose sibling is busy. */
static __always_inline s32 claim_at(struct task_struct *p, s32 at, u32 far, u64 least_ns)
{
	s32 cpu;

	if (!any_idle())
		return NO_CPU;
	cpu = topology.has_siblings ? claim_longest(p, at, far, least_ns, true) : NO_CPU;

	return cpu >= 0 ? cpu : claim_longest(p, at, far, least_ns, false);
}

/* This CPU, if it idles. */
static __always_inline s32 claim_here(struct task_struct *p, s32 cpu)
{
	return bpf_cpumask_test_cpu(cpu, p->cpus_ptr) && claim_idle(cpu) ? cpu : NO_CPU;
}

/* The nearest one, for a task that has nothing to leave behind; whole cores, wherever they are,
 * before those whose sibling is busy. */
verified_alone int claim_nearest(struct task_struct *p __arg_trusted, s32 at, bool is_whole_core)
{
	s32 cpu = !is_whole_core || is_core_free(at) ? claim_here(p, at) : NO_CPU;

	if (cpu < 0)
		cpu = claim_longest(p, at, DISTANCE_CACHE, 0, is_whole_core);
	if (cpu < 0)
		cpu = claim_longest(p, at, DISTANCE_NODE, 0, is_whole_core);
	if (cpu < 0)
		cpu = claim_longest(p, at, DISTANCE_MACHINE, 0, is_whole_core);
	return cpu;
}

static __always_inline s32 claim_any(struct task_struct *p, s32 at)
{
	s32 cpu = topology.has_siblings ? claim_nearest(p, at, true) : NO_CPU;

	return cpu >= 0 ? cpu : claim_nearest(p, at, false);
}

/* One so far from this CPU, if to wait for this one will have cost as much as to move. */
static __always_inline s32 claim_paid(struct task_struct *p, struct hearth_task *tc, s32 cpu,
				      u32 far, u64 will_wait)
{
	if (has_to_move(p, cpu))
		return claim_at(p, cpu, far, 0);
	if (!pays(p, tc, far, will_wait))
		return NO_CPU;
	return claim_at(p, cpu, far, least_idle(p, tc, far));
}

static __always_inline s32 claim_near(struct task_struct *p, struct hearth_task *tc, s32 cpu,
				      u64 will_wait)
{
	s32 here = claim_here(p, cpu);

	return here >= 0 ? here : claim_paid(p, tc, cpu, DISTANCE_CACHE, will_wait);
}

/* An idle CPU for a task that waits at a CPU: near that one, near the one where it ran last, or no
 * farther than what it has waited pays for. */
verified_alone int idle_cpu_in_reach(struct task_struct *p __arg_trusted,
				     struct hearth_task *tc __arg_nonnull, s32 at, u64 will_wait)
{
	s32 cpu = claim_near(p, tc, at, will_wait);

	if (cpu < 0 && tc->last_cpu >= 0 && tc->last_cpu != at)
		cpu = claim_near(p, tc, tc->last_cpu, will_wait);
	if (cpu < 0)
		cpu = claim_paid(p, tc, at, DISTANCE_NODE, will_wait);
	if (cpu < 0)
		cpu = claim_paid(p, tc, at, DISTANCE_MACHINE, will_wait);
	return cpu;
}

/* At which CPU a task wakes that was at one: where its fragment is; or at this one, of another
 * cache, if who wakes it is about to sleep. */
static __always_inline s32 wakes_at(struct task_struct *p, struct hearth_task *tc, s32 at,
				    u64 wake_flags)
{
	s32 here = bpf_get_smp_processor_id(), home = fragment_cpu(p, tc);

	if (home >= 0)
		return home;
	if (wake_flags & SCX_WAKE_SYNC && tc->last_cpu >= 0 &&
	    distance(here, at) != DISTANCE_CACHE && bpf_cpumask_test_cpu(here, p->cpus_ptr))
		return here;
	return at;
}

/* An idle CPU for a task that waits at a CPU. */
static __always_inline s32 any_idle_cpu(struct task_struct *p, struct hearth_task *tc, s32 at,
					u64 will_wait)
{
	if (!any_idle())
		return NO_CPU;
	if (is_planned(tc))
		return idle_cpu_of_plan(p, tc);
	return tc->last_cpu >= 0 ? idle_cpu_in_reach(p, tc, at, will_wait) : claim_any(p, at);
}

/* For one that wakes at a CPU. A new one begins near who made it, whose files and memory it
 * shares. */
static __always_inline s32 idle_cpu(struct task_struct *p, struct hearth_task *tc, s32 at,
				    u64 wake_flags)
{
	u64 will_wait;
	s32 cpu;

	if (!any_idle())
		return NO_CPU;
	if (tc->last_cpu < 0)
		return claim_any(p, at);
	cpu = claim_here(p, at);
	if (cpu >= 0)
		return cpu;
	will_wait = wait_expect(at, queued_at(at), scx_bpf_now());
	return distance(tc->last_cpu, at) == DISTANCE_CACHE
		       ? idle_cpu_in_reach(p, tc, at, will_wait)
		       : claim_paid(p, tc, at, DISTANCE_CACHE, will_wait);
}

/* Whether a task runs away from its fragment, without need. */
static __always_inline bool is_away(struct task_struct *p, struct hearth_task *tc, s32 cpu)
{
	s32 home = fragment_cpu(p, tc);

	return home >= 0 && home != cpu && !is_migration_disabled(p) &&
	       (cpu_ctx(home)->is_idle || queued_at(cpu) > 0);
}

/* Whether who yields may have anyone to yield to, as far as counts tell. Who has declared a
 * fragment yields to go there. */
static __always_inline bool yields_to_anyone(s32 cpu)
{
	return queued_at(cpu) > 0 || fragments_are_used || is_work_in(shape_index(published), cpu);
}

/* A CPU looks for work. One that would idle goes by what tasks have paid. One that has work looks
 * at that of others once a quantum: busy CPUs even out what their tasks have had, but a task that
 * sleeps for a moment is not to find another in its place. */
static __always_inline void look_begin(s32 cpu, bool is_runnable, u64 now)
{
	struct cpu_ctx *cc = cpu_ctx(cpu);

	cc->is_out_of_work = !is_runnable && queued_at(cpu) <= 0;
	cc->looks_elsewhere = !cc->is_out_of_work && now - cc->looked_ns >= policy.quantum_ns;
	if (cc->looks_elsewhere)
		cc->looked_ns = now;
}

#endif
