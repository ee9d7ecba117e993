// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Where each fragment has its home. A table of fixed size that is read and written without a lock:
 * a fragment is in one of the WINDOW entries from where its number hashes to.
 *
 *	find    reads them
 *	note    takes the first that is empty, by exchange; or else one that was not entered lately
 *	rehome  stores another CPU
 *
 * What is read is a belief and may be old. An entry may become another fragment's between a look
 * and its use: then the thread goes to a CPU that is not its fragment's home, and nothing worse.
 * Two threads may note one fragment twice: the second entry is never found again, and ages.
 *
 * There are two: one of the process, which a child of fork has a copy of; and one of fragments with
 * a name, in memory that is shared with such children. They may be other users', so what is read
 * there may be anything, and is looked at before it is used as an index.
 *
 * The load of a fragment is the number of threads within it, also of those that wait for the CPU:
 * the time that they spend there, summed up. When a CPU has 25 % more of it than another, whole
 * fragments move: each time that one which leaves the smallest difference.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "clock.h"
#include "fragments.h"
#include "trial.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define ENTRIES 65536 /* four for each fragment: so a window is nearly never full */
#define WINDOW 16
#define PERIOD_NS 100000000LL
#define OLD_PERIODS 10
#define MOST_MOVES 4
#define EXPLAINED 16

struct table {
	struct hearth_home entries[ENTRIES];
	_Atomic uint16_t noted[ENTRIES]; /* entries that are not empty; they are never emptied */
	_Atomic uint32_t noted_end;
	_Atomic uint32_t young; /* entries that were entered lately, as of the last period */
	_Atomic uint64_t cpu_load[HEARTH_MAX_CPUS];
	_Atomic uint64_t new_load; /* what a fragment of which nothing is known counts as, less 1 */
	_Atomic int64_t due_ns;	   /* when the next period begins; 0: none has begun */
	_Atomic uint16_t period;
};

static struct table *own, *shared;
static _Atomic uint64_t rehomed; /* by this process */
static pthread_mutex_t balancing = PTHREAD_MUTEX_INITIALIZER;

static struct table *make_table(int sharing)
{
	void *made = mmap(NULL, sizeof(struct table), PROT_READ | PROT_WRITE,
			  sharing | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (made == MAP_FAILED)
		return NULL;
	/* A few entries are used, all over it: huge pages would be cleared for each. */
	madvise(made, sizeof(struct table), MADV_NOHUGEPAGE);
	return made;
}

int hearth_homes_begin(void)
{
	own = make_table(MAP_PRIVATE);
	shared = make_table(MAP_SHARED);
	return own && shared;
}

static struct table *table_of(uint64_t fragment)
{
	return fragment & HEARTH_NAME_BIT ? shared : own;
}

static struct table *table_with(const struct hearth_home *home)
{
	uintptr_t from = (uintptr_t)shared->entries, at = (uintptr_t)home;

	return at >= from && at < from + sizeof(shared->entries) ? shared : own;
}

/* The multiplier is 2^64 divided by the golden ratio: near numbers come far apart. */
static uint32_t first_entry(uint64_t fragment)
{
	return (uint32_t)(fragment * 0x9e3779b97f4a7c15u >> 48);
}

static struct hearth_home *entry(struct table *table, uint32_t first, uint32_t at)
{
	return &table->entries[(first + at) % ENTRIES];
}

/* Entries that are noted. */
static uint32_t noted_end(const struct table *table)
{
	uint32_t end = atomic_load_explicit(&table->noted_end, memory_order_relaxed);

	return end < ENTRIES ? end : ENTRIES;
}

static struct hearth_home *noted(struct table *table, uint32_t at)
{
	return &table->entries[atomic_load_explicit(&table->noted[at], memory_order_relaxed)];
}

struct hearth_home *hearth_home_known(uint64_t fragment)
{
	struct table *table = table_of(fragment);
	uint32_t first = first_entry(fragment), at;

