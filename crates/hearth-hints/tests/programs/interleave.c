// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The tables of homes and of ranges under threads that stop at any access to memory, while others
 * go on: src/homes.c and src/numbers.c are compiled for the thread sanitizer, and what they then
 * call is here. Each run follows from its seed. Accesses are sequentially consistent.
 *
 *	interleave RUNS
 */
#include "../../include/hearth.h"
#include "../../src/fragments.h"
#include "../../src/thread.h"
#include "../../src/trial.h"
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <ucontext.h>

#define THREADS 4
#define STACK 65536
#define CPUS 4
#define STEPS 40

static ucontext_t contexts[THREADS], outside;
static char stacks[THREADS][STACK];
static bool ended[THREADS];
static int current = -1; /* below 0: outside */
static uint64_t random_state, seed;
static unsigned int calm; /* one in so many accesses lets another thread run */
static int64_t now_ns = 1000000000;

static void fail(const char *what)
{
	fprintf(stderr, "seed %llu: %s\n", (unsigned long long)seed, what);
	exit(1);
}

static unsigned int below(unsigned int limit)
{
	random_state = random_state * 6364136223846793005u + 1442695040888963407u;
	return (unsigned int)(random_state >> 33) % limit;
}

static void switch_thread(void)
{
	int from = current;

	do
		current = (int)below(THREADS);
	while (ended[current]);
	if (current != from)
		swapcontext(&contexts[from], &contexts[current]);
}

static void any_access(void)
{
	if (current >= 0 && below(calm) == 0)
		switch_thread();
}

#define ACCESSES(size)                    \
	void __tsan_read##size(void *);   \
	void __tsan_write##size(void *);  \
	void __tsan_read##size(void *at)  \
	{                                 \
		(void)at, any_access();   \
	}                                 \
	void __tsan_write##size(void *at) \
	{                                 \
		(void)at, any_access();   \
	}
ACCESSES(1)
ACCESSES(2)
ACCESSES(4)
ACCESSES(8)
ACCESSES(16)

