/* SPDX-License-Identifier: GPL-2.0-only */
/* What a guest's program tells the plugin that counts its references. */
#ifndef HEARTH_GUEST_REGION_H
#define HEARTH_GUEST_REGION_H

#include <stdbool.h>
#include <stdint.h>

enum call {
	CALL_BEGIN = 1,	  /* a region: address and length of its name */
	CALL_END = 2,	  /* the same */
	CALL_COUNTS = 3,  /* to where, and how many bytes: what this CPU and task have counted */
	CALL_SYMBOLS = 4, /* address of __switch_to; offsets of task_struct.pid and, << 32, .comm */
	CALL_COUNTERS = 5, /* to where, and how many bytes: struct counters */
	CALL_ANEW = 6,	   /* counts begin anew in this region, and caches stay as they are */
};

/* What a CPU's counters have. They never go back, and stand still outside of regions. */
struct counters {
	uint64_t cycles;
	uint64_t instructions;
	uint64_t misses; /* of the last level */
};

/*
 * A long NOP whose displacement is the plugin's: it takes no privilege and does nothing on a
 * machine, or under an emulator, that knows nothing of it.
 */
static inline void call(enum call operation, uint64_t first, uint64_t second)
{
	__asm__ volatile(".byte 0x0f, 0x1f, 0x80, 0x01, 0xd0, 0x4e, 0x5c"
			 :
			 : "a"((uint64_t)operation), "D"(first), "S"(second)
			 : "memory");
}

/* SplitMix64: Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators", 2014. */
static inline uint64_t next_random(uint64_t *state)
{
	uint64_t z = (*state += 0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return z ^ (z >> 31);
}

/* Where things are in the running kernel. Each ends the program if it is not there. */
uint64_t kernel_symbol(const char *name);
struct kernel_structure {
	uint32_t bytes;
	/* Of its BTF. */
	uint32_t members, count;
	bool has_bit_sizes;
};
struct kernel_structure kernel_structure(const char *name);
uint32_t kernel_offset(const struct kernel_structure *of, const char *member);

/* Gives the running kernel a unit of counters: counters/module.c. */
void load_counters(void);

/*
 * Frees so much of each node in an order of the seed's, writes the files of a list anew, and prints
 * a checksum of the page frames that they are on then.
 */
void shuffle(uint64_t mib_of_node, uint64_t seed, const char *list);

#endif
