/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What the programs have in common: the ways to run, data whose use costs what its place in the
 * caches is worth, threads that begin together and what they take.
 */
#ifndef PROGRAM_H
#define PROGRAM_H

#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
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

static inline void fail(const char *what)
{
	perror(what);
	exit(3);
}

/* The way, if there are as many words as in `usage`: the program's name, WAY, and more. */
static inline enum ways way_given(int count, char **words, const char *usage)
{
	int expected = 1;
	const char *at;

	for (at = usage; *at; at++)
		expected += *at == ' ';
	if (count != expected) {
		fprintf(stderr, "%s\n", usage);
		exit(2);
	}
	return way_of(words[1]);
}

/* Memory, all 0, of this process and those that are forked later. */
static inline void *shared(size_t size)
{
	void *made = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (made == MAP_FAILED)
		fail("mmap");
	return made;
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

/* Data: cache lines, each of which says which one is next, in one circle through all. */
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

/* Where threads wait for each other before they begin, and processes that are forked later. */
static pthread_barrier_t *together;

static inline void expect(long threads)
{
	pthread_barrierattr_t of_processes;

	together = shared(sizeof(*together));
	pthread_barrierattr_init(&of_processes);
	pthread_barrierattr_setpshared(&of_processes, PTHREAD_PROCESS_SHARED);
	/* And who measures. */
	pthread_barrier_init(together, &of_processes, (unsigned)threads + 1);
}

static inline void wait_for_all(void)
{
	pthread_barrier_wait(together);
}

static inline pthread_t make_thread(void *(*work)(void *), void *given)
{
	pthread_t made;

	if (pthread_create(&made, NULL, work, given))
		fail("pthread_create");
	return made;
}

struct taken {
	double seconds, cpu_seconds;
};

/* Of this process, its threads, and its children that have ended and were waited for. */
static inline struct taken taken(void)
{
	static const int whose[] = {RUSAGE_SELF, RUSAGE_CHILDREN};
	struct timespec time;
	struct taken all;
	size_t at;

	clock_gettime(CLOCK_MONOTONIC, &time);
	all = (struct taken){.seconds = (double)time.tv_sec + (double)time.tv_nsec * 1e-9};
	for (at = 0; at < 2; at++) {
		struct rusage usage;

		getrusage(whose[at], &usage);
		all.cpu_seconds += (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
				   (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
	}
	return all;
}

/* What came out, and what was taken since this was `before`. */
static inline void report(uint64_t sum, struct taken before)
{
	struct taken now = taken();

	printf("%llu %.6f %.6f\n", (unsigned long long)sum, now.seconds - before.seconds,
	       now.cpu_seconds - before.cpu_seconds);
}

/* Lets the threads begin, and waits until they have ended. Returns what was taken before. */
static inline struct taken run_threads(const pthread_t *threads, long count)
{
	struct taken before;
	long at;

	wait_for_all();
	before = taken();
	for (at = 0; at < count; at++)
		pthread_join(threads[at], NULL);
	return before;
}

#endif
