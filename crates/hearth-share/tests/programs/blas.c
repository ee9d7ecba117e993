// SPDX-License-Identifier: GPL-2.0-only
/* For each line that it reads, a product of matrices, and the number of threads that the library
 * has. */
#include <stdio.h>
#include <string.h>

void dgemm_(const char *, const char *, const int *, const int *, const int *, const double *,
	    const double *, const int *, const double *, const int *, const double *, double *,
	    const int *);

#ifdef BLIS
long bli_thread_get_num_threads(void);
void bli_thread_set_num_threads(long threads);
#define threads() ((int)bli_thread_get_num_threads())
#define set_threads(number) bli_thread_set_num_threads(number)
#else
int openblas_get_num_threads(void);
void openblas_set_num_threads(int threads);
#define threads() openblas_get_num_threads()
#define set_threads(number) openblas_set_num_threads(number)
#endif

enum { SIZE = 64 };

int main(int count, char **arguments)
{
	static double a[SIZE * SIZE], b[SIZE * SIZE], c[SIZE * SIZE];
	const double alpha = 2, beta = 0.5;
	const int size = SIZE;
	char line[64];

	for (int i = 0; i < SIZE * SIZE; i++)
		a[i] = b[i] = c[i] = 1;
	for (int calls = 0; fgets(line, sizeof(line), stdin); calls++) {
		if (count > 1 && !strcmp(arguments[1], "set") && calls == 3)
			set_threads(3);
		c[7] = 2;
		dgemm_("N", "T", &size, &size, &size, &alpha, a, &size, b, &size, &beta, c, &size);
		printf("threads %d sum %d\n", threads(), (int)c[7]);
		fflush(stdout);
	}
	return 0;
}
