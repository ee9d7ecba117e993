/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * CPUs that take tasks from others: sched_balance_rq, and when it is called.
 *
 *   newly idle  before a CPU goes idle, level by level, unless it is idle for too short a time to
 *               be worth the search (sched_balance_newidle)
 *   idle        at a tick of a busy CPU, for those that idle (nohz_balancer_kick)
 *   busy        at a tick, 16 times as rarely (sched_balance_domains)
 *
 * Left out: that a task whose mask keeps it where it is makes its group count as imbalanced, and
 * that another CPU is tried then (LBF_SOME_PINNED, LBF_ALL_PINNED); asymmetric and unequal CPUs;
 * balancing by NUMA faults and by the cache that a process prefers.
 */
#ifndef HEARTH_BASELINE_BALANCE_H
#define HEARTH_BASELINE_BALANCE_H

/* sysctl_sched_migration_cost, sysctl_sched_nr_migrate */
#define MIGRATION_COST_NS 500000ull
#define NR_MIGRATE 32
/* What a search takes for each CPU that it looks at. Not Linux's, which measures it: an estimate,
 * two misses to memory. */
#define LOOK_NS 200ull

enum idle_type { NOT_IDLE, IDLE, NEWLY_IDLE };

enum migration_type { MIGRATE_LOAD, MIGRATE_UTIL, MIGRATE_TASK };

/* struct lb_env */
struct balance {
	s32 cpu;
	struct domain *sd;
	enum idle_type idle;
	u64 now;
	enum migration_type type;
	s64 imbalance;
};

/* Has a CPU look for another task. Elsewhere it does so when it enters its kernel, at the next tick
 * at the latest: the kernel is PREEMPT_LAZY (resched_curr_lazy). */
static void resched_lazy(s32 cpu)
{
	rqs[cpu].resched = true;
	if (cpu == (s32)bpf_get_smp_processor_id())
		scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
}

/* wakeup_preempt_fair: the task that came is the one to pick. */
static void check_preempt(s32 cpu, struct entity *se, u64 now)
{
	struct run_queue *rq = &rqs[cpu];

	if (!rq->curr || rq->resched)
		return;
	curr_update(rq, now);
	if (pick(rq, rq->curr, true) != se)
		return;
	stats[cpu].preempted++;
	resched_lazy(cpu);
}

/* move_queued_task, detach_task and attach_task */
static void entity_migrate(struct entity *se, s32 cpu, u64 now)
{
	entity_dequeue(&rqs[se->cpu], se, true, now);
	entity_moves(se, cpu, now);
	entity_enqueue(&rqs[cpu], se, now);
	check_preempt(cpu, se, now);
}

/* ---- From which group, and how much ---- */

/* update_sd_pick_busiest */
static bool is_busier(const struct group *one, const struct group *other)
{
	if (!one->nr_runnable)
		return false;
	if (one->type != other->type)
		return one->type > other->type;
	if (one->type != HAS_SPARE)
		return one->avg_load > other->avg_load;
	if (one->idle_cpus != other->idle_cpus)
		return one->idle_cpus < other->idle_cpus;
	return one->nr_running > other->nr_running;
}

/* sibling_imbalance: how many more tasks, for as many CPUs as the own group has. */
static s64 sibling_imbalance(const struct balance *b, const struct group *local,
			     const struct group *busiest)
{
	u64 here = cpus_in(local->span), there = cpus_in(busiest->span);
	s64 more;

	if (b->idle == NOT_IDLE || !busiest->nr_running)
		return 0;
	more = here * busiest->nr_running - there * local->nr_running;
	if (more <= 0)
		return 0;
	if (here == there)
		return more / (s64)here;
	more = (2 * more + (s64)(here + there)) / (s64)(here + there);
	return more < 2 && !local->nr_running && busiest->nr_running > 1 ? 2 : more;
}

/* Groups are siblings that tasks shall be spread over (SD_PREFER_SIBLING), where they are more than
 * a CPU. */
static bool prefers_sibling(const struct balance *b)
{
	return b->sd != &rqs[b->cpu].domains[0];
}

