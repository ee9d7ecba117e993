// SPDX-License-Identifier: GPL-2.0-only
/* A relaxation in one dimension: two short parallel regions a step. stencil POINTS STEPS */
#include <stdio.h>
#include <stdlib.h>

int main(int count, char **arguments)
{
	int points = count > 1 ? atoi(arguments[1]) : 20000,
	    steps = count > 2 ? atoi(arguments[2]) : 20000;
	double *now = malloc(points * sizeof(double)), *next = calloc(points, sizeof(double));
	double change = 0;

	for (int i = 0; i < points; i++)
		now[i] = i % 100;
	for (int step = 0; step < steps; step++) {
#pragma omp parallel for
		for (int i = 1; i < points - 1; i++)
			next[i] = (now[i - 1] + now[i] + now[i + 1]) / 3;
		change = 0;
#pragma omp parallel for reduction(+ : change)
		for (int i = 1; i < points - 1; i++) {
			change += next[i] > now[i];
			now[i] = next[i];
		}
	}
	printf("%.0f\n", change);
	return 0;
}
