// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * What a thread says: which fragment it is in, and those around it. At the fragment's home that is
 * one word written and one table entry read. Elsewhere the scheduler that reads the word moves the
 * thread when it yields, or place.c does.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "../include/hearth.h"
#include "fragments.h"
#include "thread.h"
#include "trial.h"
#include <errno.h>
#include <sched.h>

/* Samples, of a millisecond each: to ask takes a tenth of that, of the daemon's time and its own.
 */
#define ASKS_AFTER 10

/* The thread has begun; a daemon has not said yet whether it heeds the thread's word; or another
 * than the one that knows it has begun, or that one has ended. A thread announces itself, which is
 * cheap; it asks, and waits for the answer, when it has been within fragments for so long that this
 * is little to it: many end before. */
static void meet_scheduler(struct hearth_thread *own)
{
	uint64_t scheduler = hearth_scheduler();
	int is_young = own->samples.ended < ASKS_AFTER;
	enum hearth_answer answer;

	if (own->way == HEARTH_WAY_PRETEND ||
	    (own->scheduler == scheduler && (own->way != HEARTH_WAY_TOLD || is_young)))
		return;
	if (scheduler && is_young) {
		own->way =
			hearth_announce_thread(&own->word) ? HEARTH_WAY_TOLD : HEARTH_WAY_LIBRARY;
		own->scheduler = own->way == HEARTH_WAY_TOLD ? scheduler : 0;
		return;
	}
	answer = hearth_register_thread(&own->word, &own->rests_until_ns);
	own->scheduler = answer == HEARTH_LATER ? 0 : scheduler;
	own->way = answer == HEARTH_YES ? HEARTH_WAY_SCHEDULER : HEARTH_WAY_LIBRARY;
}

/* The thread's first word. How it gets to fragments' homes from now on. */
static enum hearth_ways begin_thread(struct hearth_thread *own)
{
	int kept = errno;

	own->way = hearth_process_way();
	if (own->way == HEARTH_WAY_OFF)
		return HEARTH_WAY_OFF;
	own->pretended_cpu = -1;
	hearth_thread_begins(own);
	meet_scheduler(own);
	errno = kept;
	return own->way;
}

static int current_cpu(const struct hearth_thread *own)
{
	return own->way == HEARTH_WAY_PRETEND ? own->pretended_cpu : sched_getcpu();
}

/* Moves the thread to the fragment's home; whether it came there. */
static int move(struct hearth_thread *own, struct hearth_home *home, int cpu)
{
	int kept = errno, to = home->place - 1;

	if (own->way == HEARTH_WAY_SCHEDULER) {
		sched_yield();
		atomic_store_explicit(&home->place, (uint16_t)(sched_getcpu() + 1),
				      memory_order_relaxed);
		errno = kept;
		return 1;
	}
	if (!hearth_cpu_is_ours(to))
		to = hearth_home_again(home, cpu);
	if (to < 0)
		return 0;
	if (own->way == HEARTH_WAY_PRETEND) {
		own->pretended_cpu = to;
		return 1;
	}
	return to == cpu || hearth_place(to);
}

/* The thread is not at the fragment's home. Whether it is now. */
static int go_home(struct hearth_thread *own, struct hearth_home *home, int cpu)
{
	enum hearth_verdict verdict = HEARTH_MOVE;
	uint64_t before = 0;
	int came;

	if (own->way == HEARTH_WAY_TOLD)
		verdict = HEARTH_STAY;
	else if (own->way != HEARTH_WAY_PRETEND)
		verdict = hearth_pays(home, &own->missed);
	if (verdict == HEARTH_TRY_STAY)
		own->until_sample = 0;
	if (verdict == HEARTH_STAY || verdict == HEARTH_TRY_STAY) {
		hearth_count(&own->stayed);
		return 0;
	}
	if (verdict == HEARTH_TRY_MOVE || own->until_sample == 0)
		before = hearth_cpu_time_ns();
	came = move(own, home, cpu);
	if (came)
		hearth_moved();
	if (came && before)
		hearth_move_took(hearth_cpu_time_ns() - before);
	if (verdict == HEARTH_TRY_MOVE)
		own->until_sample = 0;
	hearth_count(came ? &own->moved : &own->refused);
	return came;
}

