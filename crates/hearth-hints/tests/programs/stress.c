// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Threads that enter more fragments than there is room for, the same and different ones, nested,
 * and make and forget ranges of one array, while one asks for homes, counts and addresses.
 * Homes are CPUs of the machine, no enter is lost, and an address is in a range that there was.
 */
#include "hearth.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#define THREADS 8
#define ENTERS 60000

static _Atomic int running = THREADS;
static char array[1000];

static void check(uint64_t fragment)
{
	int home = hearth_fragment_home(fragment);

	if (home >= 48 || (home >= 16 && home < 32)) {
		fprintf(stderr, "CPU %d is none of the machine\n", home);
		exit(1);
	}
}

/* Ranges are of as many bytes as there are threads at most; none begins at the array. */
static void check_address(const char *data)
{
	uint64_t begin = hearth_fragment_at(data) - hearth_fragment_at(array);

	if (begin > (uint64_t)(data - array) || begin + THREADS < (uint64_t)(data - array)) {
		fprintf(stderr, "byte %td is in a range from %llu on\n", data - array,
			(unsigned long long)begin);
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
		if (at % 32 == 0) {
			const char *data = &array[1 + (state >> 33) % 900];

			hearth_fragment_range(data, (size_t)(uintptr_t)given);
			check_address(data + 3);
			hearth_fragment_forget(data, 1);
		}
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
		check_address(&array[counts.enters % 1000]);
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
