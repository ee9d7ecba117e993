/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the observer counts, and shares with Rust: crates/hearth-observe/src/layout.rs reads
 * these structs as words of 64 bits, in this order.
 *
 * Times are nanoseconds. A dispatch interval is the time from one switch to a task until the next
 * switch away from it. Samples cut it into parts:
 *
 *   |<------------- first part ------------>|
 *                  |<----- later part ----->|<------ later part ------>|
 *   switch in      sample                   sample                     switch out
 *
 * The first part ends with the first sample that comes OBSERVE_FIRST_PART_NS or more after the
 * start: the reload transient is in it. An interval that ends before that is one whole. A later
 * part begins with any sample that comes OBSERVE_LATER_NS or more after the start: the later, the
 * nearer to the steady state.
 */
#ifndef HEARTH_OBSERVE_H
#define HEARTH_OBSERVE_H

/* A power of two; the host refuses machines with more. */
#define OBSERVE_MAX_CPUS 512
#define OBSERVE_FIRST_PART_NS (1ULL << 20)
#define OBSERVE_LATER_BIT 16
#define OBSERVE_LATER_NS (1ULL << OBSERVE_LATER_BIT)
#define OBSERVE_NAME 32

/* Whose tasks are watched. */
enum observe_scope {
	OBSERVE_HOST = 0,
	/* What a process started, without itself. */
	OBSERVE_CHILDREN = 1,
	/* A process with its threads and what it started. */
	OBSERVE_PROCESS = 2,
	OBSERVE_CGROUP = 3,
};

/* What happened before an interval. */
enum observe_before {
	OBSERVE_START = 0,	  /* the task's first, or the first of a new program */
	OBSERVE_SAME = 1,	  /* it ran here last, and nothing else but the kernel since */
	OBSERVE_OTHERS = 2,	  /* it ran here last, and others since */
	OBSERVE_MOVED_DOMAIN = 3, /* it ran last on another CPU of this cache domain */
	OBSERVE_MOVED_NODE = 4,	  /* on another domain of this node */
	OBSERVE_MOVED_REMOTE = 5, /* on another node */
	OBSERVE_BEFORES = 6,
};

/* Why an interval ended. */
enum observe_end {
	OBSERVE_SLICE = 0, /* still runnable, and nobody had just woken: its slice was used up */
	OBSERVE_PREEMPTED = 1, /* still runnable, for a task that had just woken */
	OBSERVE_YIELDED = 2,
	OBSERVE_BLOCKED = 3,
	OBSERVE_EXITED = 4,
	OBSERVE_ENDS = 5,
};

/* Lengths: 4 bins for each doubling, from 1 microsecond (2^10 ns) up. */
#define OBSERVE_LENGTHS 100
/* Where later parts begin: from OBSERVE_LATER_NS up, a bin for each doubling. */
#define OBSERVE_LATER 8
/* Positions of samples: below 16 microseconds, then a bin for each doubling. */
#define OBSERVE_CURVE 12

struct wide {
	u64 low;
	u64 high;
};

/* Counted parts of intervals: sums, and sums of products. */
struct observe_sums {
	u64 count;
	u64 ns;
	u64 instructions;
	u64 misses;
	u64 cycles;
	struct wide ii, im, ic, mm, mc, cc;
};

/* What first parts had more than the later part that followed would have had, at equal
 * instructions: signed sums and squares. */
struct observe_pairs {
	u64 count;
	s64 misses;
	s64 cycles;
	struct wide misses_squared, cycles_squared;
};

/* Samples at some position: sums of what had been counted since the interval began. */
struct observe_point {
	u64 count;
	u64 ns;
	u64 instructions;
	u64 misses;
	u64 cycles;
};

/* For how long tasks of a program waited for a CPU: from a wake-up, by length; and from when they
 * were taken off one. */
struct observe_waits {
	u64 woken;
	u64 woken_ns;
	u64 taken_off;
	u64 taken_off_ns;
	u64 woken_lengths[OBSERVE_LENGTHS];
};

/* What tasks of one program had to do with those of another, or of their own. */
struct observe_behind {
	/* Waits that ended when the other left the CPU, and for how much of all waits it had it. */
	u64 waits;
	u64 waited_ns;
	/* How often the other took the CPU from them. */
	u64 preempted;
};

/* A program, on one CPU. The sums are of counted intervals only. */
struct observe_program {
	u64 ends[OBSERVE_ENDS];
	u64 befores[OBSERVE_BEFORES];
	u64 interval_ns;
	u64 slices;
	u64 slice_ns;
	u64 interval_lengths[OBSERVE_LENGTHS];
	u64 slice_lengths[OBSERVE_LENGTHS];
	struct observe_sums whole[OBSERVE_BEFORES];
	struct observe_sums first[OBSERVE_BEFORES];
	struct observe_sums later[OBSERVE_LATER];
	struct observe_pairs pairs[OBSERVE_BEFORES];
	struct observe_point curve[OBSERVE_BEFORES][OBSERVE_CURVE];
	struct observe_waits waits;
};

/* What a CPU did, as far as userspace reads it. */
struct observe_cpu_time {
	u64 watched_ns;
	u64 other_ns;
	u64 kernel_ns;
	u64 idle_ns;
	u64 switches;
	u64 reads;
	u64 read_ns;
};

_Static_assert(sizeof(struct observe_sums) == 17 * 8, "mirrored in Rust");
_Static_assert(sizeof(struct observe_pairs) == 7 * 8, "mirrored in Rust");
_Static_assert(sizeof(struct observe_program) ==
		       8 * (OBSERVE_ENDS + OBSERVE_BEFORES + 3 + 2 * OBSERVE_LENGTHS +
			    17 * (2 * OBSERVE_BEFORES + OBSERVE_LATER) + 7 * OBSERVE_BEFORES +
			    5 * OBSERVE_BEFORES * OBSERVE_CURVE + 4 + OBSERVE_LENGTHS),
	       "mirrored in Rust");
_Static_assert(sizeof(struct observe_program) <= 32768, "the limit of per-CPU values");

#endif
