// SPDX-License-Identifier: GPL-2.0-only
/*
 * Conjugate gradients on a sparse matrix, as NAS's CG: five points of a square grid. A region holds
 * a whole iteration, with barriers within. cg SIDE ITERATIONS
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static int side, size;

static double row(const double *x, int i)
{
	double sum = 4.01 * x[i];

	if (i >= side)
		sum -= x[i - side];
	if (i < size - side)
		sum -= x[i + side];
	if (i % side)
		sum -= x[i - 1];
	if ((i + 1) % side)
		sum -= x[i + 1];
	return sum;
}

int main(int count, char **arguments)
{
	double *x, *r, *p, *q, rho, rho_next = 0, pq = 0;
	int iterations = count > 2 ? atoi(arguments[2]) : 1000;

	side = count > 1 ? atoi(arguments[1]) : 200;
	size = side * side;
	x = calloc(size, sizeof(double));
	r = malloc(size * sizeof(double));
	p = malloc(size * sizeof(double));
	q = malloc(size * sizeof(double));
	for (int i = 0; i < size; i++)
		r[i] = p[i] = 1 + i % 7;
	rho = 0;
	for (int i = 0; i < size; i++)
		rho += r[i] * r[i];
	for (int step = 0; step < iterations; step++) {
		pq = rho_next = 0;
#pragma omp parallel
		{
#pragma omp for reduction(+ : pq)
			for (int i = 0; i < size; i++) {
				q[i] = row(p, i);
				pq += p[i] * q[i];
			}
			double alpha = rho / pq;
#pragma omp for reduction(+ : rho_next)
			for (int i = 0; i < size; i++) {
				x[i] += alpha * p[i];
				r[i] -= alpha * q[i];
				rho_next += r[i] * r[i];
			}
			double beta = rho_next / rho;
#pragma omp for
			for (int i = 0; i < size; i++)
				p[i] = r[i] + beta * p[i];
		}
		if (rho_next < 1e-20) {
			for (int i = 0; i < size; i++)
				r[i] = p[i] = 1 + i % 7;
			rho_next = 0;
			for (int i = 0; i < size; i++)
				rho_next += r[i] * r[i];
		}
		rho = rho_next;
	}
	printf("%s\n", isfinite(x[size / 2]) && x[size / 2] > 0 ? "solved" : "failed");
	return 0;
}
