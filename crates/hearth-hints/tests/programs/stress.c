// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Threads that enter more fragments than there is room for, the same and different ones, nested,
 * while one asks for homes and counts. Homes are CPUs of the machine, and no enter is lost.
 */
#include "hearth.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#define THREADS 8
#define ENTERS 60000

static _Atomic int running = THREADS;

static void check(uint64_t fragment)
{
	int home = hearth_fragment_home(fragment);

	if (home >= 48 || (home >= 16 && home < 32)) {
		fprintf(stderr, "CPU %d is none of the machine\n", home);
		exit(1);
	}
}

static void *enter(void *given)
{
	uint64_t state = (uint64_t)(uintptr_t)given, at;

	for (at = 0; at < ENTERS; at++) {
		state = state * 6364136223846793005u + 1442695040888963407u;
		hearth_enter(1 + (state >> 33) % (at % 2 ? 30000 : 20));
		check(hearth_fragment());
		if (state >> 62 == 0) {
			hearth_enter(at + 1);
			hearth_leave();
		}
		hearth_leave();
	}
	running--;
	return NULL;
}

int main(void)
{
	struct hearth_fragment_counts counts;
	pthread_t threads[THREADS];
	uintptr_t at;

	for (at = 0; at < THREADS; at++)
		pthread_create(&threads[at], NULL, enter, (void *)(at + 1));
	do {
		hearth_fragment_counts(&counts);
		check(counts.enters % 30000 + 1);
	} while (running);
	for (at = 0; at < THREADS; at++)
		pthread_join(threads[at], NULL);
	hearth_fragment_counts(&counts);
	if (counts.enters < THREADS * ENTERS || counts.unmatched) {
		fprintf(stderr, "%llu enters\n", (unsigned long long)counts.enters);
		return 1;
	}
	return 0;
}
