// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Where each fragment of this process has its home. A table of fixed size that is read and written
 * without a lock: a fragment is in one of the WINDOW entries from where its number hashes to.
 *
 *	find    reads them
 *	note    takes the first that is empty, by exchange; or else one that was not entered lately
 *	rehome  stores another CPU
 *
 * What is read is a belief and may be old. An entry may become another fragment's between a look
 * and its use: then the thread goes to a CPU that is not its fragment's home, and nothing worse.
 * Two threads may note one fragment twice: the second entry is never found again, and ages.
 *
 * The load of a fragment is the number of threads within it, also of those that wait for the CPU:
 * the time that they spend there, summed up. When a CPU has 25 % more of it than another, whole
 * fragments move: each time that one which leaves the smallest difference.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "fragments.h"
#include "trial.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define ENTRIES 65536 /* four for each fragment: so a window is nearly never full */
#define WINDOW 16
#define PERIOD_NS 100000000LL
#define OLD_PERIODS 10
#define MOST_MOVES 4
#define EXPLAINED 16

static struct hearth_home *homes;
static _Atomic uint16_t *noted; /* entries that are not empty; they are never emptied */
static _Atomic uint32_t noted_end;
static _Atomic uint32_t young; /* entries that were entered lately, as of the last period */
static _Atomic uint64_t cpu_load[HEARTH_MAX_CPUS];
static _Atomic uint64_t new_load = 1; /* what a fragment of which nothing is known counts as */
static _Atomic uint16_t period;
static _Atomic uint64_t rehomed;
static pthread_mutex_t balancing = PTHREAD_MUTEX_INITIALIZER;

