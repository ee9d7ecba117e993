/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Everything that the scheduler and its hosts share: limits, the policy, the
 * machine's shape, statistics. Rust has it in crates/hearth-abi; each build
 * compares the two, field by field, and stops where they differ.
 *
 * Times are nanoseconds. CPUs, domains and nodes are numbered from 0.
 */
#ifndef HEARTH_INTERFACE_H
#define HEARTH_INTERFACE_H

#include "vmlinux.h"

/* A power of two. CPU numbers may have holes. */
#define HEARTH_MAX_CPUS 512
/* How long a task may wait before the kernel ends the scheduler, if the host says nothing else. */
#define HEARTH_WATCHDOG_MS 10000

/* How CPU time becomes an order: see usage.h, and papers/decay.h for all but HEARTH_FAIR. */
enum hearth_discipline {
	HEARTH_FIXED = 0,
	HEARTH_FAIR = 1,
	/* Those with one run queue; see papers/run_queue.h. */
	HEARTH_SYSTEM_V = 2,
	HEARTH_BSD = 3,
	/* Another scheduler: baseline/. */
	HEARTH_KERNEL = 4,
};

enum hearth_flags {
	/* The time credit fades with the time since a task last ran. */
	HEARTH_COMPLEX = 1 << 0,
	/* Each task stays on one CPU for life. */
	HEARTH_ATTACHED = 1 << 1,
};

/* A policy: one row of the tables in policies/. Read-only while running. */
struct hearth_policy {
	u64 quantum_ns;
	/* The host's tick: slices end only at ticks. */
	u64 tick_ns;
	/* system-v, 4.3bsd: how often usage decays, and the most that a task is charged. */
	u64 decay_ns;
	u64 saturation_ns;
	/* Credits; see credit.h. */
	u64 time_ns;
	u64 processor_ns;
	u64 llc_ns;
	u64 node_ns;
	u64 fragment_ns;
	/* complex: credit lost for each unit of time away, in thousandths. */
	u32 fade_milli;
	u32 discipline;
	u32 flags;
	u32 pad;
};

/* The machine. Domains are sets of CPUs with one last-level cache. */
struct hearth_topology {
	/* One more than the greatest number of a CPU, and how many there are. */
	u32 nr_cpus;
	u32 nr_online;
	/* Whether CPUs are threads of the same core. */
	u32 has_siblings;
	u32 pad;
	/* What a task pays that moves to another CPU of its cache domain, to another domain of its
	 * node, and to another node; see moves.h. */
	u64 cpu_move_ns;
	u64 cache_move_ns;
	u64 node_move_ns;
	u32 domain_of[HEARTH_MAX_CPUS];
	u32 node_of[HEARTH_MAX_CPUS];
	/* The next thread of the CPU's core, in a ring: the CPU itself if it is alone. */
	u32 sibling_of[HEARTH_MAX_CPUS];
};

#define HEARTH_MAX_PARTS 64
/* CPUs of a cell, at most. */
#define HEARTH_MAX_CELL 16

/* How the machine's CPUs are parted, and where they look for work: a cell is the CPUs of one part
 * and one domain, or some of these if they are many. CPUs of cell c are member[first[c]] up to,
 * and without, member[end[c]]; cells of part p are part_first[p] up to, and without, part_end[p].
 */
struct hearth_shape {
	u32 nr_parts;
	u32 nr_cells;
	u32 part_of[HEARTH_MAX_CPUS];
	u32 cell_of[HEARTH_MAX_CPUS];
	u32 member[HEARTH_MAX_CPUS];
	u32 first[HEARTH_MAX_CPUS];
	u32 end[HEARTH_MAX_CPUS];
	u32 part_first[HEARTH_MAX_PARTS];
	u32 part_end[HEARTH_MAX_PARTS];
};

/* Shapes that there is room for. The first is the machine undivided. A power of two. */
#define HEARTH_SHAPES 4

/* A power of two. */
#define HEARTH_MAX_FRAGMENTS 16384

#define HEARTH_MAX_TARGETS 1024
/* The least share that a plan can leave a task, in thousandths. */
#define HEARTH_LEAST_SHARE 100
/* In the id of a target that is a task. */
#define HEARTH_OF_TASK (1ull << 63)

