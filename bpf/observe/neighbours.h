/* SPDX-License-Identifier: GPL-2.0-only */
/* What is told of each CPU's time; crates/hearth-observe/src/neighbours.rs reads it as words of 64
 * bits. */
#ifndef HEARTH_OBSERVE_NEIGHBOURS_H
#define HEARTH_OBSERVE_NEIGHBOURS_H

/* In the place of a program's slot, beside those of tasks.h. */
#define NEIGHBOURS_IDLE 0xffffffffU
#define NEIGHBOURS_OBSERVER 0xfffffffbU

/* Time of a CPU in which one program ran, or none. */
struct neighbours_stretch {
	u64 cpu;
	u64 slot;
	u64 tid;
	u64 start_ns;
	u64 ns;
	u64 cycles;
	u64 instructions;
	u64 misses;
};

_Static_assert(sizeof(struct neighbours_stretch) == 8 * 8, "mirrored in Rust");

#endif
