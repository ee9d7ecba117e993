// SPDX-License-Identifier: GPL-2.0-only
/*
 * Threads that declare many fragments of one process, by the library.
 *
 *   tasks fragments THREADS EACH
 *
 * Each thread computes in EACH fragments of its own, one after the other, and stays in the last of
 * them until the process is sent SIGTERM. When all are there, and have run once more, for one that
 * stops before the daemon has heard of it is looked at when it stops again:
 *
 *   threads=N fragments=N*EACH
 */
#include "tasks.h"
#include "../../../hearth-hints/include/hearth.h"

#include <pthread.h>
#include <semaphore.h>

#define ROUNDS_IN_EACH 200
/* Threads that begin: a daemon that has to know more at once lets some wait for too long. */
#define MOST_AT_ONCE 16
#define STACK_BYTES (64 << 10)

static int each;
static atomic_int arrived, stays;
static atomic_bool told;
static sem_t all_there, end;

static void *work(void *argument)
{
	uint64_t first = 1 + (uintptr_t)argument * each, number;

	for (number = first; number < first + each; number++) {
		if (number > first)
			hearth_leave();
		hearth_enter(number);
		spin(ROUNDS_IN_EACH);
	}
	atomic_fetch_add(&arrived, 1);
	sem_wait(&all_there);
	atomic_fetch_add(&stays, 1);
	sem_wait(&end);
	hearth_leave();
	return NULL;
}

int command_fragments(int argc, char **argv)
{
	int threads = number(argc, argv, 0, 1), i;
	pthread_t *all = calloc(threads, sizeof(*all));
	pthread_attr_t small;

	each = number(argc, argv, 1, 1);
	end_when_told(&told);
	sem_init(&all_there, 0, 0);
	sem_init(&end, 0, 0);
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, STACK_BYTES);
	for (i = 0; i < threads; i++) {
		while (i - atomic_load(&arrived) >= MOST_AT_ONCE)
			sleep_ns(NS_PER_MS);
		if (!all || pthread_create(&all[i], &small, work, (void *)(uintptr_t)i))
			die("pthread_create");
	}
	while (atomic_load(&arrived) < threads)
		sleep_ns(NS_PER_MS);
	for (i = 0; i < threads; i++)
		sem_post(&all_there);
	while (atomic_load(&stays) < threads)
		sleep_ns(NS_PER_MS);
	printf("threads=%d fragments=%d\n", threads, threads * each);
	fflush(stdout);
	while (!atomic_load(&told))
		sleep_ns(20 * NS_PER_MS);
	for (i = 0; i < threads; i++)
		sem_post(&end);
	for (i = 0; i < threads; i++)
		pthread_join(all[i], NULL);
	free(all);
	return 0;
}
