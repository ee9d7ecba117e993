// SPDX-License-Identifier: GPL-2.0-only
/*
 * GNU's OpenMP. The compiler turns a parallel region into a call of GOMP_parallel or of one of its
 * kin, whose third argument is the number of threads that the program gives in its num_threads
 * clause, 0 if it gives none. Where it gives none this library gives one: for that region alone, so
 * that what omp_get_max_threads() tells stays the user's number, by which programs size their
 * arrays.
 */
#include "follow.h"

static unsigned int gnu_threads(unsigned int asked, const void *caller)
{
	int most = asked ? 0 : follow_region(caller);
	int threads = most ? follow_threads(HEARTH_RUNTIME_GNU, most, caller) : 0;

	return threads < most ? (unsigned int)threads : asked;
}

#define THREADS gnu_threads(threads, __builtin_return_address(0))

/* A region, with what the entry takes after the number of threads. */
#define REGION(type, name, parameters, ...)                                   \
	PUBLIC type name parameters                                           \
	{                                                                     \
		return FOLLOW_REAL(name)(body, data, THREADS, ##__VA_ARGS__); \
	}

#define BODY void (*body)(void *), void *data, unsigned int threads
#define LOOP long start, long end, long step

REGION(void, GOMP_parallel, (BODY, unsigned int flags), flags)
REGION(unsigned int, GOMP_parallel_reductions, (BODY, unsigned int flags), flags)
REGION(void, GOMP_parallel_sections, (BODY, unsigned int count, unsigned int flags), count, flags)

#define LOOP_REGION(name) \
	REGION(void, name, (BODY, LOOP, unsigned int flags), start, end, step, flags)
#define CHUNKED_REGION(name)                                                                      \
	REGION(void, name, (BODY, LOOP, long chunk, unsigned int flags), start, end, step, chunk, \
	       flags)

CHUNKED_REGION(GOMP_parallel_loop_static)
CHUNKED_REGION(GOMP_parallel_loop_dynamic)
CHUNKED_REGION(GOMP_parallel_loop_guided)
CHUNKED_REGION(GOMP_parallel_loop_nonmonotonic_dynamic)
CHUNKED_REGION(GOMP_parallel_loop_nonmonotonic_guided)
LOOP_REGION(GOMP_parallel_loop_runtime)
LOOP_REGION(GOMP_parallel_loop_nonmonotonic_runtime)
LOOP_REGION(GOMP_parallel_loop_maybe_nonmonotonic_runtime)

/* What compilers before GCC 4.9 call; the end is a call of its own. */
REGION(void, GOMP_parallel_start, (BODY))
REGION(void, GOMP_parallel_sections_start, (BODY, unsigned int count), count)
REGION(void, GOMP_parallel_loop_static_start, (BODY, LOOP, long chunk), start, end, step, chunk)
REGION(void, GOMP_parallel_loop_dynamic_start, (BODY, LOOP, long chunk), start, end, step, chunk)
REGION(void, GOMP_parallel_loop_guided_start, (BODY, LOOP, long chunk), start, end, step, chunk)
REGION(void, GOMP_parallel_loop_runtime_start, (BODY, LOOP), start, end, step)

/* A program that says that the number is not to be adjusted: in C, and as Fortran calls it. */
PUBLIC void omp_set_dynamic(int dynamic)
{
	if (!dynamic)
		follow_hands_off(OPENMP, FOLLOW_FIXED);
	FOLLOW_REAL(omp_set_dynamic)(dynamic);
}

PUBLIC void omp_set_dynamic_(const int *dynamic)
{
	if (!*dynamic)
		follow_hands_off(OPENMP, FOLLOW_FIXED);
	FOLLOW_REAL(omp_set_dynamic_)(dynamic);
}

PUBLIC void omp_set_dynamic_8_(const long *dynamic)
{
	if (!*dynamic)
		follow_hands_off(OPENMP, FOLLOW_FIXED);
	FOLLOW_REAL(omp_set_dynamic_8_)(dynamic);
}
