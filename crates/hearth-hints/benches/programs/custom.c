// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Threads that share data and never wait, as in the paper on data affinity (section 5.2): each
 * works on one of the fragments, and says so around each iteration, which follows STEPS lines of
 * it. By hand: each thread is bound to its fragment's CPU.
 *
 *	custom WAY THREADS FRAGMENTS KIB ITERATIONS STEPS
 */
#include "../../include/hearth.h"
#include "program.h"

struct thread {
	uint64_t fragment; /* from 1 on */
	struct line *data;
	int cpu; /* below 0: any */
	uint32_t at;
};

static enum ways way;
static long iterations, steps;

static void *work(void *given)
{
	struct thread *own = given;
	long iteration;

	if (own->cpu >= 0)
		bind_to(own->cpu);
	wait_for_all();
	for (iteration = 0; iteration < iterations; iteration++) {
		if (way == HINTS)
			hearth_enter(own->fragment);
		own->at = use_data(own->data, own->at, steps);
		if (way == HINTS)
			hearth_leave();
	}
	return NULL;
}

int main(int count, char **words)
{
	static int cpus[CPU_SETSIZE];
	long thread_count, fragments, bytes, at;
	int cpu_count = own_cpus(cpus);
	struct taken before;
	struct thread *all;
	pthread_t *threads;
	struct line **data;
	uint64_t sum = 0;

	way = way_given(count, words, "custom WAY THREADS FRAGMENTS KIB ITERATIONS STEPS");
	thread_count = number(words[2], 1);
	fragments = number(words[3], 1);
	bytes = number(words[4], 1) * 1024;
	iterations = number(words[5], 1);
	steps = number(words[6], 1);
	data = calloc((size_t)fragments, sizeof(*data));
	for (at = 0; at < fragments; at++)
		data[at] = make_data(bytes, (uint64_t)at + 1);
	all = calloc((size_t)thread_count, sizeof(*all));
	threads = calloc((size_t)thread_count, sizeof(*threads));
	expect(thread_count);
	for (at = 0; at < thread_count; at++) {
		long fragment = at % fragments;

		all[at].fragment = (uint64_t)fragment + 1;
		all[at].data = data[fragment];
		all[at].at = (uint32_t)at;
		all[at].cpu = way == HAND ? cpus[fragment % cpu_count] : -1;
		threads[at] = make_thread(work, &all[at]);
	}
	before = run_threads(threads, thread_count);
	for (at = 0; at < thread_count; at++)
		sum += all[at].at;
	report(sum, before);
	return 0;
}
