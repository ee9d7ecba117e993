// SPDX-License-Identifier: GPL-2.0-only
/* blas SIDE TIMES: products of two matrices of SIDE x SIDE by the BLAS that it is linked to, and
 * its threads. */
#include <cblas.h>
#include <stdio.h>
#include <stdlib.h>

int main(int count, char **words)
{
	int side = count == 3 ? atoi(words[1]) : 0, times = count == 3 ? atoi(words[2]) : 0, i;
	double *a = calloc((size_t)side * side, sizeof(*a)),
	       *b = calloc((size_t)side * side, sizeof(*b));
	double *c = calloc((size_t)side * side, sizeof(*c));

	if (side < 1 || times < 1 || !a || !b || !c) {
		fprintf(stderr, "usage: blas SIDE TIMES\n");
		return 2;
	}
	for (i = 0; i < side * side; i++)
		a[i] = b[i] = 1.0 / (1 + i % 97);
	while (times--)
		cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, side, side, side, 1, a, side,
			    b, side, 0, c, side);
	return !(c[0] > 0);
}
