// SPDX-License-Identifier: GPL-2.0-only
/* What a module of Python loads for itself: nobody else in the program sees it or its runtime. */
#include <omp.h>

int threads(void);

int threads(void)
{
	int seen = 0;

#pragma omp parallel
#pragma omp single
	seen = omp_get_num_threads();
	return seen;
}
