// SPDX-License-Identifier: GPL-2.0-only
/* Products of matrices by BLAS. product SIZE TIMES */
#include <stdio.h>
#include <stdlib.h>

void dgemm_(const char *, const char *, const int *, const int *, const int *, const double *,
	    const double *, const int *, const double *, const int *, const double *, double *,
	    const int *);

int main(int count, char **arguments)
{
	int size = count > 1 ? atoi(arguments[1]) : 256,
	    times = count > 2 ? atoi(arguments[2]) : 400;
	double *a = malloc(sizeof(double) * size * size), *b = malloc(sizeof(double) * size * size);
	double *c = calloc((size_t)size * size, sizeof(double)), one = 1, half = 0.5;

	for (int i = 0; i < size * size; i++) {
		a[i] = i % 7;
		b[i] = i % 5;
	}
	for (int i = 0; i < times; i++)
		dgemm_("N", "N", &size, &size, &size, &one, a, &size, b, &size, &half, c, &size);
	printf("%.0f\n", c[size + 1]);
	return 0;
}
