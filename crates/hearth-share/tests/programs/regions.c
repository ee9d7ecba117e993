// SPDX-License-Identifier: GPL-2.0-only
/*
 * For each line that it reads, one of every kind of parallel region, and a line of what was seen:
 * threads of a region, the user's number before, within and after, threads where a clause gives
 * them, of a region within, and the sum of all loops.
 */
#define _GNU_SOURCE
#include <omp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef THREADPRIVATE
static int kept;
#pragma omp threadprivate(kept)
#endif

#ifndef THREADPRIVATE
/* Each schedule is an entry of the runtime's own. */
static long loops(void)
{
	long sum = 0;

#pragma omp parallel for reduction(+ : sum)
	for (int i = 0; i < 1000; i++)
		sum += i;
#pragma omp parallel for reduction(+ : sum) schedule(static, 7)
	for (int i = 0; i < 1000; i++)
		sum += i;
#pragma omp parallel for reduction(+ : sum) schedule(dynamic)
	for (int i = 0; i < 1000; i++)
		sum += i;
#pragma omp parallel for reduction(+ : sum) schedule(guided)
	for (int i = 0; i < 1000; i++)
		sum += i;
#pragma omp parallel for reduction(+ : sum) schedule(runtime)
	for (int i = 0; i < 1000; i++)
		sum += i;
#pragma omp parallel for reduction(+ : sum) schedule(monotonic : dynamic, 3)
	for (int i = 0; i < 1000; i++)
		sum += i;
#pragma omp parallel sections reduction(+ : sum)
	{
#pragma omp section
		sum += 1;
#pragma omp section
		sum += 2;
	}
#pragma omp parallel reduction(task, + : sum)
	sum += omp_get_thread_num() == 0;
	return sum;
}

static void look(void)
{
	int before = omp_get_max_threads(), within = 0, threads = 0, clause = 0, inner = 0;

#pragma omp parallel
	{
#pragma omp single
		{
			threads = omp_get_num_threads();
			within = omp_get_max_threads();
		}
#pragma omp barrier
#pragma omp master
#pragma omp parallel
#pragma omp single
		inner = omp_get_num_threads();
	}
#pragma omp parallel num_threads(5)
#pragma omp single
	clause = omp_get_num_threads();
	printf("threads %d before %d within %d after %d clause %d inner %d sum %ld\n", threads,
	       before, within, omp_get_max_threads(), clause, inner, loops());
	fflush(stdout);
}

#else
/* Counts in each thread, and tells whether all have counted as often. */
static void keep(void)
{
	int least = 1 << 30, most = 0, threads = 0;

#pragma omp parallel reduction(min : least) reduction(max : most)
	{
		least = most = ++kept;
#pragma omp single
		threads = omp_get_num_threads();
	}
	printf("threads %d kept %d\n", threads, least == most ? least : -1);
	fflush(stdout);
}
#define look keep
#endif

int main(int count, char **arguments)
{
	const char *how = count > 1 ? arguments[1] : "";
	cpu_set_t mask;
	char line[64];

	if (!strcmp(how, "static"))
		omp_set_dynamic(0);
	if (!strcmp(how, "bind")) {
		CPU_ZERO(&mask);
		CPU_SET(sched_getcpu(), &mask);
		sched_setaffinity(0, sizeof(mask), &mask);
	}
	if (!strcmp(how, "set"))
		omp_set_num_threads(3);
	if (!strcmp(how, "fork") && fork() > 0)
		pause();
	while (fgets(line, sizeof(line), stdin))
		look();
	return 0;
}
