/* SPDX-License-Identifier: GPL-2.0-only */
/* What a guest's program tells the plugin that counts its references. */
#ifndef HEARTH_GUEST_REGION_H
#define HEARTH_GUEST_REGION_H

#include <stdint.h>

enum call {
	CALL_BEGIN = 1,	  /* a region: address and length of its name */
	CALL_END = 2,	  /* the same */
	CALL_COUNTS = 3,  /* to where, and how many bytes: what this CPU and task have counted */
	CALL_SYMBOLS = 4, /* address of __switch_to; offsets of task_struct.pid and, << 32, .comm */
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

/* Where things are in the running kernel, for CALL_SYMBOLS. Each ends the program if it is not. */
uint64_t kernel_symbol(const char *name);
struct task_offsets {
	uint32_t pid, comm;
};
struct task_offsets task_offsets(void);

/* Frees so much of each node in an order of the seed's, and writes the files of a list anew. */
void shuffle(uint64_t mib_of_node, uint64_t seed, const char *list);

#endif
