// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A server with a pool of workers: any worker serves any shard of the data. Each takes the next
 * request, and follows lines of the shard that it is for. With hints and a CHOICE above 1 it takes,
 * of so many that wait, one for the shard that it served last, or else one whose shard is here; but
 * each eighth time the oldest. By hand: each CPU has its shards, its queue, and its workers.
 *
 *	pool WAY WORKERS SHARDS KIB REQUESTS STEPS CHOICE
 */
#include "../../include/hearth.h"
#include "program.h"
#include <stdatomic.h>

struct queue {
	uint32_t *requests; /* their numbers */
	_Atomic uint8_t *taken;
	long count;
	_Atomic long next; /* all before are taken */
	char apart[64];
};

struct worker {
	struct queue *queue;
	int cpu; /* below 0: any */
	uint64_t sum;
};

static struct line **shards;
static uint16_t *shard_of; /* each request */
static enum ways way;
static long lines, steps, choice;

/* How much a worker that served this shard last wants to take the request: 0, 1 or 2. */
static int rank(const struct queue *queue, long at, uint64_t last)
{
	uint64_t shard = 1 + shard_of[queue->requests[at]];

	return shard == last ? 2 : hearth_fragment_is_here(shard);
}

/* The place in the queue of the request to serve, or -1 if there is none. */
static long choose(struct queue *queue, long turn, uint64_t last)
{
	long from = atomic_load(&queue->next), at, best = -1;
	int best_rank = -1;

	while (from < queue->count && queue->taken[from])
		from++;
	atomic_store(&queue->next, from);
	for (at = from; at < queue->count && at < from + choice && best_rank < 2; at++) {
		int found = queue->taken[at] ? -1 : turn % 8 ? rank(queue, at, last) : 2;

		if (found > best_rank) {
			best_rank = found;
			best = at;
		}
	}
	return best;
}

static long take(struct queue *queue, long turn, uint64_t last)
{
	long at;

	if (way != HINTS || choice < 2) {
		at = atomic_fetch_add(&queue->next, 1);
		return at < queue->count ? at : -1;
	}
	do
		at = choose(queue, turn, last);
	while (at >= 0 && atomic_exchange(&queue->taken[at], 1));
	return at;
}

static void *work(void *given)
{
	struct worker *own = given;
	struct queue *queue = own->queue;
	long at, turn = 0;
	uint64_t last = 0;

	if (own->cpu >= 0)
		bind_to(own->cpu);
	wait_for_all();
	while ((at = take(queue, turn++, last)) >= 0) {
		uint32_t request = queue->requests[at];
		uint16_t shard = shard_of[request];
		uint32_t from = request * 2654435761u % (uint32_t)lines;

		if (way == HINTS)
			hearth_enter(last = 1 + shard);
		own->sum += use_data(shards[shard], from, steps);
		if (way == HINTS)
			hearth_leave();
	}
	return NULL;
}

/* Requests for random shards, each in the queue that has its shard. */
static void fill(struct queue *queues, int queue_count, long requests, long shard_count)
{
	uint64_t random = 1;
	long at;

	for (at = 0; at < queue_count; at++) {
		queues[at].requests = malloc((size_t)requests * sizeof(uint32_t));
		queues[at].taken = calloc((size_t)requests, 1);
	}
	shard_of = malloc((size_t)requests * sizeof(*shard_of));
	for (at = 0; at < requests; at++) {
		struct queue *queue;

		shard_of[at] = (uint16_t)((next_random(&random) >> 20) % (uint64_t)shard_count);
		queue = &queues[shard_of[at] % queue_count];
		queue->requests[queue->count++] = (uint32_t)at;
	}
}

int main(int count, char **words)
{
	static struct queue queues[CPU_SETSIZE];
	static int cpus[CPU_SETSIZE];
	long workers, shard_count, requests, at;
	int queue_count, cpu_count = own_cpus(cpus);
	struct taken before;
	struct worker *all;
	pthread_t *threads;
	uint64_t sum = 0;

	way = way_given(count, words, "pool WAY WORKERS SHARDS KIB REQUESTS STEPS CHOICE");
	workers = number(words[2], 1);
	shard_count = number(words[3], 1);
	lines = number(words[4], 1) * 16;
	requests = number(words[5], 1);
	steps = number(words[6], 1);
	choice = number(words[7], 1);
	shards = malloc((size_t)shard_count * sizeof(*shards));
	for (at = 0; at < shard_count; at++)
		shards[at] = make_data(lines * 64, (uint64_t)at + 1);
	queue_count = way == HAND ? cpu_count : 1;
	fill(queues, queue_count, requests, shard_count);
	all = calloc((size_t)workers, sizeof(*all));
	threads = calloc((size_t)workers, sizeof(*threads));
	expect(workers);
	for (at = 0; at < workers; at++) {
		all[at].queue = &queues[at % queue_count];
		all[at].cpu = way == HAND ? cpus[at % cpu_count] : -1;
		threads[at] = make_thread(work, &all[at]);
	}
	before = run_threads(threads, workers);
	for (at = 0; at < workers; at++)
		sum += all[at].sum;
	report(sum, before);
	return 0;
}