/* calculate_imbalance */
static void imbalance_find(struct balance *b, struct group *local, const struct group *busiest,
			   u64 mean_load)
{
	if (local->type == HAS_SPARE && busiest->type == OVERLOADED && b->sd->level != LEVEL_LLC) {
		b->type = MIGRATE_UTIL;
		b->imbalance = less(local->capacity, local->util);
		if (b->idle == NOT_IDLE || b->imbalance)
			return;
		b->type = MIGRATE_TASK;
		b->imbalance = 1;
		return;
	}
	if (local->type == HAS_SPARE) {
		b->type = MIGRATE_TASK;
		b->imbalance = cpus_in(busiest->span) == 1 || prefers_sibling(b)
				       ? sibling_imbalance(b, local, busiest)
				       : (s64)less(local->idle_cpus, busiest->idle_cpus);
		if (b->sd->level == LEVEL_ALL)
			b->imbalance =
				adjusted_imbalance(b->imbalance, local->nr_running + 1, b->cpu);
		b->imbalance /= 2;
		return;
	}
	b->type = MIGRATE_LOAD;
	local->avg_load = local->load * ONE / local->capacity;
	if (local->type != OVERLOADED &&
	    (local->avg_load >= busiest->avg_load || local->avg_load >= mean_load)) {
		b->imbalance = 0;
		return;
	}
	b->imbalance = less(busiest->avg_load, mean_load) * busiest->capacity / ONE;
	mean_load = less(mean_load, local->avg_load) * local->capacity / ONE;
	if (b->imbalance > (s64)mean_load)
		b->imbalance = mean_load;
}

/* sched_balance_find_src_group, once the busiest group is known. */
static bool is_balanced(const struct balance *b, const struct group *local,
			const struct group *busiest, u64 mean_load)
{
	if (local->type > busiest->type)
		return true;
	if (local->type == OVERLOADED)
		return local->avg_load >= busiest->avg_load || local->avg_load >= mean_load ||
		       100 * busiest->avg_load <= IMBALANCE_PCT * local->avg_load;
	if (prefers_sibling(b) && local->type == HAS_SPARE &&
	    sibling_imbalance(b, local, busiest) > 1)
		return false;
	if (busiest->type == OVERLOADED)
		return false;
	return b->idle == NOT_IDLE ||
	       (cpus_in(busiest->span) > 1 && local->idle_cpus <= busiest->idle_cpus + 1) ||
	       busiest->nr_runnable == 1;
}

/* sched_balance_find_src_group, update_sd_lb_stats */
static bool find_busiest(struct balance *b, struct group *found)
{
	struct span own = group_of(b->cpu, b->sd), at;
	struct group local = look_at(own, false, b->now);
	struct group busiest = {.idle_cpus = ~0u}, all = local;
	u64 mean_load;

	for (at = group_after(own, b->sd); at.first != own.first; at = group_after(at, b->sd)) {
		struct group group = look_at(at, false, b->now);

		all.load += group.load;
		all.util += group.util;
		all.capacity += group.capacity;
		if (is_busier(&group, &busiest))
			busiest = group;
	}
	all.span = b->sd->span;
	if (b->sd->level == LEVEL_LLC && b->idle != NEWLY_IDLE)
		idle_scan_update(&all);
	mean_load = all.load * ONE / all.capacity;
	if (!busiest.nr_runnable || is_balanced(b, &local, &busiest, mean_load))
		return false;
	imbalance_find(b, &local, &busiest, mean_load);
	*found = busiest;
	return b->imbalance > 0;
}

/* sched_balance_find_src_rq */
static s32 find_queue(const struct balance *b, struct span span)
{
	s32 found = NO_CPU;
	u64 most = 0;
	u32 place;

	for (place = span.first; place < span.end; place++) {
		const struct run_queue *rq = &rqs[order[place]];
		u64 load = load_of(&rq->avg), size;

		if (b->type == MIGRATE_LOAD)
			size = nr_running(rq) == 1 && load > (u64)b->imbalance
				       ? 0
				       : load * ONE / capacity_of(rq);
		else if (b->type == MIGRATE_UTIL)
			size = nr_running(rq) > 1 ? util_of(&rq->avg) : 0;
		else
			size = nr_runnable(rq);
		if (!nr_runnable(rq) || size <= most)
			continue;
		found = order[place];
		most = size;
	}
	return found;
}

/* ---- Which tasks ---- */

/* task_hot: it ran there less than half a millisecond ago. */
static bool is_hot(const struct entity *se, u64 now)
{
	return se->exec_start && now < se->exec_start + MIGRATION_COST_NS;
}

