/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the scheduler remembers: the policy and the machine (set by the host
 * before it starts), a little for each task, CPU and cache domain.
 */
#ifndef HEARTH_STATE_H
#define HEARTH_STATE_H

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include "interface.h"
#include "queue_ids.h"
#include "scx.h"

/* Of a queue without a task. */
#define NO_USAGE (~0ull)
#define NO_CPU (-1)
#define NO_PID (-1)
#define NO_PART (-1)
#define NO_ROW (-1)
#define EVERY_ROW 0x7fffffff
#define NO_QUEUE (-1)

host_constant struct hearth_policy policy;
host_constant struct hearth_topology topology;
/* The kernel's watchdog ends a scheduler under which a task waits for this long; as in its
 * operations. */
host_constant u32 watchdog_ms = HEARTH_WATCHDOG_MS;
/* Written by the host: the first shape before the start, what is published at any time. */
struct hearth_shape shapes[HEARTH_SHAPES];
struct hearth_plan plans[HEARTH_PLANS];
volatile u64 published;
/* For tests of what the kernel does then: no task leaves a queue. */
host_constant bool stalls;
struct hearth_stats stats[HEARTH_MAX_CPUS];

/* Weight of a task of nice 0, and its inverse. */
#define COMMON_WEIGHT 100
#define COMMON_INVERSE (1 << 16)

/* Cells of all shapes. */
#define NR_CELLS (HEARTH_SHAPES << QUEUE_CPU_BITS)

/* What a CPU may run next; see candidates.h. */
struct candidate {
	s64 rank;
	s32 queue;
	/* A task by its pid; else NO_PID, for the queue's head. */
	s32 pid;
};

enum distance {
	DISTANCE_CACHE = 0,
	DISTANCE_NODE = 1,
	DISTANCE_MACHINE = 2,
};

/* What CPUs write without a lock lies in lines of their own. */
#define CACHE_LINE 64

/* Sums of the policy's numbers, made once. */
struct sums {
	/* Of a task of the common weight or more; see slices.h. */
	u64 slice;
	/* More tasks than this wait for a CPU: their slices are shorter (slices.h). */
	u64 crowd;
	/* Credit on a CPU of a task that waits in its queue. */
	u64 own_credit;
	/* How far two tasks that are always there may be apart: all credits, and a slice, which
	 * ends at the tick after its quantum. */
	u64 lag_limit;
	/* How far behind the clock a task that slept may begin. */
	u64 slept;
	/* How far behind the clock a task counts that waits for another CPU. */
	u64 foreign;
	/* How long a round of all that wait for a CPU may take. */
	u64 round_ns;
	/* Jiffies: how long a task waits at most before it goes first, and how long after its time
	 * one that its CPU has not taken is left to others; see waits.h. */
	u64 patience;
	u64 grace;
	/* Of an epoch of virtual time: log2 of its length, and its length less one. */
	u64 epoch_bits;
	u64 epoch_rest;
} sums;

static __always_inline void sums_make(void)
{
	u64 watchdog_ns = watchdog_ms * 1000000ull;

	sums.slice = policy.quantum_ns > policy.tick_ns ? policy.quantum_ns - policy.tick_ns : 1;
	sums.round_ns = watchdog_ns / 10;
	sums.crowd = sums.round_ns / (policy.quantum_ns + policy.tick_ns);
	sums.own_credit = policy.processor_ns + policy.llc_ns + policy.node_ns;
	sums.foreign = sums.own_credit + policy.time_ns;
	sums.lag_limit = sums.foreign + policy.quantum_ns + policy.tick_ns + policy.fragment_ns;
	sums.patience = watchdog_ns * 3 / 10 / policy.tick_ns;
	sums.grace = watchdog_ns / 20 / policy.tick_ns;
	while (sums.epoch_bits < 40 && 3ull << sums.epoch_bits <= policy.fragment_ns * 2)
		sums.epoch_bits++;
	sums.epoch_rest = (1ull << sums.epoch_bits) - 1;
}

