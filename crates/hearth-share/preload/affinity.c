// SPDX-License-Identifier: GPL-2.0-only
/*
 * The affinity clause of OpenMP's tasks, which clang passes to the runtime, and LLVM's runtime
 * drops. Here the data that it names becomes a fragment, and the task enters it before it begins:
 *
 *	__kmpc_omp_reg_task_with_affinity	puts enter_and_run() in the place of the routine
 *	enter_and_run()				puts it back, enters, runs the task, leaves
 *
 * Of several clauses the one with most data counts. The parts of an untied task after the first run
 * where they are.
 */
#include "follow.h"

#include "../include/hearth.h"
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

/* What LLVM's compiler and its runtime share, as far as it is used here. */
struct task {
	void *shareds;
	int (*routine)(int thread, struct task *task);
};

struct task_affinity {
	intptr_t base;
	size_t length;
	int32_t flags;
};

/* A task that was not begun yet. */
struct waiting {
	struct waiting *next;
	const struct task *task;
	int (*routine)(int thread, struct task *task);
	uint64_t fragment;
};

#define LISTS 64

static struct {
	pthread_mutex_t lock;
	struct waiting *first;
} lists[LISTS] = {[0 ... LISTS - 1] = {.lock = PTHREAD_MUTEX_INITIALIZER}};

static unsigned int list_of(const struct task *task)
{
	return (unsigned int)((uintptr_t)task >> 6) % LISTS;
}

/* Takes the task out of its list; NULL if it is in none. */
static struct waiting *take(const struct task *task)
{
	unsigned int list = list_of(task);
	struct waiting **link, *found;

	pthread_mutex_lock(&lists[list].lock);
	for (link = &lists[list].first; *link && (*link)->task != task;)
		link = &(*link)->next;
	found = *link;
	if (found)
		*link = found->next;
	pthread_mutex_unlock(&lists[list].lock);
	return found;
}

static void put(struct waiting *waiting)
{
	unsigned int list = list_of(waiting->task);

	pthread_mutex_lock(&lists[list].lock);
	waiting->next = lists[list].first;
	lists[list].first = waiting;
	pthread_mutex_unlock(&lists[list].lock);
}

static int enter_and_run(int thread, struct task *task)
{
	struct waiting *waiting = take(task);
	uint64_t fragment;
	int result;

	/* Only what put() has noted has this routine. */
	if (!waiting)
		abort();
	fragment = waiting->fragment;
	task->routine = waiting->routine;
	free(waiting);
	hearth_enter(fragment);
	result = task->routine(thread, task);
	hearth_leave();
	return result;
}

static uint64_t fragment_of(const struct task_affinity *affinities, int count)
{
	const struct task_affinity *most = NULL;
	int at;

	for (at = 0; at < count; at++) {
		if (affinities[at].base && (!most || affinities[at].length > most->length))
			most = &affinities[at];
	}
	return most ? hearth_fragment_at((const void *)most->base) : 0;
}

PUBLIC int __kmpc_omp_reg_task_with_affinity(void *place, int thread, struct task *task, int count,
					     struct task_affinity *affinities)
{
	__typeof__(&__kmpc_omp_reg_task_with_affinity) real =
		FOLLOW_REAL(__kmpc_omp_reg_task_with_affinity);
	uint64_t fragment = fragment_of(affinities, count);
	struct waiting *waiting;

	/* Memory of a task that was cancelled, and never begun, may have become this one's. */
	free(take(task));
	waiting = fragment && task->routine != enter_and_run ? malloc(sizeof(*waiting)) : NULL;
	if (waiting) {
		*waiting = (struct waiting){
			.task = task, .routine = task->routine, .fragment = fragment};
		put(waiting);
		task->routine = enter_and_run;
	}
	return real ? real(place, thread, task, count, affinities) : 0;
}