/* What a plan says of one task, or of all tasks of a group. */
struct hearth_target {
	/* HEARTH_OF_TASK and a thread id, or the id of a cgroup. */
	u64 id;
	/* The CPU in whose queue it waits, if its mask allows that; -1 for where it last ran. */
	s32 home;
	/* The only part in which it runs, if its mask allows any; -1 for any. */
	s32 part;
	/* Of the slice that it would have, and of the share of CPU time that its weight gives it;
	 * 1000 leaves them as they are. */
	u16 slice_permille;
	u16 share_permille;
	/* The row of time in which it goes before others at its home; -1 for none. */
	s32 row;
};

struct hearth_plan {
	/* By the kernel's monotonic clock: afterwards it is dropped. */
	u64 until_ns;
	/* Rows of time, one after the other, and how long each is; see gangs.h. */
	u64 row_ns;
	u32 nr_rows;
	u32 nr_targets;
	/* By id, ascending. */
	struct hearth_target targets[HEARTH_MAX_TARGETS];
};

/* Plans that there is room for. */
#define HEARTH_PLANS 2

/*
 * The plan in force, as one word:
 *
 *   bit 63 ......... 8 | 7 6 |  5 4 |    3 2 |   1 0
 *       sequence number|     | plan | before | shape
 *
 * shape     index of the shape in force
 * before    index of the one before it, in whose cells tasks may still wait; that in force: none
 * plan      0 for none, or 1 and more: index of the plan and 1
 */
#define HEARTH_PUBLISHED_BEFORE 2
#define HEARTH_PUBLISHED_PLAN 4
#define HEARTH_PUBLISHED_SEQUENCE 8

/* Where the next task came from, counted per CPU at each dispatch; and what did not happen. */
struct hearth_stats {
	u64 kept;      /* the task that was running */
	u64 own;       /* this CPU's queue */
	u64 domain;    /* the queue of a CPU of this cache domain */
	u64 foreign;   /* the queue of a CPU of another domain */
	u64 direct;    /* placed on this CPU, which was idle, at wake-up */
	u64 preempted; /* wake-ups that preempted a task here */
	u64 idle;      /* nothing was runnable */
	u64 late;      /* a task that had waited for too long; see waits.h */
	u64 strays;    /* from the pinned queue of a CPU where more wait; see waits.h */
	u64 members;   /* a gang's, whose row it is; see gangs.h */
	u64 fragments; /* one of a fragment whose others run at its home; see fragments.h */
	/* Waits that ended where they began, though a CPU of the same cache idled, or only
	 * one beyond it, and for how long; see moves.h. */
	u64 stayed_near;
	u64 stayed_far;
	u64 stayed_ns;
	/* A task that had paid for the move was left, for this CPU is soon wanted again. */
	u64 brief;
	/* It was woken for a task that another has taken. */
	u64 in_vain;
};

/* Why a task runs where it does. */
enum hearth_source {
	HEARTH_SOURCE_IDLE = 0,	   /* no task: the CPU goes idle */
	HEARTH_SOURCE_KEPT = 1,	   /* it was running here, and goes on */
	HEARTH_SOURCE_OWN = 2,	   /* from this CPU's queue */
	HEARTH_SOURCE_DOMAIN = 3,  /* from a queue of this cache domain */
	HEARTH_SOURCE_FOREIGN = 4, /* from a queue of another domain */
	HEARTH_SOURCE_DIRECT = 5,  /* it woke up, and this CPU was idle */
	HEARTH_SOURCE_KERNEL = 6,  /* the kernel's doing: it goes on after a higher class */
	HEARTH_SOURCE_LATE = 7,	   /* it had waited for too long */
	HEARTH_SOURCE_STRAY = 8,   /* from the pinned queue of a CPU where more wait */
	HEARTH_SOURCE_MEMBER = 9,  /* of a gang, whose row it is */
	/* One of a fragment whose others run at its home. */
	HEARTH_SOURCE_FRAGMENT = 10,
};

/* A rank where there is no candidate. */
#define HEARTH_NO_RANK INT64_MAX

/* One decision: a task begins to run on a CPU, or the CPU goes idle. Written while
 * somebody traces. */
struct hearth_decision {
	u64 at_ns;
	/* Ranks of what was considered: the task that was running, the head of the own
	 * queue or the first of the run queue, and the first of all others. */
	s64 kept_rank;
	s64 own_rank;
	s64 elsewhere_rank;
	/* Of the task that runs. */
	u64 usage;
	s32 pid;
	s32 cpu;
	/* Whose queue it waited in (of the run queue: where it ran before), where it ran last, or
	 * -1; whose queue the first of all
	 * others waited in. */
	s32 from;
	s32 last_cpu;
	s32 elsewhere;
	u32 source;
	char comm[16];
};

