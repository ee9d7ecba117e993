/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the baseline remembers of tasks and CPUs.
 *
 *   run queue of a CPU:  newest <-> ... <-> oldest     tasks that wait, as cfs_tasks has them
 *                        curr                          the task that runs, in no list
 *
 * The kernel keeps those that wait in a tree by deadline besides; here a pick looks at each. A task
 * also waits in one of sched_ext's queues, for that is where a CPU takes it from; which one is
 * `dsq`, and says nothing about the order.
 */
#ifndef HEARTH_BASELINE_STATE_H
#define HEARTH_BASELINE_STATE_H

#define NO_CPU (-1)
#define MS 1000000ull

/* Weight of nice 0, and what one CPU can do (NICE_0_LOAD, SCHED_CAPACITY_SCALE). */
#define ONE 1024

host_constant struct hearth_policy policy;
host_constant struct hearth_topology topology;
/* The host writes the first, the machine undivided. */
struct hearth_shape shapes[HEARTH_SHAPES];
struct hearth_stats stats[HEARTH_MAX_CPUS];

/* What was the case lately: see average.h. */
struct average {
	u64 at_ns;
	u64 load;
	u64 runnable;
	u64 util;
};

/* `struct sched_entity`, and what `struct task_struct` has for fair.c. */
struct entity {
	struct task_struct *p;
	struct entity *newer;
	struct entity *older;
	/* Whose run queue it is on, or was on last; and the sched_ext queue in which it waits, or
	 * NO_CPU. */
	s32 cpu;
	s32 dsq;
	u64 weight;
	u64 vruntime;
	u64 deadline;
	/* Up to which vruntime no other task is picked (vprot). */
	u64 protected;
	s64 lag;
	u64 exec_start;
	struct average avg;
	/* It wants to run, or sleeps and is delayed. */
	bool on_rq;
	bool delayed;
	bool is_listed;
	bool is_new;
	/* The deadline is kept as a distance from vruntime (rel_deadline). */
	bool has_distance;
	/* Where it goes when it stops, or NO_CPU: active balancing. */
	s32 pushed_to;
	/* See record_wakee. */
	s32 last_wakee;
	u32 wakee_flips;
	u64 wakee_decayed_ns;
	s32 recent_cpu;
};

/* The levels at which CPUs balance; one that adds no CPU to that below is left out. */
enum level { LEVEL_LLC, LEVEL_NODE, LEVEL_ALL, NR_LEVELS };

/* CPUs order[first] up to, and without, order[end]. */
struct span {
	u32 first;
	u32 end;
};

/* `struct sched_domain`, of one CPU. */
struct domain {
	enum level level;
	struct span span;
	/* In ms, and when it was last balanced. */
	u32 interval_ms;
	u64 balanced_ns;
	u32 failed;
	/* See sched_balance_newidle. */
	u64 newidle_cost_ns;
	u64 cost_decayed_ns;
	u32 newidle_calls;
	u32 newidle_successes;
	u32 newidle_ratio;
};

/* `struct rq` and its `struct cfs_rq`. */
struct run_queue {
	struct entity *newest;
	struct entity *oldest;
	struct entity *curr;
	/* On this queue, running and delayed included; and of these, delayed. */
	u32 nr_queued;
	u32 nr_delayed;
	/* Of all of them. */
	u64 weight;
	/* The weighted mean of vruntime, when last looked at (zero_vruntime). */
	u64 zero;
	struct average avg;
	/* It shall look for another task (TIF_NEED_RESCHED_LAZY). */
	bool resched;
	bool is_idle;
	/* A higher class has it. */
	bool is_held;
	/* The CPU that waits for the task that runs here, or NO_CPU. */
	s32 push_to;
	u64 idle_stamp;
	u64 avg_idle;
	/* Idle CPUs that a search of this cache domain looks at (nr_idle_scan, of its first CPU).
	 */
	u32 nr_idle_scan;
	u32 nr_domains;
	struct domain domains[NR_LEVELS];
} rqs[HEARTH_MAX_CPUS];

/* CPUs that are there, by node, cache domain and number, and the place of each. */
u32 order[HEARTH_MAX_CPUS];
u32 place_of[HEARTH_MAX_CPUS];
struct span spans[NR_LEVELS][HEARTH_MAX_CPUS];

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct entity);
} entities SEC(".maps");

static struct entity *entity_of(struct task_struct *p)
{
	return bpf_task_storage_get(&entities, p, 0, 0);
}

/* cfs_rq->h_nr_runnable */
static u32 nr_runnable(const struct run_queue *rq)
{
	return rq->nr_queued - rq->nr_delayed;
}

/* rq->nr_running */
static u32 nr_running(const struct run_queue *rq)
{
	return rq->nr_queued + rq->is_held;
}

/* idle_cpu, available_idle_cpu */
static bool is_idle_cpu(s32 cpu)
{
	return rqs[cpu].is_idle && rqs[cpu].nr_queued == 0;
}

static bool may_run_on(struct task_struct *p, s32 cpu)
{
	return bpf_cpumask_test_cpu(cpu, p->cpus_ptr);
}

static u64 cpus_in(struct span span)
{
	return span.end - span.first;
}

static bool is_in(struct span span, s32 cpu)
{
	return place_of[cpu] >= span.first && place_of[cpu] < span.end;
}

/* cpus_share_cache */
static bool share_cache(s32 one, s32 other)
{
	return is_in(spans[LEVEL_LLC][one], other);
}

static void list_add(struct run_queue *rq, struct entity *se)
{
	se->older = rq->newest;
	se->newer = NULL;
	if (rq->newest)
		rq->newest->newer = se;
	else
		rq->oldest = se;
	rq->newest = se;
	se->is_listed = true;
}

static void list_remove(struct run_queue *rq, struct entity *se)
{
	if (!se->is_listed)
		return;
	*(se->newer ? &se->newer->older : &rq->newest) = se->older;
	*(se->older ? &se->older->newer : &rq->oldest) = se->newer;
	se->is_listed = false;
}

#endif
