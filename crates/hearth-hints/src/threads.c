// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The threads of a process that say what they work on: how they begin and end, what they did
 * together, and what is left of them in a child of fork.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "../include/hearth.h"
#include "thread.h"
#include "trial.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

__thread struct hearth_thread hearth_self;

static enum hearth_ways process_way = HEARTH_WAY_OFF;
static int explains;
static pthread_key_t end_of_thread;
static _Atomic uint32_t word_flags;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of these two */
static struct hearth_thread *threads;
static struct hearth_fragment_counts ended;

static void add(struct hearth_fragment_counts *sum, const struct hearth_thread *thread)
{
	sum->at_home += thread->at_home;
	sum->moved += thread->moved;
	sum->stayed += thread->stayed;
	sum->refused += thread->refused;
	sum->unmatched += thread->unmatched;
}

static void thread_ends(void *ended_thread)
{
	struct hearth_thread *thread = ended_thread;

	pthread_mutex_lock(&lock);
	add(&ended, thread);
	*thread->link = thread->next;
	if (thread->next)
		thread->next->link = thread->link;
	pthread_mutex_unlock(&lock);
	thread->word.fragment = 0;
	thread->way = HEARTH_WAY_OFF;
}

/* Who balances asks for counts: so in this order. */
static void before_fork(void)
{
	hearth_balance_stop();
	pthread_mutex_lock(&lock);
	hearth_ranges_stop();
}

static void after_fork(void)
{
	hearth_ranges_go_on();
	pthread_mutex_unlock(&lock);
	hearth_balance_go_on();
}

/* The child is a process of one thread, which believes of homes what its parent did. */
static void in_child(void)
{
	after_fork();
	/* What the tables have counted was the parent's. */
	ended = (struct hearth_fragment_counts){.rehomed = -hearth_rehomed(),
						.unranged = -hearth_ranges_refused()};
	threads = NULL;
	if (hearth_self.way <= HEARTH_WAY_OFF)
		return;
	hearth_self.at_home = hearth_self.moved = hearth_self.stayed = hearth_self.refused =
		hearth_self.unmatched = 0;
	hearth_self.samples.depth = 0;
	hearth_self.until_sample = 0;
	hearth_self.next = NULL;
	hearth_self.link = &threads;
	threads = &hearth_self;
	if (!(word_flags & HEARTH_FRAGMENT_INHERIT)) {
		hearth_self.word.fragment = 0;
		hearth_self.depth = 0;
	}
	if (hearth_self.way == HEARTH_WAY_TOLD || hearth_self.way == HEARTH_WAY_SCHEDULER) {
		hearth_self.way = HEARTH_WAY_LIBRARY;
		hearth_self.scheduler = 0;
		hearth_self.samples.ended = 0;
	}
}

/* Before the process begins, for a child may begin anew what a fork has interrupted. */
__attribute__((constructor)) static void prepare_for_forks(void)
{
	pthread_atfork(before_fork, after_fork, in_child);
}

static void begin_process(void)
{
	const char *given = secure_getenv("HEARTH_FRAGMENTS");

	if (given && !strcmp(given, "off"))
		return;
	explains = given && !strcmp(given, "explain");
	if (given && *given && !explains)
		fprintf(stderr, "hearth: HEARTH_FRAGMENTS=%s is neither off nor explain\n", given);
	if (!hearth_cpus_begin() || !hearth_homes_begin() ||
	    pthread_key_create(&end_of_thread, thread_ends))
		return;
	hearth_look_for_scheduler();
	process_way = hearth_cpus_are_real() ? HEARTH_WAY_LIBRARY : HEARTH_WAY_PRETEND;
}

enum hearth_ways hearth_process_way(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, begin_process);
	return process_way;
}

void hearth_thread_begins(struct hearth_thread *own)
{
	own->word.version = HEARTH_FRAGMENT_WORD_VERSION;
	pthread_mutex_lock(&lock);
	own->word.flags = word_flags;
	own->next = threads;
	own->link = &threads;
	if (threads)
		threads->link = &own->next;
	threads = own;
	pthread_mutex_unlock(&lock);
	pthread_setspecific(end_of_thread, own);
}

void hearth_fragments_inherit(int whether)
{
	struct hearth_thread *thread;

	pthread_mutex_lock(&lock);
	word_flags = whether ? HEARTH_FRAGMENT_INHERIT : 0;
	for (thread = threads; thread; thread = thread->next)
		thread->word.flags = word_flags;
	pthread_mutex_unlock(&lock);
}

void hearth_fragment_counts(struct hearth_fragment_counts *counts)
{
	const struct hearth_thread *thread;

	pthread_mutex_lock(&lock);
	*counts = ended;
	for (thread = threads; thread; thread = thread->next)
		add(counts, thread);
	pthread_mutex_unlock(&lock);
	counts->enters = counts->at_home + counts->moved + counts->stayed + counts->refused;
	counts->rehomed += hearth_rehomed();
	counts->unranged += hearth_ranges_refused();
}

uint64_t hearth_enters(void)
{
	struct hearth_fragment_counts counts;

	hearth_fragment_counts(&counts);
	return counts.enters;
}

__attribute__((destructor)) static void explain(void)
{
	struct hearth_fragment_counts counts;

	if (!explains || process_way == HEARTH_WAY_OFF)
		return;
	hearth_fragment_counts(&counts);
	fprintf(stderr,
		"hearth: %llu enters: at home %llu, moved %llu, stayed %llu, refused %llu; "
		"%llu leaves without enter; %llu homes changed for balance\n",
		(unsigned long long)counts.enters, (unsigned long long)counts.at_home,
		(unsigned long long)counts.moved, (unsigned long long)counts.stayed,
		(unsigned long long)counts.refused, (unsigned long long)counts.unmatched,
		(unsigned long long)counts.rehomed);
	fprintf(stderr, "hearth: a move takes %u ns of CPU time\n", hearth_move_ns());
	hearth_trial_explain();
	hearth_homes_explain();
}