/* A task's word, in which it declares the data that it works on. */
struct hearth_registration {
	/* Where it is in the task's memory; 0 for nowhere. */
	u64 word_at;
	s32 tid;
	/* The process whose task it has to be. */
	s32 process;
	/* Set if there is such a task. */
	u32 found;
	u32 pad;
};

/* What the scheduler remembers of a task. */
struct hearth_task {
	/* What a wake-up and the start of a run use, one after the other and mostly on two CPUs,
	 * comes first: each line is a transfer between caches. The kernel has 8 bytes before it in
	 * the first line. */

	/* CPU time received, weighted; see usage.h. */
	u64 usage;
	/* fair: the CPU time up to which it has been charged. */
	u64 charged_ns;
	/* How long it usually runs before it sleeps, and what it had run when it last woke;
	 * see moves.h. */
	u64 usually_ns;
	u64 woke_ns;
	/* What it asks for beyond what it has had, as usage; see preempt.h. */
	u64 request;
	/* Of its weight: its slice; see slices.h. */
	u64 slice_ns;
	/* The published word that what the plan says is of. */
	u64 planned;

	/* 100 / weight, and over the share that the plan gives, in 65536ths: charging does not
	 * divide. */
	u32 inverse_weight;
	/* Where it ran last, before that, and where it waits now; -1 for nowhere,
	 * less for where it is being moved. */
	s32 last_cpu;
	s32 previous_cpu;
	s32 queue;
	/* Where it is counted while it waits; see places.h. */
	u32 counted;
	/* What the plan says; see hearth_target. */
	s32 home;
	s32 part;
	s32 row;
	/* The fragment's place, and that of the one among whose running tasks it counts; -1 for
	 * none. */
	s32 fragment;
	s32 runs_in;
	/* How often it began to run. */
	u64 runs;
	/* Since when it waits, as far as that is not collected, and what it has collected
	 * since it last paid for a move; see moves.h. */
	u64 waits_since;
	u64 waited_ns;

	/* The same, beside idle CPUs of its own cache. */
	u64 waited_near_ns;
	/* What both were when it came to wait. */
	u64 waited_before_ns;
	u64 waited_near_before_ns;
	/* What it had run when it came to its CPU. */
	u64 came_ns;
	/* Of its weight: its time credit (credit.h), and how far ahead of the clock it may be
	 * (usage.h). */
	u64 time_ns;
	u64 ahead_ns;
	/* Parts of which its mask has every CPU, as bits. */
	u64 covers;
	u32 weight;
	/* What the plan says of its slice, and of its share. */
	u16 slice_permille;
	u16 share_permille;

	/* How often it began to run on another CPU than before: of the same cache domain, of the
	 * same node, of another. */
	u64 moves[3];
	/* How often it went on by its credit, past a waiting task that had had less. */
	u64 by_credit;
	/* The number that it declares, and where the word is in which it does; see fragments.h. */
	u64 declared;
	u64 word_at;
	/* system-v, 4.3bsd: the decay that usage has seen. */
	u64 epoch;
	/* complex: when it ran last. */
	u64 stopped_at;
	/* attached: the CPU for life; -1 if it has not run, and nor has who made it. */
	s32 attached_cpu;
	/* It came from another class, and has not waited since; see false_waits.h. */
	u32 has_joined;
	/* Its weight, as it is counted where it waits. */
	u32 counted_weight;
	u32 pad;
};

#define HEARTH_DUMP_BYTES 32768

/* False waits that are remembered; see false_waits.h. A power of two. */
#define HEARTH_FALSE_WAITS 64

/* A task whose wait the kernel counts wrong, and when it really came to wait. */
struct hearth_false_wait {
	/* In jiffies. */
	u64 came_at;
	s32 pid;
	u32 pad;
};

/* Why the kernel let go of the scheduler. */
struct hearth_exit {
	/* enum scx_exit_kind; 0 while it runs. */
	s32 kind;
	u32 pad;
	s64 code;
	/* In jiffies: when the kernel found an error. */
	u64 at;
	char reason[128];
	char message[1024];
};

_Static_assert(sizeof(struct hearth_stats) == 128, "two cache lines");

#endif