/* Whether homes do not matter at present: then all that costs is left out, but for samples. */
static int is_resting(const struct hearth_thread *own)
{
	return own->way == HEARTH_WAY_LIBRARY && own->until_sample && !hearth_trial_moves();
}

static void enter_home(struct hearth_thread *own, struct hearth_home *home, int cpu)
{
	int is_away = 0;

	hearth_home_enter(home);
	if (home->place == cpu + 1 && hearth_cpu_is_ours(cpu)) {
		hearth_count(&own->at_home);
		if (own->missed.gain_ns)
			own->missed.gain_ns = 0;
	} else {
		is_away = !go_home(own, home, cpu);
	}
	if (own->until_sample-- == 0) {
		hearth_balance();
		meet_scheduler(own);
		hearth_sample_begin(&own->samples, own->depth, is_away);
	}
}

void hearth_enter(uint64_t fragment)
{
	struct hearth_thread *own = &hearth_self;
	struct hearth_home *home;
	uint32_t depth;
	int cpu;

	if (own->way <= HEARTH_WAY_OFF && (own->way || begin_thread(own) == HEARTH_WAY_OFF))
		return;
	depth = own->depth++;
	if (depth < HEARTH_DEPTH)
		own->outer[depth] = own->word.fragment;
	if (depth >= HEARTH_DEPTH || !fragment) {
		hearth_count(&own->refused);
		return;
	}
	if (is_resting(own)) {
		atomic_store_explicit(&own->word.fragment, fragment, memory_order_relaxed);
		own->until_sample--;
		hearth_count(&own->stayed);
		return;
	}
	cpu = current_cpu(own);
	home = hearth_home_of(fragment, cpu);
	if (!home) {
		hearth_count(&own->refused);
		hearth_balance(); /* time makes room */
		return;
	}
	atomic_store_explicit(&own->word.fragment, fragment, memory_order_relaxed);
	enter_home(own, home, cpu);
}

/* The thread is in the fragment around again, and goes there if that pays. */
static void return_to(struct hearth_thread *own, uint64_t outer)
{
	struct hearth_home *home = is_resting(own) ? NULL : hearth_home_known(outer);
	int cpu = current_cpu(own);

	if (!home || home->place == cpu + 1 || own->way == HEARTH_WAY_TOLD)
		return;
	if (own->way != HEARTH_WAY_PRETEND && hearth_pays(home, &own->missed) != HEARTH_MOVE)
		return;
	if (move(own, home, cpu))
		hearth_moved();
}

void hearth_leave(void)
{
	struct hearth_thread *own = &hearth_self;
	uint64_t fragment, outer;
	uint32_t depth;

	if (own->way <= HEARTH_WAY_OFF && (own->way || begin_thread(own) == HEARTH_WAY_OFF))
		return;
	if (!own->depth) {
		hearth_count(&own->unmatched);
		return;
	}
	depth = --own->depth;
	if (depth >= HEARTH_DEPTH)
		return;
	fragment = own->word.fragment;
	if (own->samples.depth == depth + 1)
		own->until_sample = hearth_sample_end(&own->samples, hearth_home_known(fragment));
	outer = own->outer[depth];
	atomic_store_explicit(&own->word.fragment, outer, memory_order_relaxed);
	if (outer && outer != fragment)
		return_to(own, outer);
}

uint64_t hearth_fragment(void)
{
	return hearth_self.word.fragment;
}

int hearth_fragment_home(uint64_t fragment)
{
	struct hearth_home *home = NULL;
	int cpu = -1;

	if (hearth_process_way() != HEARTH_WAY_OFF && fragment)
		home = hearth_home_known(fragment);
	if (home)
		cpu = home->place - 1;
	return hearth_cpu_is_ours(cpu) ? cpu : -1;
}

int hearth_fragment_is_here(uint64_t fragment)
{
	struct hearth_thread *own = &hearth_self;
	struct hearth_home *home;

	if (own->way <= HEARTH_WAY_OFF && (own->way || begin_thread(own) == HEARTH_WAY_OFF))
		return 1;
	home = fragment ? hearth_home_known(fragment) : NULL;
	return !home || home->place == current_cpu(own) + 1;
}
