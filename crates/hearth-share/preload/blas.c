// SPDX-License-Identifier: GPL-2.0-only
/*
 * OpenBLAS and BLIS. They have threads of their own and read how many at each call, so the number
 * is set at the begin of the calls that use several: products of matrices, and LAPACK's
 * factorizations. It stays the number of the whole library: a call that has begun goes on with the
 * threads that it has.
 *
 * Hands are off where the user has said how many (OPENBLAS_NUM_THREADS), or the program does: where
 * the number is found to be another than was set here. An OpenBLAS that was built upon OpenMP reads
 * OpenMP's number, and is left alone.
 */
#include "gate.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>

/* A library and the number that it has. */
struct blas {
	void *handle;
	void (*set)(int threads);
	int (*get)(void);
	int most;	  /* the user's number; 0: leave it alone */
	_Atomic int told; /* what was set here last */
};

/* BLIS counts in 64 bits. */
static void (*blis_set)(long threads);
static long (*blis_get)(void);

static void set_blis(int threads)
{
	blis_set(threads);
}

static int get_blis(void)
{
	return (int)blis_get();
}

/* Functions of an OpenBLAS under the names that its builds give them. */
static const struct {
	const char *set, *get, *parallel;
} spellings[] = {
	{"openblas_set_num_threads", "openblas_get_num_threads", "openblas_get_parallel"},
	{"openblas_set_num_threads64_", "openblas_get_num_threads64_", "openblas_get_parallel64_"},
	{"scipy_openblas_set_num_threads", "scipy_openblas_get_num_threads",
	 "scipy_openblas_get_parallel"},
	{"scipy_openblas_set_num_threads64_", "scipy_openblas_get_num_threads64_",
	 "scipy_openblas_get_parallel64_"},
};

enum { OPENBLAS_OWN_THREADS = 1 };

static bool find_openblas(struct blas *blas)
{
	for (size_t i = 0; i < sizeof(spellings) / sizeof(spellings[0]); i++) {
		int (*parallel)(void) = dlsym(blas->handle, spellings[i].parallel);

		blas->set = dlsym(blas->handle, spellings[i].set);
		blas->get = dlsym(blas->handle, spellings[i].get);
		if (blas->set && blas->get && parallel)
			return parallel() == OPENBLAS_OWN_THREADS;
	}
	return false;
}

static bool find_blis(struct blas *blas)
{
	blis_set = dlsym(blas->handle, "bli_thread_set_num_threads");
	blis_get = dlsym(blas->handle, "bli_thread_get_num_threads");
	blas->set = set_blis;
	blas->get = get_blis;
	return blis_set && blis_get;
}

static bool is_set(const char *name)
{
	const char *value = getenv(name);

	return value && *value;
}

static void look_at(struct blas *blas)
{
	bool openblas = !is_set("OPENBLAS_NUM_THREADS") && !is_set("GOTO_NUM_THREADS") &&
			find_openblas(blas);

	if (openblas || (!is_set("BLIS_NUM_THREADS") && find_blis(blas)))
		blas->most = blas->get();
	blas->told = blas->most;
}

/* The library that a function belongs to. A program has one or two; more are left alone. */
static struct blas *library_of(void *function)
{
	static pthread_mutex_t finding = PTHREAD_MUTEX_INITIALIZER;
	static struct blas libraries[4], alone;
	struct blas *found = &alone;
	void *handle = NULL;
	Dl_info object;

	if (dladdr(function, &object) && object.dli_fname)
		handle = dlopen(object.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
	if (!handle)
		return &alone;
	pthread_mutex_lock(&finding);
	for (size_t i = 0; i < sizeof(libraries) / sizeof(libraries[0]); i++) {
		found = &libraries[i];
		if (!found->handle) {
			found->handle = handle;
			look_at(found);
		}
		if (found->handle == handle)
			break;
		found = &alone;
	}
	pthread_mutex_unlock(&finding);
	return found;
}

static struct blas *blas_of(struct follow_gate *gate, void *real)
{
	struct blas *blas;

	if (atomic_load_explicit(&gate->noted_for, memory_order_acquire) == real)
		return atomic_load_explicit(&gate->noted, memory_order_relaxed);
	blas = library_of(real);
	if (!atomic_load_explicit(&gate->noted_for, memory_order_relaxed)) {
		atomic_store_explicit(&gate->noted, blas, memory_order_relaxed);
		atomic_store_explicit(&gate->noted_for, real, memory_order_release);
	}
	return blas;
}

static void before_blas(struct follow_gate *gate, void *real, const void *caller)
{
	struct blas *blas = blas_of(gate, real);
	int threads, told;

	if (blas->most <= 1)
		return;
	told = atomic_load_explicit(&blas->told, memory_order_relaxed);
	if (blas->get() != told) {
		blas->most = 0;
		return;
	}
	threads = follow_threads(HEARTH_RUNTIME_BLAS, blas->most, caller);
	if (threads == told)
		return;
	atomic_store_explicit(&blas->told, threads, memory_order_relaxed);
	blas->set(threads);
}

/* The names of a function: plain, with 64-bit sizes, and as the packages of Python have them. */
#define NAMES(type, function)                        \
	GATE(type##function##_, before_blas)         \
	GATE(type##function##_64_, before_blas)      \
	GATE(scipy_##type##function##_, before_blas) \
	GATE(scipy_##type##function##_64_, before_blas)

#define CBLAS_NAMES(type, function)                     \
	NAMES(type, function)                           \
	GATE(cblas_##type##function, before_blas)       \
	GATE(cblas_##type##function##64_, before_blas)  \
	GATE(scipy_cblas_##type##function, before_blas) \
	GATE(scipy_cblas_##type##function##64_, before_blas)

#define TYPES(names, function) \
	names(s, function) names(d, function) names(c, function) names(z, function)

TYPES(CBLAS_NAMES, gemm)
TYPES(CBLAS_NAMES, gemv)
TYPES(CBLAS_NAMES, symm)
TYPES(CBLAS_NAMES, syrk)
TYPES(CBLAS_NAMES, syr2k)
TYPES(CBLAS_NAMES, trmm)
TYPES(CBLAS_NAMES, trsm)
TYPES(NAMES, getrf)
TYPES(NAMES, gesv)
TYPES(NAMES, potrf)
TYPES(NAMES, geqrf)
TYPES(NAMES, gesdd)
NAMES(s, syevd)
NAMES(d, syevd)
NAMES(c, heevd)
NAMES(z, heevd)
