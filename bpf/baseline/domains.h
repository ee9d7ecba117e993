/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The levels at which CPUs balance (kernel/sched/topology.c), from the host's cache domains and
 * memory nodes:
 *
 *   level  CPUs of                     in Linux  cache_nice_tries
 *   LLC    one last-level cache        MC        1
 *   NODE   one memory node             PKG       1
 *   ALL    all nodes, equally far      NUMA      2
 *
 * The groups that a CPU balances between are the spans of the level below, or single CPUs. A level
 * that adds nothing is left out (sd_degenerate). Hardware threads are not modelled: the simulated
 * machine has none. Nodes are near enough for new tasks and wake-ups (RECLAIM_DISTANCE), as those
 * of two sockets are.
 */
#ifndef HEARTH_BASELINE_DOMAINS_H
#define HEARTH_BASELINE_DOMAINS_H

/* sd_init */
#define IMBALANCE_PCT 117
#define BUSY_FACTOR 16

static u32 cache_nice_tries(const struct domain *sd)
{
	return sd->level == LEVEL_ALL ? 2 : 1;
}

/* Whether the CPUs of this place and the one before are in different spans of a level. */
static bool is_border(enum level level, u32 place)
{
	s32 cpu = order[place], before = order[place - 1];

	if (level == LEVEL_ALL)
		return false;
	return topology.node_of[cpu] != topology.node_of[before] ||
	       (level == LEVEL_LLC && topology.domain_of[cpu] != topology.domain_of[before]);
}

static void spans_make(enum level level)
{
	u32 first = 0, place, at;

	for (place = 1; place <= topology.nr_online; place++) {
		if (place < topology.nr_online && !is_border(level, place))
			continue;
		for (at = first; at < place; at++)
			spans[level][order[at]] = (struct span){first, place};
		first = place;
	}
}

/* The undivided machine's members are the CPUs that are there, by cache domain; here also by
 * node. */
static void order_make(void)
{
	u32 node, i, place = 0;

	for (node = 0; node < HEARTH_MAX_CPUS && place < topology.nr_online; node++)
		for (i = 0; i < topology.nr_online; i++) {
			u32 cpu = shapes[0].member[i];

			if (topology.node_of[cpu] != node)
				continue;
			order[place] = cpu;
			place_of[cpu] = place++;
		}
}

/* build_sched_domains */
static void domains_make(void)
{
	enum level level;
	u32 place;

	order_make();
	for (level = 0; level < NR_LEVELS; level++)
		spans_make(level);
	for (place = 0; place < topology.nr_online; place++) {
		struct run_queue *rq = &rqs[order[place]];
		u64 least = 1;

		/* As a machine that has idled leaves it. */
		rq->nr_idle_scan = cpus_in(spans[LEVEL_LLC][order[place]]);
		for (level = 0; level < NR_LEVELS; level++) {
			struct span span = spans[level][order[place]];

			if (cpus_in(span) == least)
				continue;
			least = cpus_in(span);
			/* newidle_ratio: half of the searches are taken to succeed. */
			rq->domains[rq->nr_domains++] = (struct domain){
				.level = level,
				.span = span,
				.interval_ms = least,
				.newidle_calls = 512,
				.newidle_successes = 256,
				.newidle_ratio = 512,
			};
		}
	}
}

/* The group of a CPU at a level: the span of the level below. */
static struct span group_of(s32 cpu, const struct domain *sd)
{
	const struct domain *below = &rqs[cpu].domains[0];
	struct span group = {place_of[cpu], place_of[cpu] + 1};

	for (; below->level < sd->level; below++)
		group = below->span;
	return group;
}

/* Goes round the groups of a level, and ends where it began. */
static struct span group_after(struct span group, const struct domain *sd)
{
	u32 place = group.end < sd->span.end ? group.end : sd->span.first;

	return group_of(order[place], sd);
}

/* build_sched_domains: how many tasks may run on a node before it counts as imbalanced that
 * others idle: as many as it has cache domains, or if it has one an eighth of its CPUs
 * (imb_numa_nr). */
static u32 tolerated_tasks(s32 cpu)
{
	u32 cpus = cpus_in(spans[LEVEL_NODE][cpu]), caches = cpus / cpus_in(spans[LEVEL_LLC][cpu]);
	u32 tasks = caches == 1 ? cpus / 8 : caches;

	return tasks ? tasks : 1;
}

/* allow_numa_imbalance, adjust_numa_imbalance: two more on another node are no imbalance while few
 * run here. */
static s64 adjusted_imbalance(s64 imbalance, u32 running, s32 cpu)
{
	return running <= tolerated_tasks(cpu) && imbalance <= 2 ? 0 : imbalance;
}

/* ---- What a group does ---- */

/* enum group_type, as far as it applies: hardware threads, unequal CPUs and tasks whose masks
 * leave CPUs out (group_imbalanced) are not modelled. */
enum group_type { HAS_SPARE, FULLY_BUSY, OVERLOADED };

/* struct sg_lb_stats */
struct group {
	struct span span;
	enum group_type type;
	u64 load;
	u64 runnable;
	u64 util;
	u64 capacity;
	u64 avg_load;
	u32 nr_running;
	u32 nr_runnable;
	u32 idle_cpus;
};

/* capacity_of: scale_rt_capacity leaves next to nothing where a higher class runs. */
static u64 capacity_of(const struct run_queue *rq)
{
	return rq->is_held ? 1 : ONE;
}

/* group_is_overloaded, group_has_capacity, group_classify */
static enum group_type classify(const struct group *group)
{
	u64 cpus = cpus_in(group->span);
	bool waits = group->capacity * IMBALANCE_PCT < group->runnable * 100;
	bool is_used = group->capacity * 100 < group->util * IMBALANCE_PCT;

	if (group->nr_running > cpus && (is_used || waits))
		return OVERLOADED;
	if (group->nr_running < cpus)
		return HAS_SPARE;
	return !waits && group->capacity * 100 > group->util * IMBALANCE_PCT ? HAS_SPARE
									     : FULLY_BUSY;
}

/* update_sg_lb_stats, update_sg_wakeup_stats; for a task that begins, also how full
 * those are that have nothing left. */
static struct group look_at(struct span span, bool begins, u64 now)
{
	struct group group = {.span = span};
	u32 place;

	for (place = span.first; place < span.end; place++) {
		struct run_queue *rq = &rqs[order[place]];

		rq_average(rq, now);
		group.load += load_of(&rq->avg);
		group.runnable += runnable_of(&rq->avg);
		group.util += util_of(&rq->avg);
		group.capacity += capacity_of(rq);
		group.nr_running += nr_running(rq);
		group.nr_runnable += nr_runnable(rq);
		group.idle_cpus += is_idle_cpu(order[place]);
	}
	group.type = classify(&group);
	if (group.type == OVERLOADED || (begins && group.type == FULLY_BUSY))
		group.avg_load = group.load * ONE / group.capacity;
	return group;
}

#endif