	for (at = 0; at < WINDOW; at++) {
		struct hearth_home *home = entry(table, first, at);
		uint64_t found = atomic_load_explicit(&home->fragment, memory_order_acquire);

		if (found == fragment)
			return home;
		if (!found)
			break;
	}
	return NULL;
}

static uint64_t load_of(int cpu)
{
	return own->cpu_load[cpu] + shared->cpu_load[cpu];
}

/* The CPU with the least load; of several the current one, for what is new may be in its caches. */
static int least_loaded(int current_cpu)
{
	int cpu, end = hearth_cpu_end(), least = hearth_cpu_is_ours(current_cpu) ? current_cpu : -1;

	for (cpu = 0; cpu < end; cpu++) {
		if (hearth_cpu_is_ours(cpu) && (least < 0 || load_of(cpu) < load_of(least)))
			least = cpu;
	}
	return least;
}

int hearth_home_again(struct hearth_home *home, int current_cpu)
{
	struct table *table = table_with(home);
	int cpu = least_loaded(current_cpu);

	if (cpu >= 0)
		table->cpu_load[cpu] += table->new_load + 1;
	atomic_store_explicit(&home->place, (uint16_t)(cpu + 1), memory_order_relaxed);
	return cpu;
}

void hearth_home_enter(struct hearth_home *home)
{
	uint16_t now = atomic_load_explicit(&table_with(home)->period, memory_order_relaxed);

	if (atomic_load_explicit(&home->period, memory_order_relaxed) != now)
		atomic_store_explicit(&home->period, now, memory_order_relaxed);
}

static int is_old(const struct table *table, const struct hearth_home *home)
{
	uint16_t now = atomic_load_explicit(&table->period, memory_order_relaxed);
	uint16_t used = atomic_load_explicit(&home->period, memory_order_relaxed);

	return (uint16_t)(now - used) > OLD_PERIODS;
}

/* Makes the entry this fragment's if it is still `old`'s; whether it is this fragment's now. */
static int claim(struct table *table, struct hearth_home *home, uint64_t old, uint64_t fragment,
		 int current_cpu)
{
	uint32_t end;

	if (!atomic_compare_exchange_strong(&home->fragment, &old, fragment))
		return old == fragment;
	atomic_store_explicit(&home->period, table->period, memory_order_relaxed);
	atomic_store_explicit(&home->load_ns, 0, memory_order_relaxed);
	atomic_store_explicit(&home->home_ns, 0, memory_order_relaxed);
	atomic_store_explicit(&home->away_ns, 0, memory_order_relaxed);
	hearth_home_again(home, current_cpu);
	atomic_fetch_add(&table->young, 1);
	end = old ? ENTRIES : atomic_fetch_add(&table->noted_end, 1);
	if (end < ENTRIES)
		table->noted[end] = (uint16_t)(home - table->entries);
	return 1;
}

struct hearth_home *hearth_home_of(uint64_t fragment, int current_cpu)
{
	struct hearth_home *found = hearth_home_known(fragment), *home;
	struct table *table = table_of(fragment);
	uint32_t first = first_entry(fragment), at;
	uint64_t holds;

	if (found)
		return found;
	for (at = 0; at < WINDOW; at++) {
		home = entry(table, first, at);
		holds = atomic_load(&home->fragment);
		if (holds == fragment)
			return home;
		if (holds && !is_old(table, home))
			continue;
		if (atomic_load_explicit(&table->young, memory_order_relaxed) >=
		    HEARTH_MAX_FRAGMENTS)
			return NULL;
		if (claim(table, home, holds, fragment, current_cpu))
			return home;
	}
	return NULL;
}

/* The fragment whose move leaves the smallest difference of two CPUs, if that is smaller. */
static struct hearth_home *best_to_move(struct table *table, int from, uint64_t difference)
{
	struct hearth_home *best = NULL;
	uint64_t least = difference;
	uint32_t at, end = noted_end(table);