struct queue_ctx {
	/* Usage of the first task in the queue. */
	u64 head;
	/* Tasks in the queue, or moved from it to a CPU where they will run. */
	s64 waiting;
	/* The sum of their weights. */
	s64 weight;
	/* Of these, such as may run on other CPUs, in a pinned queue; see places.h. */
	s64 strays;
	/* Of these, members of gangs; see gangs.h. */
	s64 members;
	/* No task of the queue came earlier, in jiffies; see waits.h. */
	u64 oldest;
	/* The head counts no task that was moved. */
	bool head_is_known;
} __attribute__((aligned(CACHE_LINE)));

/* What for an idle CPU is claimed: to look for work, or for a task that was placed on it. */
enum claim {
	CLAIM_NONE = 0,
	CLAIM_LOOK = 1,
	CLAIM_TASK = 2,
};

struct cpu_ctx {
	/* What who wakes a task for this CPU uses, and the CPU itself when the task begins to run,
	 * is one line: each line is a transfer between caches. */

	/* The greatest usage with which a task began to run here. */
	u64 clock;
	/* Of the task that runs here: its usage, what it asks for beyond that, and when this was
	 * noted. */
	u64 running_usage;
	u64 running_request;
	u64 noted_ns;
	/* Since when it runs, how long it had run then without a sleep, and how long it
	 * usually does. See moves.h. */
	u64 runs_since;
	u64 ran_ns;
	u64 usually_ns;
	/* What it was claimed for, if it has not left idleness since; see idle.h. */
	u32 claimed;
	/* Nothing runs here, or nothing is known yet. */
	bool is_idle;
	/* A higher class has it, until a task runs here or it idles: what waits here waits for
	 * nobody. (Dispatch is called meanwhile, too.) */
	bool is_held;
	/* The task that ran here last was made to stop, by the tick or for another. */
	bool expired;
	/* The task that runs here is about to sleep, it said so since it began: see preempt.h. */
	bool sleeps_soon;
	/* A member of a gang runs. */
	bool runs_member;

	/* Since when it idles, or last began to, and for how long it usually does. */
	u64 idle_since;
	u64 usually_idle_ns;
	/* Of the task that ran last: what credits count for here (credit.h), its weight, and which
	 * it was, running or not. */
	u32 inverse_weight;
	u32 weight;
	s32 last_pid;
	/* What the task asks for that would go on here; see candidates.h. */
	u64 kept_request;
	/* Where nobody waits: the greatest clock of those far ahead, where somebody does, or 0; see
	 * candidates.h. */
	u64 clock_ahead;
	/* See candidates.h. */
	struct candidate best;
	/* The CPU whose queues were looked at last for tasks that want help, and the queue of one,
	 * or NO_QUEUE; see waits.h. */
	s32 looked_after;
	s32 left_alone;
	/* A task may have waited for too long in its own queues, or in the one left alone. */
	bool has_late;
	/* A member of the row that runs may wait in the pinned queue. */
	bool has_member;
	/* It has no task to go on with, and none waits here. */
	bool is_out_of_work;
	/* Its place among the CPUs of its cell. */
	u8 place_in_cell;
	/* When it last looked at what waits for others, and whether it does now; see moves.h. */
	u64 looked_ns;
	bool looks_elsewhere;
	/* The task that runs here yields; or has, to nobody, and will at the next tick. */
	bool yields;
	bool yields_at_tick;
	/* Tasks that have declared fragments whose home this is. */
	s64 declared;
	/* See decisions.h. */
	struct hearth_decision noted;
} __attribute__((aligned(CACHE_LINE)));

/* See places.h. */
struct cell_ctx {
	/* Tasks that wait in shared queues of this cell, and of these such as may run beyond its
	 * part. */
	s64 waiting;
	s64 outgoing;
	/* Tasks in pinned queues that may run on several CPUs. */
	s64 strays;
	/* The CPU whose shared queue's head is the cell's first. */
	s32 first;
} __attribute__((aligned(CACHE_LINE)));

