// SPDX-License-Identifier: GPL-2.0-only
/*
 * Requests to a pool of threads, and how long each waits: the pattern of schbench.
 *
 *   requests WORKERS REQUESTS KILO DATA_KIB
 *     Each of WORKERS threads sleeps until a sender has a request for it, reads and writes its own
 * DATA_KIB once, executes half to one and a half times KILO thousand rounds of a loop, answers, and
 * sleeps. A sender, one for 16 workers, has the next request for a worker as soon as it has
 * answered. REQUESTS in all. requests burst REQUESTS KILO One thread finds all requests waiting,
 * and executes KILO thousand rounds for each: the k-th response takes k times as long as the first,
 * so percentiles are known.
 *
 * Tells `wake`: from when the sender has the request to when the worker runs; `response`: to its
 * answer; and requests_per_s.
 */
#include "measures.h"

#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define WORKERS_OF_A_SENDER 16
#define LINE 64

struct worker {
	pthread_t thread;
	struct sender *sender;
	unsigned char *data;
	uint64_t random;
	/* 1: there is a request; 2: the last. */
	_Atomic uint32_t request;
	_Atomic uint64_t sent_ns;
	_Atomic uint32_t is_free;
	uint64_t *wakes, *responses;
	size_t done;
} __attribute__((aligned(LINE)));

struct sender {
	pthread_t thread;
	struct worker *workers;
	long count;
	/* Counts answers; the sender sleeps on it. */
	_Atomic uint32_t answers;
} __attribute__((aligned(LINE)));

static size_t data_bytes;
static uint64_t rounds;
static size_t most;
static _Atomic long left;

