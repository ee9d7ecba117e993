// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Moves the calling thread to a CPU. The kernel does so when the mask has that CPU alone, and the
 * thread gets its mask back at once: so what it begins inherits no other mask than its own, nothing
 * is left when it is killed, and it waits for no CPU while another is idle.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "fragments.h"
#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BITS (8 * sizeof(unsigned long))
#define WORDS (HEARTH_MAX_CPUS / BITS)

static int read_mask(unsigned long *mask)
{
	memset(mask, 0, WORDS * sizeof(*mask));
	return sched_getaffinity(0, WORDS * sizeof(*mask), (cpu_set_t *)mask) == 0;
}

/* The system call itself: who stands before the function would take this for the program's wish. */
static int write_mask(const unsigned long *mask)
{
	return syscall(SYS_sched_setaffinity, 0, WORDS * sizeof(*mask), mask) == 0;
}

int hearth_place(int cpu)
{
	unsigned long own[WORDS], alone[WORDS] = {0}, now[WORDS];
	int kept = errno, came;

	if (!read_mask(own) || !hearth_cpus_are_all(own))
		return 0;
	alone[cpu / BITS] |= 1UL << cpu % BITS;
	if (!(own[cpu / BITS] & alone[cpu / BITS]))
		return 0;
	came = write_mask(alone);
	/* Whoever else changed it meanwhile has the last word. */
	if (came && read_mask(now) && !memcmp(now, alone, sizeof(now)))
		write_mask(own);
	errno = kept;
	return came;
}
