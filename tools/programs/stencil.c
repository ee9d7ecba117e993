// SPDX-License-Identifier: GPL-2.0-only
/* stencil SIDE SWEEPS: sweeps of a five-point stencil over two grids of SIDE x SIDE, by OpenMP's
 * threads. */
#include <stdio.h>
#include <stdlib.h>

int main(int count, char **words)
{
	int side = count == 3 ? atoi(words[1]) : 0, sweeps = count == 3 ? atoi(words[2]) : 0;
	double *a = calloc((size_t)side * side, sizeof(*a)),
	       *b = calloc((size_t)side * side, sizeof(*b));

	if (side < 3 || sweeps < 1 || !a || !b) {
		fprintf(stderr, "usage: stencil SIDE SWEEPS\n");
		return 2;
	}
	while (sweeps--) {
#pragma omp parallel for schedule(static)
		for (int i = 1; i < side - 1; i++)
			for (int j = 1; j < side - 1; j++)
				b[i * side + j] =
					0.25 * (a[(i - 1) * side + j] + a[(i + 1) * side + j] +
						a[i * side + j - 1] + a[i * side + j + 1] + 1);
		double *swap = a;
		a = b;
		b = swap;
	}
	return a[side + 1] < 0;
}