#define ATOMICS(bits)                                                                           \
	typedef uint##bits##_t u##bits;                                                         \
	u##bits __tsan_atomic##bits##_load(const u##bits *, int);                               \
	void __tsan_atomic##bits##_store(u##bits *, u##bits, int);                              \
	u##bits __tsan_atomic##bits##_exchange(u##bits *, u##bits, int);                        \
	u##bits __tsan_atomic##bits##_fetch_add(u##bits *, u##bits, int);                       \
	bool __tsan_atomic##bits##_compare_exchange_strong(u##bits *, u##bits *, u##bits, int,  \
							   int);                                \
	u##bits __tsan_atomic##bits##_load(const u##bits *at, int order)                        \
	{                                                                                       \
		(void)order, any_access();                                                      \
		return *at;                                                                     \
	}                                                                                       \
	void __tsan_atomic##bits##_store(u##bits *at, u##bits value, int order)                 \
	{                                                                                       \
		(void)order, any_access();                                                      \
		*at = value;                                                                    \
	}                                                                                       \
	u##bits __tsan_atomic##bits##_exchange(u##bits *at, u##bits value, int order)           \
	{                                                                                       \
		u##bits old;                                                                    \
                                                                                                \
		(void)order, any_access();                                                      \
		old = *at;                                                                      \
		*at = value;                                                                    \
		return old;                                                                     \
	}                                                                                       \
	u##bits __tsan_atomic##bits##_fetch_add(u##bits *at, u##bits value, int order)          \
	{                                                                                       \
		(void)order, any_access();                                                      \
		*at = (u##bits)(*at + value);                                                   \
		return (u##bits)(*at - value);                                                  \
	}                                                                                       \
	bool __tsan_atomic##bits##_compare_exchange_strong(u##bits *at, u##bits *expected,      \
							   u##bits value, int order, int other) \
	{                                                                                       \
		u##bits old;                                                                    \
                                                                                                \
		(void)order, (void)other, any_access();                                         \
		old = *at;                                                                      \
		if (old == *expected)                                                           \
			*at = value;                                                            \
		return old == *expected ? true : (*expected = old, false);                      \
	}
ATOMICS(16)
ATOMICS(32)
ATOMICS(64)

void __tsan_init(void);
void __tsan_func_entry(void *);
void __tsan_func_exit(void);
void __tsan_init(void)
{
}
void __tsan_func_entry(void *at)
{
	(void)at;
}
void __tsan_func_exit(void)
{
}

/* The first byte of a mutex says whether somebody has it. */
int pthread_mutex_trylock(pthread_mutex_t *mutex)
{
	char *taken = (char *)mutex;

	any_access();
	if (*taken)
		return 1;
	*taken = 1;
	return 0;
}

int pthread_mutex_lock(pthread_mutex_t *mutex)
{
	while (pthread_mutex_trylock(mutex))
		switch_thread();
	return 0;
}

int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
	*(char *)mutex = 0;
	return 0;
}

/* What the tables ask of the rest of the library. */
int clock_gettime(clockid_t clock, struct timespec *time)
{
	(void)clock;
	*time = (struct timespec){.tv_sec = now_ns / 1000000000, .tv_nsec = now_ns % 1000000000};
	return 0;
}

int hearth_cpu_end(void)
{
	return CPUS;
}

int hearth_cpu_is_ours(int cpu)
{
	return cpu >= 0 && cpu < CPUS;
}

enum hearth_ways hearth_process_way(void)
{
	return HEARTH_WAY_LIBRARY;
}

void hearth_look_for_scheduler(void)
{
}

void hearth_trial_period(uint64_t all_enters, uint64_t now)
{
	static bool within;

	(void)all_enters, (void)now;
	if (within)
		fail("two threads balance at once");
	within = true;
	switch_thread();
	within = false;
}

uint64_t hearth_enters(void)
{
	return 0;
}

/* Fragments whose search begins at one entry, more than there are places for. */
static uint64_t crowded[20];

static void find_crowded(void)
{
	uint64_t fragment, count = 0;

	for (fragment = seed % 2 ? HEARTH_NAME_BIT : 1; count < 20; fragment++) {
		if (fragment * 0x9e3779b97f4a7c15u >> 48 == 77)
			crowded[count++] = fragment;
	}
}

static void use_homes(void)
{
	int step;

	for (step = 0; step < STEPS; step++) {
		uint64_t fragment = crowded[below(seed % 3 ? 20 : 8)];
		struct hearth_home *home = hearth_home_of(fragment, (int)below(CPUS));

		/* While nothing grows old, an entry is its fragment's for good. */
		if (seed % 3 == 0 && (!home || home->fragment != fragment))
			fail("a fragment's entry is another's");
		if (home) {
			hearth_home_enter(home);
			home->load_ns += below(100000000);
			if (home->place > CPUS)
				fail("a home is no CPU");
		}
		if (seed % 3)
			now_ns += below(200000000);
		hearth_balance();
	}
}

static void check_homes(void)
{
	int at, other;

	for (at = 0; at < 20; at++) {
		struct hearth_home *home = hearth_home_known(crowded[at]);

		if (home && !hearth_cpu_is_ours(home->place - 1))
			fail("a fragment that is known has no home");
		for (other = 0; home && other < at; other++) {
			if (home == hearth_home_known(crowded[other]))
				fail("two fragments have one entry");
		}
	}
}

/* One thread makes and forgets ranges; it notes for each address what it was after each change. */
#define BYTES 24
static char bytes[BYTES];
static unsigned char begins[STEPS + 1][BYTES];
static int begun_changes, done_changes;

static void change_ranges(void)
{
	int from = (int)below(BYTES), to = from + 1 + (int)below(BYTES - (unsigned int)from), at;
	bool is_new = below(3);
	unsigned char *before = begins[done_changes], *after = begins[done_changes + 1];

	memcpy(after, before, BYTES);
	for (at = 0; at < BYTES; at++) {
		int over;

		for (over = from; over < to; over++) {
			if (before[at] == before[over])
				after[at] = (unsigned char)at;
		}
	}
	if (is_new)
		memset(after + from, from, (size_t)(to - from));
	begun_changes++;
	if (is_new)
		hearth_fragment_range(&bytes[from], (size_t)(to - from));
	else
		hearth_fragment_forget(&bytes[from], (size_t)(to - from));
	done_changes++;
}

static void look_up(void)
{
	unsigned int at = below(BYTES);
	int change = done_changes;
	uint64_t found = hearth_fragment_at(&bytes[at]) & ~(1ULL << 62);

	while (change <= begun_changes && found != (uintptr_t)&bytes[begins[change][at]])
		change++;
	if (change > begun_changes)
		fail("an address is in a range that there was not");
}

static void run_thread(void)
{
	int own = current, step;

	if (seed % 4)
		use_homes();
	for (step = 0; step < STEPS && seed % 4 == 0; step++) {
		if (own)
			look_up();
		else
			change_ranges();
	}
	ended[own] = true;
	for (step = 0; step < THREADS; step++) {
		if (!ended[step])
			switch_thread();
	}
	current = -1;
	setcontext(&outside);
}

static void run(void)
{
	static const unsigned int calms[] = {1, 2, 5, 20, 100};
	int at;

	random_state = seed * 0x9e3779b97f4a7c15u;
	calm = calms[below(5)];
	if (!hearth_homes_begin())
		fail("there is no memory");
	find_crowded();
	begun_changes = done_changes = 0;
	for (at = 0; at < BYTES; at++)
		begins[0][at] = (unsigned char)at;
	hearth_fragment_forget(bytes, BYTES);
	for (at = 0; at < THREADS; at++) {
		ended[at] = false;
		getcontext(&contexts[at]);
		contexts[at].uc_stack.ss_sp = stacks[at];
		contexts[at].uc_stack.ss_size = STACK;
		makecontext(&contexts[at], run_thread, 0);
	}
	current = 0;
	swapcontext(&outside, &contexts[0]);
	if (seed % 4)
		check_homes();
}

int main(int count, char **words)
{
	uint64_t runs = count > 1 ? strtoull(words[1], NULL, 10) : 1000;

	for (seed = 0; seed < runs; seed++)
		run();
	return 0;
}
