// SPDX-License-Identifier: GPL-2.0-only
/*
 * oneTBB, by what its class global_control calls. Its workers come and go in the midst of a
 * parallel call, so a thread of ours waits for changes and sets the number at once. The thread
 * begins with the first parallel call: a program that only has oneTBB among its libraries stays as
 * it is. If the program has limits of its own, oneTBB goes by the smallest.
 */
#include "gate.h"
#include "hearth.h"

#include <pthread.h>
#include <signal.h>
#include <stdint.h>

/* As oneTBB has it since 2021, in oneapi/tbb/global_control.h. */
struct global_control {
	size_t value;
	intptr_t reserved;
	int parameter;
};

enum { MAX_ALLOWED_PARALLELISM = 0 };

#define TBB "_ZN3tbb6detail2r1"

static struct {
	void (*create)(struct global_control *control);
	void (*destroy)(struct global_control *control);
	size_t (*active_value)(int parameter);
	const void *caller;
	_Atomic bool begun;
} tbb;

static bool find_tbb(const void *caller)
{
	static struct follow_function create = {.name = TBB "6createERNS0_2d114global_controlE"};
	static struct follow_function destroy = {.name = TBB "7destroyERNS0_2d114global_controlE"};
	static struct follow_function active = {.name = TBB "27global_control_active_valueEi"};

	tbb.create = follow_real(&create, caller);
	tbb.destroy = follow_real(&destroy, caller);
	tbb.active_value = follow_real(&active, caller);
	tbb.caller = caller;
	return tbb.create && tbb.destroy && tbb.active_value;
}

/* The new limit comes before the old one goes, so that there is always one of them. */
static void limit(int threads)
{
	static struct global_control limits[2];
	static int now = -1;
	int next = now == 0;

	limits[next] = (struct global_control){(size_t)threads, 0, MAX_ALLOWED_PARALLELISM};
	tbb.create(&limits[next]);
	if (now >= 0)
		tbb.destroy(&limits[now]);
	now = next;
}

static void *follow_tbb(void *unused)
{
	int most = (int)tbb.active_value(MAX_ALLOWED_PARALLELISM), now = most;

	for (;;) {
		int cpus = hearth_cpus();
		int threads = follow_threads(HEARTH_RUNTIME_TBB, most, tbb.caller);

		if (threads != now)
			limit(threads);
		now = threads;
		hearth_cpus_wait(cpus, -1);
	}
	return unused;
}

/* A child of fork() has no threads but one. */
static void forget(void)
{
	atomic_store(&tbb.begun, false);
}

/* The thread is not the program's: it takes no signals, and its stack is small. */
static void begin(const void *caller)
{
	static bool forks_are_seen;
	sigset_t all, before;
	pthread_attr_t small;
	pthread_t thread;

	if (!find_tbb(caller))
		return;
	if (!forks_are_seen)
		forks_are_seen = !pthread_atfork(NULL, NULL, forget);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pthread_attr_init(&small);
	pthread_attr_setdetachstate(&small, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&small, 128 << 10);
	pthread_create(&thread, &small, follow_tbb, NULL);
	pthread_attr_destroy(&small);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void before_tbb(struct follow_gate *gate, void *real, const void *caller)
{
	(void)gate, (void)real;
	if (atomic_load_explicit(&tbb.begun, memory_order_relaxed))
		return;
	if (!atomic_exchange(&tbb.begun, true))
		begin(caller);
}

/* Where parallel calls begin: execute_and_wait and wait of tasks, and task_arena's execute. */
GATE(_ZN3tbb6detail2r116execute_and_waitERNS0_2d14taskERNS2_18task_group_contextERNS2_12wait_contextES6_,
     before_tbb)
GATE(_ZN3tbb6detail2r14waitERNS0_2d112wait_contextERNS2_18task_group_contextE, before_tbb)
GATE(_ZN3tbb6detail2r17executeERNS0_2d115task_arena_baseERNS2_13delegate_baseE, before_tbb)