	for (at = 0; at < end; at++) {
		struct hearth_home *home = noted(table, at);
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
static uint64_t sum_up(struct table *table, uint64_t *loads)
{
	uint32_t at, count = 0, end = noted_end(table);
	uint64_t sum = 0;

	memset(loads, 0, HEARTH_MAX_CPUS * sizeof(*loads));
	for (at = 0; at < end; at++) {
		struct hearth_home *home = noted(table, at);
		int cpu = home->place - 1;

		home->past_ns = home->past_ns / 2 + atomic_exchange(&home->load_ns, 0) / 2;
		if (cpu >= 0 && cpu < HEARTH_MAX_CPUS)
			loads[cpu] += home->past_ns;
		sum += home->past_ns;
		count += !is_old(table, home);
	}
	table->young = count;
	return sum / (count + 1);
}

static int is_uneven(uint64_t most, uint64_t least)
{
	return most > PERIOD_NS / 10 && most > least + least / 4;
}

static void make_even(struct table *table, uint64_t *loads)
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
		home = best_to_move(table, most, loads[most] - loads[least]);
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

/* Whether a period of this table has ended; to one of all that ask. The first only begins. */
static int ends_period(struct table *table, int64_t now)
{
	int64_t due = atomic_load_explicit(&table->due_ns, memory_order_relaxed);

	return (now >= due || due > now + 2 * PERIOD_NS) &&
	       atomic_compare_exchange_strong(&table->due_ns, &due, now + PERIOD_NS) && due;
}

static void balance(struct table *table)
{
	uint64_t loads[HEARTH_MAX_CPUS];
	int cpu;

	atomic_fetch_add(&table->period, 1);
	table->new_load = sum_up(table, loads);
	make_even(table, loads);
	for (cpu = 0; cpu < HEARTH_MAX_CPUS; cpu++)
		atomic_store_explicit(&table->cpu_load[cpu], loads[cpu], memory_order_relaxed);
}

void hearth_balance(void)
{
	int64_t now = hearth_clock_ns(CLOCK_MONOTONIC_COARSE);

	if (now < atomic_load_explicit(&own->due_ns, memory_order_relaxed) ||
	    pthread_mutex_trylock(&balancing))
		return;
	if (ends_period(own, now)) {
		hearth_look_for_scheduler();
		hearth_trial_period(hearth_enters(), (uint64_t)now);
		balance(own);
	}
	if (ends_period(shared, now))
		balance(shared);
	pthread_mutex_unlock(&balancing);
}

uint64_t hearth_rehomed(void)
{
	return atomic_load(&rehomed);
}

/* Sorts the fragments of most load to the front. */
static void rank(struct table *table, struct hearth_home **said)
{
	uint32_t at, end = noted_end(table), place;

	for (at = 0; at < end; at++) {
		struct hearth_home *home = noted(table, at), *next;

		for (place = 0; home && place < EXPLAINED; place++) {
			if (said[place] && said[place]->past_ns >= home->past_ns)
				continue;
			next = said[place];
			said[place] = home;
			home = next;
		}
	}
}

void hearth_homes_explain(void)
{
	struct hearth_home *said[EXPLAINED] = {0};
	uint32_t at, all = noted_end(own) + noted_end(shared);

	rank(own, said);
	rank(shared, said);
	for (at = 0; at < EXPLAINED && said[at]; at++)
		fprintf(stderr,
			"hearth: fragment %#llx has its home on CPU %d: %.1f threads, %u ns an "
			"enter there, %u ns elsewhere\n",
			(unsigned long long)said[at]->fragment, said[at]->place - 1,
			(double)said[at]->past_ns / PERIOD_NS, said[at]->home_ns,
			said[at]->away_ns);
	if (all > EXPLAINED)
		fprintf(stderr, "hearth: and %u more\n", all - EXPLAINED);
}