/* Of a cell of the undivided machine: which of its CPUs idle, as bits (idle.h), and since when one
 * has. */
struct idle_ctx {
	u64 cpus;
	u64 since;
} __attribute__((aligned(CACHE_LINE)));

/* See places.h. */
struct part_ctx {
	/* The cells in whose shared queues tasks wait, as bits. */
	u64 occupied;
} __attribute__((aligned(CACHE_LINE)));

/* Which cells may have idle CPUs, as bits. */
#define NR_IDLE_WORDS (HEARTH_MAX_CPUS / 64)

struct {
	u64 words[NR_IDLE_WORDS];
} __attribute__((aligned(CACHE_LINE))) idle_cells;

struct queue_ctx queue_ctxs[NR_CPU_QUEUES];
struct cpu_ctx cpu_ctxs[HEARTH_MAX_CPUS];
struct cell_ctx cell_ctxs[NR_CELLS];
struct idle_ctx idle_ctxs[HEARTH_MAX_CPUS];
struct part_ctx part_ctxs[HEARTH_SHAPES * HEARTH_MAX_PARTS];

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct hearth_task);
} task_ctxs SEC(".maps");

static __always_inline struct cpu_ctx *cpu_ctx(s32 cpu)
{
	return &cpu_ctxs[cpu & (HEARTH_MAX_CPUS - 1)];
}

static __always_inline struct queue_ctx *queue_ctx(s32 queue)
{
	return &queue_ctxs[queue & (NR_CPU_QUEUES - 1)];
}

/* The sum of weights of the tasks that wait for a CPU, and of the one that runs there. */
static __always_inline u64 weight_at(s32 cpu)
{
	return queue_ctx(cpu)->weight + queue_ctx(pinned_queue(cpu))->weight + cpu_ctx(cpu)->weight;
}

static __always_inline struct hearth_stats *stats_of(s32 cpu)
{
	return &stats[cpu & (HEARTH_MAX_CPUS - 1)];
}

/* Counts what other CPUs may count, too. */
static __always_inline void stats_count(u64 *count)
{
	__sync_fetch_and_add(count, 1);
}

static __always_inline u32 domain_of(s32 cpu)
{
	return topology.domain_of[cpu & (HEARTH_MAX_CPUS - 1)];
}

static __always_inline u32 node_of(s32 cpu)
{
	return topology.node_of[cpu & (HEARTH_MAX_CPUS - 1)];
}

/* The next thread of a CPU's core, in a ring. */
static __always_inline s32 sibling_of(s32 cpu)
{
	return topology.sibling_of[cpu & (HEARTH_MAX_CPUS - 1)];
}

static __always_inline struct cell_ctx *cell_ctx(u32 cell)
{
	return &cell_ctxs[cell & (NR_CELLS - 1)];
}

static __always_inline struct idle_ctx *idle_ctx(u32 cell)
{
	return &idle_ctxs[cell & (HEARTH_MAX_CPUS - 1)];
}

static __always_inline struct hearth_task *task_ctx(struct task_struct *p)
{
	return bpf_task_storage_get(&task_ctxs, p, 0, 0);
}

/* Of two times in jiffies. */
static __always_inline bool is_before(u64 one, u64 other)
{
	return (s64)(one - other) < 0;
}

/* Whether a task that waits may go to a CPU, to run there. The kernel ends a scheduler that moves
 * one which may not, and the mask of a task that has to stay where it is for a moment may not say
 * so yet. */
static __always_inline bool may_go_to(struct task_struct *p, s32 cpu)
{
	return bpf_cpumask_test_cpu(cpu, p->cpus_ptr) &&
	       (scx_bpf_task_cpu(p) == cpu || !is_migration_disabled(p));
}

static __always_inline u32 distance(s32 one, s32 other)
{
	if (domain_of(one) == domain_of(other))
		return DISTANCE_CACHE;
	return node_of(one) == node_of(other) ? DISTANCE_NODE : DISTANCE_MACHINE;
}

#endif
