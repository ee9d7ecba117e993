/* SPDX-License-Identifier: GPL-2.0-only */
/* Commands of `tasks`, and what they share. Each takes the arguments after its name and returns an
 * exit status. */
#ifndef HEARTH_GUEST_TASKS_H
#define HEARTH_GUEST_TASKS_H

#include "../common.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/types.h>

#define MAX_CPUS 128
#define MAX_TASKS 256

int command_spin(int argc, char **argv);
int command_sleepers(int argc, char **argv);
int command_yielders(int argc, char **argv);
int command_pingpong(int argc, char **argv);
int command_forks(int argc, char **argv);
int command_exits(int argc, char **argv);
int command_affinity(int argc, char **argv);
int command_newcomers(int argc, char **argv);
int command_demoted(int argc, char **argv);
int command_hog(int argc, char **argv);
int command_memory(int argc, char **argv);
int command_pages(int argc, char **argv);
int command_gaps(int argc, char **argv);
int command_follow(int argc, char **argv);
int command_declare(int argc, char **argv);

/* A child that spins until it is killed, or its parent ends. */
pid_t fork_spinner(void);

/* Has SIGTERM, to this process or a child that is forked from now on, set *told. */
void end_when_told(atomic_bool *told);

/* A number among the arguments, or its default. */
static inline int number(int argc, char **argv, int index, int otherwise)
{
	return index < argc ? atoi(argv[index]) : otherwise;
}

/* Zeroed memory that children share. */
static inline void *shared(size_t size)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		die("mmap");
	return memory;
}

/* "0-3,6" as a mask; "all" for every CPU. */
static inline cpu_set_t parse_mask(const char *text)
{
	cpu_set_t mask;
	int first, last, used;

	CPU_ZERO(&mask);
	if (!strcmp(text, "all")) {
		for (first = 0; first < nr_cpus(); first++)
			CPU_SET(first, &mask);
		return mask;
	}
	while (sscanf(text, "%d%n", &first, &used) == 1) {
		last = first;
		text += used;
		if (sscanf(text, "-%d%n", &last, &used) == 1)
			text += used;
		for (; first <= last; first++)
			CPU_SET(first, &mask);
		if (*text != ',')
			break;
		text++;
	}
	return mask;
}

#endif