static void sleep_while(_Atomic uint32_t *word, uint32_t value)
{
	syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

static void wake(_Atomic uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* Two instructions a round. */
static void compute(uint64_t count)
{
	__asm__ volatile("1: dec %0\n\tjnz 1b" : "+r"(count) : : "cc");
}

static void serve(struct worker *worker)
{
	size_t i;

	for (i = 0; i < data_bytes; i += LINE)
		worker->data[i]++;
	worker->random = worker->random * 6364136223846793005u + 1442695040888963407u;
	compute(rounds / 2 + (worker->random >> 33) % (rounds + 1) + 1);
}

/* CPUs of an emulated machine may be some thousand cycles apart, and the sender's ahead. */
static uint64_t since(uint64_t then_ns)
{
	uint64_t now = now_ns();

	return now > then_ns ? now - then_ns : 0;
}

static void *work(void *argument)
{
	struct worker *worker = argument;
	uint32_t request;

	for (;;) {
		while (!(request = atomic_load(&worker->request)))
			sleep_while(&worker->request, 0);
		if (request == 2)
			return NULL;
		if (worker->done == most)
			abort();
		worker->wakes[worker->done] = since(worker->sent_ns);
		serve(worker);
		worker->responses[worker->done++] = since(worker->sent_ns);
		atomic_store(&worker->request, 0);
		atomic_store(&worker->is_free, 1);
		atomic_fetch_add(&worker->sender->answers, 1);
		wake(&worker->sender->answers);
	}
}

static void *send_all(void *argument)
{
	struct sender *sender = argument;
	long i, ended = 0;

	while (ended < sender->count) {
		uint32_t answers = atomic_load(&sender->answers);

		for (i = 0; i < sender->count; i++) {
			struct worker *worker = &sender->workers[i];
			int is_last;

			if (!atomic_exchange(&worker->is_free, 0))
				continue;
			is_last = atomic_fetch_sub(&left, 1) <= 0;
			ended += is_last;
			atomic_store(&worker->sent_ns, now_ns());
			atomic_store(&worker->request, is_last ? 2 : 1);
			wake(&worker->request);
		}
		if (ended < sender->count)
			sleep_while(&sender->answers, answers);
	}
	return NULL;
}

static void *many(size_t count, size_t size)
{
	void *memory = aligned_alloc(LINE, (count * size + LINE - 1) / LINE * LINE);

	if (!memory) {
		perror("memory");
		exit(1);
	}
	/* Touched before time begins. */
	return memset(memory, 0, (count * size + LINE - 1) / LINE * LINE);
}

static void start(pthread_t *thread, void *(*body)(void *), void *argument)
{
	int wrong = pthread_create(thread, NULL, body, argument);

	if (wrong) {
		fprintf(stderr, "a thread: %s\n", strerror(wrong));
		exit(1);
	}
}

static void pool(long count, long requests)
{
	long senders = (count + WORKERS_OF_A_SENDER - 1) / WORKERS_OF_A_SENDER, i;
	struct worker *workers = many((size_t)count, sizeof(*workers));
	struct sender *all = many((size_t)senders, sizeof(*all));
	uint64_t *wakes = many((size_t)requests, sizeof(*wakes)),
		 *responses = many((size_t)requests, sizeof(*responses));
	uint64_t began, elapsed;
	size_t done = 0;

	most = (size_t)requests;
	left = requests;
	for (i = 0; i < count; i++) {
		workers[i].sender = &all[i / WORKERS_OF_A_SENDER];
		workers[i].data = many(data_bytes + LINE, 1);
		workers[i].random = (uint64_t)i;
		workers[i].is_free = 1;
		workers[i].wakes = many((size_t)requests, sizeof(uint64_t));
		workers[i].responses = many((size_t)requests, sizeof(uint64_t));
	}
	for (i = 0; i < count; i++)
		start(&workers[i].thread, work, &workers[i]);
	began = now_ns();
	for (i = 0; i < senders; i++) {
		all[i].workers = &workers[i * WORKERS_OF_A_SENDER];
		all[i].count =
			i + 1 < senders ? WORKERS_OF_A_SENDER : count - i * WORKERS_OF_A_SENDER;
		start(&all[i].thread, send_all, &all[i]);
	}
	for (i = 0; i < senders; i++)
		pthread_join(all[i].thread, NULL);
	for (i = 0; i < count; i++)
		pthread_join(workers[i].thread, NULL);
	elapsed = now_ns() - began;
	for (i = 0; i < count; i++) {
		memcpy(wakes + done, workers[i].wakes, workers[i].done * sizeof(*wakes));
		memcpy(responses + done, workers[i].responses,
		       workers[i].done * sizeof(*responses));
		done += workers[i].done;
	}
	tell("requests_per_s", (double)done * NS_PER_S / (double)elapsed);
	tell_percentiles("wake", wakes, done);
	tell_percentiles("response", responses, done);
}

static void burst(long requests)
{
	uint64_t *responses = many((size_t)requests, sizeof(*responses)), began = now_ns();
	long i;

	for (i = 0; i < requests; i++) {
		compute(rounds);
		responses[i] = now_ns() - began;
	}
	tell("requests_per_s", (double)requests * NS_PER_S / (double)responses[requests - 1]);
	tell_percentiles("response", responses, (size_t)requests);
}

static long number(const char *text, long least, long greatest)
{
	char *end;
	long value = strtol(text, &end, 10);

	if (*end || end == text || value < least || value > greatest) {
		fprintf(stderr, "%s is no number from %ld to %ld\n", text, least, greatest);
		exit(2);
	}
	return value;
}

int main(int argc, char **argv)
{
	if (argc == 4 && !strcmp(argv[1], "burst")) {
		rounds = (uint64_t)number(argv[3], 1, 1000000) * 1000;
		burst(number(argv[2], 1, 1000000));
		return 0;
	}
	if (argc != 5) {
		fprintf(stderr, "usage: requests WORKERS REQUESTS KILO DATA_KIB | requests burst "
				"REQUESTS KILO\n");
		return 2;
	}
	rounds = (uint64_t)number(argv[3], 1, 1000000) * 1000;
	data_bytes = (size_t)number(argv[4], 0, 1 << 20) << 10;
	pool(number(argv[1], 1, 4096), number(argv[2], 1, 100000));
	return 0;
}
