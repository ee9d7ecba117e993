/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What the programs have in common: the ways to run, data whose use costs what its place in the
 * caches is worth, a clock.
 */
#ifndef PROGRAM_H
#define PROGRAM_H

#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum ways { PLAIN, HINTS, HAND };

static inline enum ways way_of(const char *name)
{
	if (!strcmp(name, "plain"))
		return PLAIN;
	if (!strcmp(name, "hints"))
		return HINTS;
	if (!strcmp(name, "hand"))
		return HAND;
	fprintf(stderr, "%s is none of plain, hints, hand\n", name);
	exit(2);
}

static inline double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

/* Of the whole process: seconds. */
static inline double cpu_time(void)
{
	struct timespec time;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
	return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static inline long number(const char *text, long least)
{
	char *end;
	long number = strtol(text, &end, 10);

	if (*end || end == text || number < least) {
		fprintf(stderr, "%s is no whole number from %ld\n", text, least);
		exit(2);
	}
	return number;
}

/* The CPUs of the process's mask, in their order. */
static inline int own_cpus(int *cpus)
{
	cpu_set_t mask;
	int cpu, count = 0;

	if (sched_getaffinity(0, sizeof(mask), &mask))
		exit(2);
	for (cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (CPU_ISSET(cpu, &mask))
			cpus[count++] = cpu;
	}
	return count;
}

static inline void bind_to(int cpu)
{
	cpu_set_t mask;

	CPU_ZERO(&mask);
	CPU_SET(cpu, &mask);
	pthread_setaffinity_np(pthread_self(), sizeof(mask), &mask);
}

/* A generator of its own for each thread: xorshift of 64 bits. */
static inline uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* Data of this size: cache lines, each of which says which one is next, in one circle through all.
 */
struct line {
	uint32_t next;
	uint32_t written;
	char rest[56];
};

static inline struct line *make_data(long bytes, uint64_t seed)
{
	long count = bytes / (long)sizeof(struct line), at;
	struct line *data = aligned_alloc(4096, (size_t)((bytes + 4095) / 4096 * 4096));
	uint32_t *order = malloc((size_t)count * sizeof(*order));

	if (!data || !order)
		exit(3);
	for (at = 0; at < count; at++)
		order[at] = (uint32_t)at;
	for (at = count - 1; at > 0; at--) {
		long other = (long)(next_random(&seed) % (uint64_t)(at + 1));
		uint32_t kept = order[at];

		order[at] = order[other];
		order[other] = kept;
	}
	for (at = 0; at < count; at++)
		data[order[at]] = (struct line){.next = order[(at + 1) % count]};
	free(order);
	return data;
}

/* Follows so many lines from one on, and writes to each eighth. Returns where it came to. */
static inline uint32_t use_data(struct line *data, uint32_t from, long steps)
{
	long step;

	for (step = 0; step < steps; step++) {
		from = data[from].next;
		if (!(step & 7))
			__atomic_store_n(&data[from].written, (uint32_t)step, __ATOMIC_RELAXED);
	}
	return from;
}

#endif
