// SPDX-License-Identifier: GPL-2.0-only
/*
 * cg SIDE STEPS: conjugate gradients on the five-point Laplacian of a grid of SIDE x SIDE, by
 * OpenMP's threads: a sparse product, two sums and three vector updates a step, each with a
 * barrier.
 */
#include <stdio.h>
#include <stdlib.h>

int main(int count, char **words)
{
	int side = count == 3 ? atoi(words[1]) : 0, steps = count == 3 ? atoi(words[2]) : 0,
	    all = side * side;
	double *x = calloc((size_t)all, sizeof(*x)), *r = calloc((size_t)all, sizeof(*r));
	double *p = calloc((size_t)all, sizeof(*p)), *q = calloc((size_t)all, sizeof(*q)), rho = 0;

	if (side < 3 || steps < 1 || !x || !r || !p || !q) {
		fprintf(stderr, "usage: cg SIDE STEPS\n");
		return 2;
	}
#pragma omp parallel for reduction(+ : rho)
	for (int i = 0; i < all; i++) {
		p[i] = r[i] = 1.0 + i % 7;
		rho += r[i] * r[i];
	}
	while (steps--) {
		double curvature = 0, next = 0, alpha, beta;

#pragma omp parallel for reduction(+ : curvature)
		for (int i = 0; i < side; i++)
			for (int j = 0; j < side; j++) {
				int here = i * side + j;
				double sum = 4 * p[here];

				sum -= i > 0 ? p[here - side] : 0;
				sum -= i < side - 1 ? p[here + side] : 0;
				sum -= j > 0 ? p[here - 1] : 0;
				sum -= j < side - 1 ? p[here + 1] : 0;
				q[here] = sum;
				curvature += p[here] * sum;
			}
		alpha = rho / curvature;
#pragma omp parallel for reduction(+ : next)
		for (int i = 0; i < all; i++) {
			x[i] += alpha * p[i];
			r[i] -= alpha * q[i];
			next += r[i] * r[i];
		}
		beta = next / rho;
		rho = next;
#pragma omp parallel for
		for (int i = 0; i < all; i++)
			p[i] = r[i] + beta * p[i];
	}
	return !(x[side + 1] > 0);
}
