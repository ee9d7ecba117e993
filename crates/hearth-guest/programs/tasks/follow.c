// SPDX-License-Identifier: GPL-2.0-only
/*
 *   tasks follow MS
 *
 * Asks how many CPUs it can get, and uses so many threads, in rounds of 20 ms. Prints each number
 * when it changes:
 *
 *   cpus=3 ms=140
 */
#include "tasks.h"
#include "../../../hearth-hints/include/hearth.h"

#include <pthread.h>

#define ROUND_NS 20000000ULL

static void *spin_round(void *end)
{
	while (now_ns() < *(uint64_t *)end)
		;
	return NULL;
}

static void round_of(int threads)
{
	uint64_t end = now_ns() + ROUND_NS;
	pthread_t others[MAX_CPUS];
	int i, made = 0;

	for (i = 1; i < threads && i < MAX_CPUS; i++)
		made += !pthread_create(&others[made], NULL, spin_round, &end);
	spin_round(&end);
	for (i = 0; i < made; i++)
		pthread_join(others[i], NULL);
}

int command_follow(int argc, char **argv)
{
	uint64_t begin = now_ns(), end = begin + number(argc, argv, 0, 1000) * 1000000ULL;
	int before = 0, cpus;

	while (now_ns() < end) {
		cpus = hearth_cpus();
		if (cpus != before)
			printf("cpus=%d ms=%d\n", cpus, (int)((now_ns() - begin) / 1000000));
		fflush(stdout);
		before = cpus;
		round_of(cpus);
	}
	return 0;
}
