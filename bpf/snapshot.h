/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a snapshot says of each task, shared with Rust (crates/hearth-abi/src/snapshot.rs).
 * Times are nanoseconds.
 */
#ifndef HEARTH_SNAPSHOT_H
#define HEARTH_SNAPSHOT_H

#include "interface.h"

#define HEARTH_MASK_WORDS (HEARTH_MAX_CPUS / 64)

/* What a task does. */
enum hearth_state {
	HEARTH_ASLEEP = 0,
	HEARTH_WAITING = 1,
	HEARTH_RUNNING = 2,
};

struct hearth_sample {
	/* The id of its cgroup; 0 if there is none. */
	u64 group;
	/* CPU time that it counts as having had, that it has had, and time that it has waited. */
	u64 usage;
	u64 ran_ns;
	u64 waited_ns;
	/* CPUs on which it may run, a bit each. */
	u64 mask[HEARTH_MASK_WORDS];
	s32 tid;
	s32 process;
	s32 cpu;
	u32 weight;
	u32 state;
	/* The process that began it, or took it over. */
	s32 parent;
};

#endif
