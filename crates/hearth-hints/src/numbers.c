// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Numbers of fragments that are known by a name, or by where their data is.
 *
 * Ranges of addresses are in order, and none overlaps another. Who looks one up takes no lock: it
 * looks again if `turn` says that they changed meanwhile, and waits for the lock if they change all
 * the time.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "../include/hearth.h"
#include "fragments.h"
#include "thread.h"
#include <pthread.h>

#define ADDRESS_BIT (1ULL << 62)
#define LOOKS 16

static struct {
	_Atomic uintptr_t begin, end; /* of its bytes, and behind them */
} ranges[HEARTH_MAX_RANGES];

static _Atomic uint32_t range_count;
static _Atomic uint32_t turn; /* odd while ranges change */
static _Atomic uint64_t refused;
static pthread_mutex_t changing = PTHREAD_MUTEX_INITIALIZER;

void hearth_ranges_stop(void)
{
	pthread_mutex_lock(&changing);
}

void hearth_ranges_go_on(void)
{
	pthread_mutex_unlock(&changing);
}

uint64_t hearth_ranges_refused(void)
{
	return atomic_load_explicit(&refused, memory_order_relaxed);
}

static uint64_t number_of(uintptr_t begin)
{
	return ADDRESS_BIT | ((uint64_t)begin & (ADDRESS_BIT - 1));
}

/* How many ranges end at this address or before. What is found while they change is of no use. */
static uint32_t ranges_before(uintptr_t address)
{
	uint32_t low = 0, high = atomic_load_explicit(&range_count, memory_order_acquire);

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (atomic_load_explicit(&ranges[middle].end, memory_order_acquire) <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Where the range around this address begins; the address itself if there is none. */
static uintptr_t begin_around(uintptr_t address)
{
	uint32_t at = ranges_before(address);
	uintptr_t begin = address;

	if (at < atomic_load_explicit(&range_count, memory_order_acquire))
		begin = atomic_load_explicit(&ranges[at].begin, memory_order_acquire);
	return begin < address ? begin : address;
}

uint64_t hearth_fragment_at(const void *data)
{
	uintptr_t address = (uintptr_t)data, begin;
	int looks;

	for (looks = 0; looks < LOOKS; looks++) {
		uint32_t seen = atomic_load_explicit(&turn, memory_order_acquire);

		begin = begin_around(address);
		if (!(seen & 1) && atomic_load_explicit(&turn, memory_order_relaxed) == seen)
			return number_of(begin);
	}
	pthread_mutex_lock(&changing);
	begin = begin_around(address);
	pthread_mutex_unlock(&changing);
	return number_of(begin);
}

/* Moves the ranges from one place on to another; those who look must see `turn` before them. */
static void move_ranges(uint32_t from, uint32_t to)
{
	uint32_t count = range_count - from, step;

	for (step = 0; step < count; step++) {
		uint32_t at = to < from ? step : count - 1 - step;

		atomic_store_explicit(&ranges[to + at].begin, ranges[from + at].begin,
				      memory_order_release);
		atomic_store_explicit(&ranges[to + at].end, ranges[from + at].end,
				      memory_order_release);
	}
	atomic_store_explicit(&range_count, to + count, memory_order_release);
}

/* Has a new range, if there is one, take the place of all that overlap these bytes. */
static void replace(uintptr_t begin, uintptr_t end, int is_new)
{
	uint32_t first, last;

	pthread_mutex_lock(&changing);
	first = last = ranges_before(begin);
	while (last < range_count && ranges[last].begin < end)
		last++;
	if (range_count - (last - first) + (uint32_t)is_new > HEARTH_MAX_RANGES) {
		atomic_fetch_add_explicit(&refused, 1, memory_order_relaxed);
	} else {
		atomic_store_explicit(&turn, turn + 1, memory_order_relaxed);
		move_ranges(last, first + (uint32_t)is_new);
		if (is_new) {
			atomic_store_explicit(&ranges[first].begin, begin, memory_order_release);
			atomic_store_explicit(&ranges[first].end, end, memory_order_release);
		}
		atomic_store_explicit(&turn, turn + 1, memory_order_release);
	}
	pthread_mutex_unlock(&changing);
}

static uintptr_t end_of(uintptr_t begin, size_t length)
{
	return length < UINTPTR_MAX - begin ? begin + length : UINTPTR_MAX;
}

uint64_t hearth_fragment_range(const void *start, size_t length)
{
	uintptr_t begin = (uintptr_t)start;

	if (length)
		replace(begin, end_of(begin, length), 1);
	return number_of(begin);
}

void hearth_fragment_forget(const void *start, size_t length)
{
	uintptr_t begin = (uintptr_t)start;

	if (length)
		replace(begin, end_of(begin, length), 0);
}

/* FNV-1a of 64 bits. */
uint64_t hearth_fragment_named(const char *name)
{
	uint64_t hash = 0xcbf29ce484222325u;

	/* What is forked from now on shares the table with its home. */
	hearth_process_way();
	for (; *name; name++)
		hash = (hash ^ (unsigned char)*name) * 0x100000001b3u;
	return HEARTH_NAME_BIT | hash;
}
