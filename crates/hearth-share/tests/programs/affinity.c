// SPDX-License-Identifier: MIT OR Apache-2.0
/* Tasks that say which data they work on. Prints the sum of what they did. */
#include <stdio.h>

#define SHARDS 4
#define LINES 1000

static int shards[SHARDS][LINES];

int main(void)
{
	long sum = 0;
	int at, line;

#pragma omp parallel
#pragma omp single
	for (at = 0; at < 100; at++) {
#pragma omp task affinity(shards[at % SHARDS]) firstprivate(at) private(line)
		{
			int *shard = shards[at % SHARDS];

			for (line = 0; line < LINES; line++)
				__atomic_fetch_add(&shard[line], 1, __ATOMIC_RELAXED);
		}
#pragma omp task affinity(shards[0][0], shards[1]) untied
		__atomic_fetch_add(&shards[1][0], 1, __ATOMIC_RELAXED);
	}
	for (at = 0; at < SHARDS; at++) {
		for (line = 0; line < LINES; line++)
			sum += shards[at][line];
	}
	printf("%ld\n", sum);
	return 0;
}
