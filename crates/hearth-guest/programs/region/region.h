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

/* Where things are in the running kernel, for CALL_SYMBOLS. Each ends the program if it is not. */
uint64_t kernel_symbol(const char *name);
struct task_offsets {
	uint32_t pid, comm;
};
struct task_offsets task_offsets(void);

#endif
