// SPDX-License-Identifier: GPL-2.0-only
/*
 * How many threads. The number is what hearth-hints says: the CPUs that the process can get now.
 * Hands are off where another number could be wrong, or of no use:
 *
 *   - the environment or the program says that the number is not to change (OMP_DYNAMIC=false);
 *   - threads are bound to CPUs: fewer of them would leave their CPUs idle;
 *   - the program itself has thread-local data. What OpenMP calls threadprivate looks like
 *     that, and lasts from one region to the next only as long as the number of threads stays.
 */
#include "follow.h"
#include "hearth.h"

#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static _Atomic unsigned int off; /* runtimes that are left alone */
static _Atomic int why_off;
static _Atomic bool bound;
static _Atomic int told_of; /* the user's number and the state that the page has */
static int cpus_at_start;
static uintptr_t keeper_from, keeper_to; /* the program's code, if it keeps data in threads */

void follow_hands_off(unsigned int runtimes, enum follow_state why)
{
	atomic_store_explicit(&why_off, (int)why, memory_order_relaxed);
	atomic_fetch_or_explicit(&off, runtimes, memory_order_relaxed);
}

/* Once, and again when the user's number changes, or whether it matters. */
static void tell(enum hearth_runtime runtime, int most, enum follow_state state)
{
	struct hearth_page *page = hearth_page();

	atomic_store_explicit(&told_of, most << 8 | (int)state, memory_order_relaxed);
	atomic_fetch_or_explicit(&page->runtime, runtime, memory_order_relaxed);
	atomic_store_explicit(&page->state, state, memory_order_relaxed);
	hearth_want(most);
}

static bool keeps_data(const void *caller)
{
	return (uintptr_t)caller - keeper_from < keeper_to - keeper_from;
}

/* Why a runtime is left alone, for a call from `caller`. */
static enum follow_state hands_off(enum hearth_runtime runtime, const void *caller)
{
	if (atomic_load_explicit(&off, memory_order_relaxed) & runtime)
		return (enum follow_state)atomic_load_explicit(&why_off, memory_order_relaxed);
	if (atomic_load_explicit(&bound, memory_order_relaxed))
		return FOLLOW_BOUND;
	return runtime & OPENMP && keeps_data(caller) ? FOLLOW_KEPT : FOLLOW_FOLLOWS;
}

int follow_threads(enum hearth_runtime runtime, int most, const void *caller)
{
	enum follow_state state = hands_off(runtime, caller);
	int cpus;

	if (atomic_load_explicit(&told_of, memory_order_relaxed) != (most << 8 | (int)state))
		tell(runtime, most, state);
	if (state != FOLLOW_FOLLOWS)
		return most;
	cpus = hearth_cpus();
	return cpus < most ? cpus : most;
}

static bool is_one_of(const char *value, const char *const words[])
{
	for (; *words; words++)
		if (!strcasecmp(value, *words))
			return true;
	return false;
}

/* What the environment says of OpenMP's threads. */
static enum follow_state said_of_openmp(void)
{
	static const char *const binding[] = {"OMP_PROC_BIND", "OMP_PLACES", "GOMP_CPU_AFFINITY",
					      "KMP_AFFINITY", NULL};
	static const char *const no_binding[] = {"", "false", "none", "disabled", NULL};
	static const char *const no[] = {"false", "0", "no", "off", NULL};
	const char *dynamic = getenv("OMP_DYNAMIC");

	for (const char *const *name = binding; *name; name++) {
		const char *value = getenv(*name);

		if (value && !is_one_of(value, no_binding))
			return FOLLOW_BOUND;
	}
	return dynamic && is_one_of(dynamic, no) ? FOLLOW_FIXED : FOLLOW_FOLLOWS;
}

/* The first object is the program itself. */
static int look_at_program(struct dl_phdr_info *program, size_t size, void *unused)
{
	const ElfW(Phdr) *headers = program->dlpi_phdr;
	uintptr_t from = 0, to = 0;
	bool keeps = false;

	(void)size, (void)unused;
	for (int i = 0; i < program->dlpi_phnum; i++) {
		keeps |= headers[i].p_type == PT_TLS && headers[i].p_memsz;
		if (headers[i].p_type != PT_LOAD || !(headers[i].p_flags & PF_X))
			continue;
		from = program->dlpi_addr + headers[i].p_vaddr;
		to = from + headers[i].p_memsz;
	}
	if (keeps) {
		keeper_from = from;
		keeper_to = to;
	}
	return 1;
}

/* Makes no page yet: most programs never have a parallel region. */
__attribute__((constructor)) static void look_at_start(void)
{
	cpu_set_t mask;

	if (!sched_getaffinity(0, sizeof(mask), &mask))
		cpus_at_start = CPU_COUNT(&mask);
	dl_iterate_phdr(look_at_program, NULL);
	if (said_of_openmp() != FOLLOW_FOLLOWS)
		follow_hands_off(OPENMP, said_of_openmp());
}

/*
 * A program that binds threads itself says so here. One that gives a thread all CPUs back, as one
 * does that has only looked round, binds no longer.
 */
static void note_mask(size_t size, const cpu_set_t *mask)
{
	atomic_store_explicit(&bound, CPU_COUNT_S(size, mask) < cpus_at_start,
			      memory_order_relaxed);
}

PUBLIC int sched_setaffinity(pid_t pid, size_t size, const cpu_set_t *mask)
{
	int failed = FOLLOW_REAL(sched_setaffinity)(pid, size, mask);

	if (!failed)
		note_mask(size, mask);
	return failed;
}

PUBLIC int pthread_setaffinity_np(pthread_t thread, size_t size, const cpu_set_t *mask)
{
	int failed = FOLLOW_REAL(pthread_setaffinity_np)(thread, size, mask);

	if (!failed)
		note_mask(size, mask);
	return failed;
}