/* can_migrate_task: one that is hot only after some searches that found nothing else. */
static bool can_migrate(const struct balance *b, struct entity *se)
{
	if (se->dsq < 0 || (se->delayed && b->type != MIGRATE_LOAD))
		return false;
	if (!may_run_on(se->p, b->cpu) || is_migration_disabled(se->p))
		return false;
	return !is_hot(se, b->now) || b->sd->failed > cache_nice_tries(b->sd);
}

/* How much of the imbalance a task is, or 0 if it is too much; every search that fails lets twice
 * as much pass (shr_bound). */
static s64 weigh_task(const struct balance *b, const struct entity *se)
{
	u64 size = b->type == MIGRATE_LOAD ? load_of(&se->avg) : util_of(&se->avg);
	u32 shift = b->sd->failed < 63 ? b->sd->failed : 63;

	if (b->type == MIGRATE_TASK)
		return 1;
	size = size ? size : 1;
	return (s64)(size >> shift) > b->imbalance ? 0 : (s64)size;
}

/* detach_tasks: those that have waited longest first; one only for a CPU that is about to idle. */
static u32 take_tasks(struct balance *b, s32 from)
{
	struct run_queue *rq = &rqs[from];
	u32 loops = nr_running(rq) < NR_MIGRATE ? nr_running(rq) : NR_MIGRATE, moved = 0;
	struct entity *se, *next;

	for (se = rq->oldest; se && loops > 0 && b->imbalance > 0; se = next, loops--) {
		s64 size;

		next = se->newer;
		if (b->idle != NOT_IDLE && nr_running(rq) <= 1)
			break;
		if (!can_migrate(b, se))
			continue;
		entity_average(se, b->now);
		size = weigh_task(b, se);
		if (!size)
			continue;
		b->imbalance -= size;
		entity_migrate(se, b->cpu, b->now);
		moved++;
		if (b->idle == NEWLY_IDLE)
			break;
	}
	return moved;
}

/* need_active_balance, active_load_balance_cpu_stop: what runs there is the imbalance. */
static bool push(struct balance *b, s32 from)
{
	struct run_queue *rq = &rqs[from];

	if (b->type != MIGRATE_TASK || b->sd->failed <= cache_nice_tries(b->sd) + 2 ||
	    b->idle == NOT_IDLE || !rq->curr || rq->push_to >= 0 ||
	    !may_run_on(rq->curr->p, b->cpu) || is_migration_disabled(rq->curr->p))
		return false;
	b->sd->failed = 0;
	rq->push_to = b->cpu;
	scx_bpf_kick_cpu(from, SCX_KICK_PREEMPT);
	return true;
}

/* should_we_balance: of a group the first idle CPU balances for all, or the first one. */
static bool should_balance(const struct balance *b)
{
	struct span own = group_of(b->cpu, b->sd);
	u32 place;

	if (b->idle == NEWLY_IDLE)
		return nr_running(&rqs[b->cpu]) == 0;
	for (place = own.first; place < own.end; place++)
		if (is_idle_cpu(order[place]))
			return (s32)order[place] == b->cpu;
	return (s32)order[own.first] == b->cpu;
}

static void interval_grow(struct domain *sd)
{
	if (sd->interval_ms < 2 * cpus_in(sd->span))
		sd->interval_ms *= 2;
}

/* sched_balance_rq: how many tasks came. */
static u32 balance(struct balance *b)
{
	struct group busiest;
	u32 moved = 0;
	s32 from;

	if (!find_busiest(b, &busiest) || (from = find_queue(b, busiest.span)) < 0 ||
	    from == b->cpu) {
		b->sd->failed = 0;
		if (b->idle != NEWLY_IDLE)
			interval_grow(b->sd);
		return 0;
	}
	if (nr_running(&rqs[from]) > 1)
		moved = take_tasks(b, from);
	if (moved) {
		b->sd->failed = 0;
		*(share_cache(from, b->cpu) ? &stats[b->cpu].domain : &stats[b->cpu].foreign) +=
			moved;
	} else if (b->idle != NEWLY_IDLE) {
		b->sd->failed++;
	}
	if (moved || !push(b, from))
		b->sd->interval_ms = cpus_in(b->sd->span);
	return moved;
}

/* ---- When ---- */

