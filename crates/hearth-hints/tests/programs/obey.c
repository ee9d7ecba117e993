// SPDX-License-Identifier: MIT OR Apache-2.0
/* Does what its standard input says, a line each; what is asked is answered with a number. */
#include "hearth.h"
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static cpu_set_t begun_with;

static int nth_cpu(int number)
{
	int cpu;

	for (cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (CPU_ISSET(cpu, &begun_with) && number-- == 0)
			return cpu;
	}
	exit(3);
}

static void bind_to(int cpu)
{
	cpu_set_t mask;

	CPU_ZERO(&mask);
	CPU_SET(cpu < 0 ? nth_cpu(-1 - cpu) : cpu, &mask);
	if (sched_setaffinity(0, sizeof(mask), &mask))
		exit(4);
}

static void many(uint64_t from, uint64_t count)
{
	uint64_t at;

	for (at = 0; at < count; at++) {
		hearth_enter(from + at);
		hearth_leave();
	}
}

static void work(uint64_t fragment, long us)
{
	struct timespec from, to;

	hearth_enter(fragment);
	clock_gettime(CLOCK_MONOTONIC, &from);
	do
		clock_gettime(CLOCK_MONOTONIC, &to);
	while ((to.tv_sec - from.tv_sec) * 1000000 + (to.tv_nsec - from.tv_nsec) / 1000 < us);
	hearth_leave();
}

static void *enter_some(void *count)
{
	many(1, (uint64_t)(uintptr_t)count);
	return NULL;
}

static void run_threads(int threads, uint64_t enters)
{
	pthread_t all[64];
	int at;

	for (at = 0; at < threads; at++)
		pthread_create(&all[at], NULL, enter_some, (void *)(uintptr_t)enters);
	for (at = 0; at < threads; at++)
		pthread_join(all[at], NULL);
}

static unsigned long long counted(const char *name)
{
	struct hearth_fragment_counts counts;

	hearth_fragment_counts(&counts);
	if (!strcmp(name, "enters"))
		return counts.enters;
	if (!strcmp(name, "at_home"))
		return counts.at_home;
	if (!strcmp(name, "moved"))
		return counts.moved;
	if (!strcmp(name, "stayed"))
		return counts.stayed;
	if (!strcmp(name, "refused"))
		return counts.refused;
	if (!strcmp(name, "unmatched"))
		return counts.unmatched;
	return counts.rehomed;
}

/* The mask as a number, of the first CPUs. */
static unsigned long mask(void)
{
	cpu_set_t now;
	unsigned long bits;

	sched_getaffinity(0, sizeof(now), &now);
	memcpy(&bits, &now, sizeof(bits));
	return bits >> 1;
}

/* Fills the memory that this process shares with its parent. */
static void vandalize(uint64_t state)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[512], rights[8];
	unsigned long from, to;

	while (maps && fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%lx-%lx %7s", &from, &to, rights) != 3 || strcmp(rights, "rw-s"))
			continue;
		for (; from < to; from += sizeof(state)) {
			state = state * 6364136223846793005u + 1442695040888963407u;
			*(uint64_t *)from = state >> state % 64;
		}
	}
	if (maps)
		fclose(maps);
}

static int other_than(int cpu)
{
	return nth_cpu(0) == cpu ? nth_cpu(1) : nth_cpu(0);
}

static void obey(const char *line)
{
	char word[16] = "", name[16] = "";
	unsigned long long a = 0, b = 0;

	sscanf(line, "%15s %15s", word, name);
	sscanf(line, "%*s %llu %llu", &a, &b);
	if (!strcmp(word, "enter")) {
		hearth_enter(a);
	} else if (!strcmp(word, "leave")) {
		hearth_leave();
	} else if (!strcmp(word, "many")) {
		many(a, b);
	} else if (!strcmp(word, "work")) {
		work(a, (long)b);
	} else if (!strcmp(word, "inherit")) {
		hearth_fragments_inherit((int)a);
	} else if (!strcmp(word, "bind")) {
		bind_to(atoi(name));
	} else if (!strcmp(word, "goto")) {
		bind_to(atoi(name));
		sched_setaffinity(0, sizeof(begun_with), &begun_with);
	} else if (!strcmp(word, "vandalize")) {
		vandalize(a);
	} else if (!strcmp(word, "threads")) {
		run_threads((int)a, b);
		puts("0");
	} else if (!strcmp(word, "fragment")) {
		printf("%lld\n", (long long)hearth_fragment());
	} else if (!strcmp(word, "home")) {
		printf("%d\n", hearth_fragment_home(a));
	} else if (!strcmp(word, "here")) {
		printf("%d\n", hearth_fragment_is_here(a));
	} else if (!strcmp(word, "count")) {
		printf("%llu\n", counted(name));
	} else if (!strcmp(word, "cpu")) {
		printf("%d\n", sched_getcpu());
	} else if (!strcmp(word, "mask")) {
		printf("%lu\n", mask());
	} else if (!strcmp(word, "other")) {
		printf("%d\n", other_than((int)a));
	} else if (!strcmp(word, "fork")) {
		/* The child obeys until it is told to exit. */
		fflush(stdout);
		if (fork())
			wait(NULL);
	} else if (!strcmp(word, "exit")) {
		exit(0);
	}
	fflush(stdout);
}

int main(void)
{
	char line[64];

	/* A child is to find nothing of what its parent has still to read. */
	setvbuf(stdin, NULL, _IONBF, 0);
	sched_getaffinity(0, sizeof(begun_with), &begun_with);
	while (fgets(line, sizeof(line), stdin))
		obey(line);
	return 0;
}