int hearth_homes_begin(void)
{
	size_t size = ENTRIES * sizeof(*homes), whole = size + ENTRIES * sizeof(*noted);
	void *made = mmap(NULL, whole, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (made == MAP_FAILED)
		return 0;
	homes = made;
	noted = (_Atomic uint16_t *)((char *)made + size);
	return 1;
}

/* The multiplier is 2^64 divided by the golden ratio: near numbers come far apart. */
static uint32_t first_entry(uint64_t fragment)
{
	return (uint32_t)(fragment * 0x9e3779b97f4a7c15u >> 48);
}

static struct hearth_home *entry(uint32_t first, uint32_t at)
{
	return &homes[(first + at) % ENTRIES];
}

struct hearth_home *hearth_home_known(uint64_t fragment)
{
	uint32_t first = first_entry(fragment), at;

	for (at = 0; at < WINDOW; at++) {
		struct hearth_home *home = entry(first, at);
		uint64_t found = atomic_load_explicit(&home->fragment, memory_order_acquire);

		if (found == fragment)
			return home;
		if (!found)
			break;
	}
	return NULL;
}

/* The CPU with the least load; of several the current one, for what is new may be in its caches. */
static int least_loaded(int current_cpu)
{
	int cpu, end = hearth_cpu_end(), least = hearth_cpu_is_ours(current_cpu) ? current_cpu : -1;

	for (cpu = 0; cpu < end; cpu++) {
		if (hearth_cpu_is_ours(cpu) && (least < 0 || cpu_load[cpu] < cpu_load[least]))
			least = cpu;
	}
	return least;
}

int hearth_home_again(struct hearth_home *home, int current_cpu)
{
	int cpu = least_loaded(current_cpu);

	if (cpu >= 0)
		cpu_load[cpu] += new_load;
	atomic_store_explicit(&home->place, (uint16_t)(cpu + 1), memory_order_relaxed);
	return cpu;
}

void hearth_home_enter(struct hearth_home *home)
{
	uint16_t now = atomic_load_explicit(&period, memory_order_relaxed);

	if (atomic_load_explicit(&home->period, memory_order_relaxed) != now)
		atomic_store_explicit(&home->period, now, memory_order_relaxed);
}

static int is_old(const struct hearth_home *home)
{
	uint16_t used = atomic_load_explicit(&home->period, memory_order_relaxed);

	return (uint16_t)(atomic_load_explicit(&period, memory_order_relaxed) - used) > OLD_PERIODS;
}

/* Makes the entry this fragment's if it is still `old`'s; whether it is this fragment's now. */
static int claim(struct hearth_home *home, uint64_t old, uint64_t fragment, int current_cpu)
{
	if (!atomic_compare_exchange_strong(&home->fragment, &old, fragment))
		return old == fragment;
	atomic_store_explicit(&home->period, period, memory_order_relaxed);
	atomic_store_explicit(&home->load_ns, 0, memory_order_relaxed);
	atomic_store_explicit(&home->home_ns, 0, memory_order_relaxed);
	atomic_store_explicit(&home->away_ns, 0, memory_order_relaxed);
	hearth_home_again(home, current_cpu);
	atomic_fetch_add(&young, 1);
	if (!old)
		noted[atomic_fetch_add(&noted_end, 1)] = (uint16_t)(home - homes);
	return 1;
}

struct hearth_home *hearth_home_of(uint64_t fragment, int current_cpu)
{
	struct hearth_home *found = hearth_home_known(fragment), *home;
	uint32_t first = first_entry(fragment), at;
	uint64_t holds;

	if (found)
		return found;
	for (at = 0; at < WINDOW; at++) {
		home = entry(first, at);
		holds = atomic_load(&home->fragment);
		if (holds == fragment)
			return home;
		if (holds && !is_old(home))
			continue;
		if (atomic_load_explicit(&young, memory_order_relaxed) >= HEARTH_MAX_FRAGMENTS)
			return NULL;
		if (claim(home, holds, fragment, current_cpu))
			return home;
	}
	return NULL;
}

/* The fragment whose move leaves the smallest difference of two CPUs, if that is smaller. */
static struct hearth_home *best_to_move(uint32_t end, int from, uint64_t difference)
{
	struct hearth_home *best = NULL;
	uint64_t least = difference;
	uint32_t at;

	for (at = 0; at < end; at++) {
		struct hearth_home *home =
			&homes[atomic_load_explicit(&noted[at], memory_order_relaxed)];
		uint64_t moved = 2 * home->past_ns, left;

		if (home->place != from + 1 || !moved)
			continue;
		left = moved > difference ? moved - difference : difference - moved;
		if (left < least) {
			least = left;
			best = home;
		}
	}
	return best;
}

/*
 * What each CPU's fragments took lately; a period counts half as much as the one after it. Returns
 * what a fragment took on average.
 */
static uint64_t sum_up(uint32_t end, uint64_t *loads)
{
	uint32_t at, count = 0;
	uint64_t sum = 0;

	memset(loads, 0, HEARTH_MAX_CPUS * sizeof(*loads));
	for (at = 0; at < end; at++) {
		struct hearth_home *home =
			&homes[atomic_load_explicit(&noted[at], memory_order_relaxed)];
		int cpu = home->place - 1;

		home->past_ns = home->past_ns / 2 + atomic_exchange(&home->load_ns, 0) / 2;
		if (cpu >= 0 && cpu < HEARTH_MAX_CPUS)
			loads[cpu] += home->past_ns;
		sum += home->past_ns;
		count += !is_old(home);
	}
	young = count;
	return sum / (count + 1);
}

static int is_uneven(uint64_t most, uint64_t least)
{
	return most > PERIOD_NS / 10 && most > least + least / 4;
}

static void make_even(uint32_t end, uint64_t *loads)
{
	int moves, cpu, cpus = hearth_cpu_end();

	for (moves = 0; moves < MOST_MOVES; moves++) {
		struct hearth_home *home;
		int most = -1, least = -1;

		for (cpu = 0; cpu < cpus; cpu++) {
			if (!hearth_cpu_is_ours(cpu))
				continue;
			most = most < 0 || loads[cpu] > loads[most] ? cpu : most;
			least = least < 0 || loads[cpu] < loads[least] ? cpu : least;
		}
		if (most < 0 || !is_uneven(loads[most], loads[least]))
			return;
		home = best_to_move(end, most, loads[most] - loads[least]);
		if (!home)
			return;
		loads[most] -= home->past_ns;
		loads[least] += home->past_ns;
		atomic_store_explicit(&home->place, (uint16_t)(least + 1), memory_order_relaxed);
		atomic_fetch_add(&rehomed, 1);
	}
}

void hearth_balance_stop(void)
{
	pthread_mutex_lock(&balancing);
}

void hearth_balance_go_on(void)
{
	pthread_mutex_unlock(&balancing);
}

void hearth_balance(void)
{
	static _Atomic int64_t due_ns;
	static uint64_t loads[HEARTH_MAX_CPUS];
	int64_t due = atomic_load_explicit(&due_ns, memory_order_relaxed), now;
	struct timespec clock;
	uint32_t end;
	int cpu;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &clock);
	now = clock.tv_sec * 1000000000LL + clock.tv_nsec;
	if (now < due || pthread_mutex_trylock(&balancing))
		return;
	end = atomic_load(&noted_end);
	/* The first time there is no period yet to judge by. */
	if (due) {
		atomic_fetch_add(&period, 1);
		hearth_look_for_scheduler();
		hearth_trial_period(hearth_enters(), (uint64_t)now);
		new_load = sum_up(end, loads) + 1;
		make_even(end, loads);
		for (cpu = 0; cpu < HEARTH_MAX_CPUS; cpu++)
			atomic_store_explicit(&cpu_load[cpu], loads[cpu], memory_order_relaxed);
	}
	atomic_store(&due_ns, now + PERIOD_NS);
	pthread_mutex_unlock(&balancing);
}

uint64_t hearth_rehomed(void)
{
	return atomic_load(&rehomed);
}

void hearth_homes_explain(void)
{
	struct hearth_home *said[EXPLAINED] = {0};
	uint32_t at, end = atomic_load(&noted_end), rank;

	for (at = 0; at < end; at++) {
		struct hearth_home
			*home = &homes[atomic_load_explicit(&noted[at], memory_order_relaxed)],
			*next;

		for (rank = 0; home && rank < EXPLAINED; rank++) {
			if (said[rank] && said[rank]->past_ns >= home->past_ns)
				continue;
			next = said[rank];
			said[rank] = home;
			home = next;
		}
	}
	for (rank = 0; rank < EXPLAINED && said[rank]; rank++)
		fprintf(stderr,
			"hearth: fragment %#llx has its home on CPU %d: %.1f threads, %u ns an "
			"enter "
			"there, %u ns elsewhere\n",
			(unsigned long long)said[rank]->fragment, said[rank]->place - 1,
			(double)said[rank]->past_ns / PERIOD_NS, said[rank]->home_ns,
			said[rank]->away_ns);
	if (end > EXPLAINED)
		fprintf(stderr, "hearth: and %u more\n", end - EXPLAINED);
}