/* sched_balance_domains, of a CPU that is busy or idle. */
static void balance_domains(s32 cpu, enum idle_type idle, u64 now)
{
	u64 most_ms = topology.nr_online * 100;
	u32 level;

	for (level = 0; level < rqs[cpu].nr_domains; level++) {
		struct domain *sd = &rqs[cpu].domains[level];
		u64 interval_ms = sd->interval_ms * (idle == NOT_IDLE ? BUSY_FACTOR : 1);
		struct balance b = {.cpu = cpu, .sd = sd, .idle = idle, .now = now};

		if (now >= sd->cost_decayed_ns + 1000 * MS) {
			sd->newidle_cost_ns = sd->newidle_cost_ns * 253 / 256;
			sd->cost_decayed_ns = now;
		}
		interval_ms = interval_ms < most_ms ? interval_ms : most_ms;
		if (now < sd->balanced_ns + interval_ms * MS)
			continue;
		sd->balanced_ns = now;
		if (!should_balance(&b))
			return;
		if (balance(&b) && idle == IDLE)
			idle = NOT_IDLE;
	}
}

/* nohz_balancer_kick, _nohz_idle_balance: a busy CPU has those that idle look, once a tick at most.
 * The kernel wakes one that does it for all; here it takes nobody's time. */
static void balance_for_idle(s32 cpu, u64 now)
{
	static u64 looked_at;
	struct span cache = spans[LEVEL_LLC][cpu];
	u32 busy = 0, place;

	for (place = cache.first; place < cache.end; place++)
		busy += !is_idle_cpu(order[place]);
	if ((nr_running(&rqs[cpu]) < 2 && busy < 2) || now / policy.tick_ns == looked_at)
		return;
	looked_at = now / policy.tick_ns;
	for (place = 0; place < topology.nr_online; place++) {
		s32 idle = order[place];

		if (!is_idle_cpu(idle))
			continue;
		balance_domains(idle, IDLE, now);
		if (rqs[idle].nr_queued)
			scx_bpf_kick_cpu(idle, SCX_KICK_IDLE);
	}
}

/* get_rd_overloaded: a task waits somewhere. */
static bool is_any_waiting(void)
{
	u32 place;

	for (place = 0; place < topology.nr_online; place++)
		if (nr_running(&rqs[order[place]]) > 1)
			return true;
	return false;
}

/* update_newidle_stats */
static void newidle_count(struct domain *sd, u32 successes)
{
	sd->newidle_calls++;
	sd->newidle_successes += successes;
	if (sd->newidle_calls < 1024)
		return;
	sd->newidle_ratio = sd->newidle_successes;
	sd->newidle_calls /= 2;
	sd->newidle_successes /= 2;
}

/* sched_rng: the same in each run. */
static u32 random_below(u32 bound)
{
	static u64 state = 1;

	state = state * 6364136223846793005ull + 1442695040888963407ull;
	return (state >> 33) % bound;
}

/* sched_balance_newidle: as often as such searches succeeded (NI_RANDOM). */
static u32 balance_newidle(s32 cpu, u64 now)
{
	struct run_queue *rq = &rqs[cpu];
	u64 cost = 0;
	u32 moved = 0, level;

	rq->idle_stamp = now;
	if (!is_any_waiting())
		return 0;
	for (level = 0; level < rq->nr_domains && !moved; level++) {
		struct domain *sd = &rq->domains[level];
		struct balance b = {.cpu = cpu, .sd = sd, .idle = NEWLY_IDLE, .now = now};
		u32 weight = 1 + sd->newidle_ratio;

		if (rq->avg_idle < cost + sd->newidle_cost_ns)
			break;
		if (random_below(1024) > weight) {
			newidle_count(sd, 0);
			continue;
		}
		if (!should_balance(&b))
			break;
		moved = balance(&b);
		cost += cpus_in(sd->span) * LOOK_NS;
		newidle_count(sd, moved ? (1024 + weight / 2) / weight : 0);
		if (cpus_in(sd->span) * LOOK_NS > sd->newidle_cost_ns) {
			sd->newidle_cost_ns = cpus_in(sd->span) * LOOK_NS;
			sd->cost_decayed_ns = now;
		}
	}
	if (moved)
		rq->idle_stamp = 0;
	return moved;
}

/* update_rq_avg_idle: how long the CPU idles, of late; twice what a move costs at most. */
static void idle_note(struct run_queue *rq, u64 now)
{
	s64 idled = since(now, rq->idle_stamp);

	if (!rq->idle_stamp || idled < 0)
		return;
	rq->avg_idle += (idled - (s64)rq->avg_idle) / 8;
	if (rq->avg_idle > 2 * MIGRATION_COST_NS)
		rq->avg_idle = 2 * MIGRATION_COST_NS;
}

#endif
