// SPDX-License-Identifier: GPL-2.0-only
/* Pairs of Gaussian deviates counted in rings, as NAS's EP: one long parallel region. ep PAIRS */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static double next(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (double)(*state >> 11) / (double)(1ull << 52) - 1;
}

int main(int count, char **arguments)
{
	long pairs = count > 1 ? atol(arguments[1]) : 20000000, blocks = 1000, rings = 0;

#pragma omp parallel for reduction(+ : rings) schedule(dynamic)
	for (long block = 0; block < blocks; block++) {
		uint64_t state = (uint64_t)block * 0x9e3779b97f4a7c15u + 1;

		for (long i = 0; i < pairs / blocks; i++) {
			double x = next(&state), y = next(&state), t = x * x + y * y;

			if (t <= 1 && t > 0)
				rings += (long)fabs(x * sqrt(-2 * log(t) / t));
		}
	}
	printf("%ld\n", rings);
	return 0;
}
