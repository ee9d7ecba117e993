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
#include "pays.h"
#include "samples.h"
#include "trial.h"
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH 16
#define ADDRESS_BIT (1ULL << 62)
#define NAME_BIT (1ULL << 63)

enum ways {
	WAY_UNKNOWN = 0, /* the thread has said nothing yet */
	WAY_OFF,
	WAY_PRETEND, /* HEARTH_TOPOLOGY: nothing moves */
	WAY_LIBRARY,
	WAY_SCHEDULER,
};

/* What a thread at home uses comes first: one cache line, for it may be cold after each switch. */
struct thread {
	struct hearth_fragment_word word;
	enum ways way;
	uint32_t depth;	       /* enters that are not left */
	uint32_t until_sample; /* enters */
	int pretended_cpu;
	_Atomic uint64_t at_home;
	struct hearth_missed missed;
	uint64_t outer[DEPTH];
	_Atomic uint64_t moved, stayed, refused, unmatched;
	struct hearth_samples samples;
	uint64_t scheduler; /* the one that was told where the word is */
	struct thread *next, **link;
};

static_assert(offsetof(struct thread, outer) < 64, "the first of them, too");

static __thread struct thread self __attribute__((aligned(64), tls_model("initial-exec")));

static pthread_once_t once = PTHREAD_ONCE_INIT;
static enum ways process_way = WAY_OFF;
static int explains;
static pthread_key_t end_of_thread;
static _Atomic uint32_t word_flags;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of these two */
static struct thread *threads;
static struct hearth_fragment_counts ended;

static void add(struct hearth_fragment_counts *sum, const struct thread *thread)
{
	sum->at_home += thread->at_home;
	sum->moved += thread->moved;
	sum->stayed += thread->stayed;
	sum->refused += thread->refused;
	sum->unmatched += thread->unmatched;
}

/* Only the thread itself counts, so no two writes meet; others may read. */
static void count(_Atomic uint64_t *counter)
{
	uint64_t before = atomic_load_explicit(counter, memory_order_relaxed);

	atomic_store_explicit(counter, before + 1, memory_order_relaxed);
}

static void thread_ends(void *ended_thread)
{
	struct thread *thread = ended_thread;

	pthread_mutex_lock(&lock);
	add(&ended, thread);
	*thread->link = thread->next;
	if (thread->next)
		thread->next->link = thread->link;
	pthread_mutex_unlock(&lock);
	thread->word.fragment = 0;
	thread->way = WAY_OFF;
}

/* Who balances asks for counts: so in this order. */
static void before_fork(void)
{
	hearth_balance_stop();
	pthread_mutex_lock(&lock);
}

static void after_fork(void)
{
	pthread_mutex_unlock(&lock);
	hearth_balance_go_on();
}

/* The child is a process of one thread, which believes of homes what its parent did. */
static void in_child(void)
{
	after_fork();
	memset(&ended, 0, sizeof(ended));
	threads = NULL;
	if (self.way <= WAY_OFF)
		return;
	self.at_home = self.moved = self.stayed = self.refused = self.unmatched = 0;
	self.samples.depth = 0;
	self.until_sample = 0;
	self.next = NULL;
	self.link = &threads;
	threads = &self;
	if (!(word_flags & HEARTH_FRAGMENT_INHERIT)) {
		self.word.fragment = 0;
		self.depth = 0;
	}
	if (self.way == WAY_SCHEDULER) {
		self.way = WAY_LIBRARY;
		self.scheduler = 0;
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
	process_way = hearth_cpus_are_real() ? WAY_LIBRARY : WAY_PRETEND;
}

/* Another daemon than the one that knows the thread has begun, or that one has ended. */
static void meet_scheduler(struct thread *own)
{
	uint64_t scheduler = hearth_scheduler();

	if (own->way == WAY_PRETEND || own->scheduler == scheduler)
		return;
	own->scheduler = scheduler;
	own->way = hearth_register_thread(&own->word) ? WAY_SCHEDULER : WAY_LIBRARY;
}

/* The thread's first word. How it gets to fragments' homes from now on. */
static enum ways begin_thread(struct thread *own)
{
	int kept = errno;

	pthread_once(&once, begin_process);
	own->word.version = HEARTH_FRAGMENT_WORD_VERSION;
	own->word.flags = word_flags;
	own->pretended_cpu = -1;
	own->way = process_way;
	if (own->way == WAY_OFF)
		return WAY_OFF;
	meet_scheduler(own);
	pthread_mutex_lock(&lock);
	own->next = threads;
	own->link = &threads;
	if (threads)
		threads->link = &own->next;
	threads = own;
	pthread_mutex_unlock(&lock);
	pthread_setspecific(end_of_thread, own);
	errno = kept;
	return own->way;
}

static int current_cpu(const struct thread *own)
{
	return own->way == WAY_PRETEND ? own->pretended_cpu : sched_getcpu();
}

/* Moves the thread to the fragment's home; whether it came there. */
static int move(struct thread *own, struct hearth_home *home, int cpu)
{
	int kept = errno, to = home->place - 1;

	if (own->way == WAY_SCHEDULER) {
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
	if (own->way == WAY_PRETEND) {
		own->pretended_cpu = to;
		return 1;
	}
	return to == cpu || hearth_place(to);
}

/* The thread is not at the fragment's home. Whether it is now. */
static int go_home(struct thread *own, struct hearth_home *home, int cpu)
{
	enum hearth_verdict verdict =
		own->way == WAY_PRETEND ? HEARTH_MOVE : hearth_pays(home, &own->missed);
	uint64_t before = 0;
	int came;

	if (verdict == HEARTH_TRY_STAY)
		own->until_sample = 0;
	if (verdict == HEARTH_STAY || verdict == HEARTH_TRY_STAY) {
		count(&own->stayed);
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
	count(came ? &own->moved : &own->refused);
	return came;
}

void hearth_enter(uint64_t fragment)
{
	struct thread *own = &self;
	struct hearth_home *home = NULL;
	int cpu, is_away = 0;
	uint32_t depth;

	if (own->way <= WAY_OFF && (own->way || begin_thread(own) == WAY_OFF))
		return;
	cpu = current_cpu(own);
	depth = own->depth++;
	if (fragment && depth < DEPTH)
		home = hearth_home_of(fragment, cpu);
	if (depth < DEPTH)
		own->outer[depth] = own->word.fragment;
	if (!home) {
		count(&own->refused);
		hearth_balance(); /* time makes room */
		return;
	}
	atomic_store_explicit(&own->word.fragment, fragment, memory_order_relaxed);
	hearth_home_enter(home);
	if (home->place == cpu + 1 && hearth_cpu_is_ours(cpu)) {
		count(&own->at_home);
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

void hearth_leave(void)
{
	struct thread *own = &self;
	uint64_t fragment, outer;
	struct hearth_home *home;
	uint32_t depth;

	if (own->way <= WAY_OFF && (own->way || begin_thread(own) == WAY_OFF))
		return;
	if (!own->depth) {
		count(&own->unmatched);
		return;
	}
	depth = --own->depth;
	if (depth >= DEPTH)
		return;
	fragment = own->word.fragment;
	if (own->samples.depth == depth + 1)
		own->until_sample = hearth_sample_end(&own->samples, hearth_home_known(fragment));
	outer = own->outer[depth];
	atomic_store_explicit(&own->word.fragment, outer, memory_order_relaxed);
	if (!outer || outer == fragment)
		return;
	home = hearth_home_known(outer);
	if (home && home->place != current_cpu(own) + 1)
		move(own, home, current_cpu(own));
}

uint64_t hearth_fragment(void)
{
	return self.word.fragment;
}

uint64_t hearth_fragment_at(const void *data)
{
	return ADDRESS_BIT | ((uint64_t)(uintptr_t)data & (ADDRESS_BIT - 1));
}

/* FNV-1a of 64 bits. */
uint64_t hearth_fragment_named(const char *name)
{
	uint64_t hash = 0xcbf29ce484222325u;

	for (; *name; name++)
		hash = (hash ^ (unsigned char)*name) * 0x100000001b3u;
	return NAME_BIT | hash;
}

int hearth_fragment_home(uint64_t fragment)
{
	struct hearth_home *home = NULL;

	pthread_once(&once, begin_process);
	if (process_way != WAY_OFF && fragment)
		home = hearth_home_known(fragment);
	return home ? home->place - 1 : -1;
}

int hearth_fragment_is_here(uint64_t fragment)
{
	struct thread *own = &self;
	struct hearth_home *home;

	if (own->way <= WAY_OFF && (own->way || begin_thread(own) == WAY_OFF))
		return 1;
	home = fragment ? hearth_home_known(fragment) : NULL;
	return !home || home->place == current_cpu(own) + 1;
}

void hearth_fragments_inherit(int whether)
{
	struct thread *thread;

	pthread_mutex_lock(&lock);
	word_flags = whether ? HEARTH_FRAGMENT_INHERIT : 0;
	for (thread = threads; thread; thread = thread->next)
		thread->word.flags = word_flags;
	pthread_mutex_unlock(&lock);
}

void hearth_fragment_counts(struct hearth_fragment_counts *counts)
{
	const struct thread *thread;

	pthread_mutex_lock(&lock);
	*counts = ended;
	for (thread = threads; thread; thread = thread->next)
		add(counts, thread);
	pthread_mutex_unlock(&lock);
	counts->enters = counts->at_home + counts->moved + counts->stayed + counts->refused;
	counts->rehomed = hearth_rehomed();
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

	if (!explains || process_way == WAY_OFF)
		return;
	hearth_fragment_counts(&counts);
	fprintf(stderr,
		"hearth: %llu enters: at home %llu, moved %llu, stayed %llu, refused %llu; "
		"%llu leaves without enter; "
		"%llu homes changed for balance\n",
		(unsigned long long)counts.enters, (unsigned long long)counts.at_home,
		(unsigned long long)counts.moved, (unsigned long long)counts.stayed,
		(unsigned long long)counts.refused, (unsigned long long)counts.unmatched,
		(unsigned long long)counts.rehomed);
	fprintf(stderr, "hearth: a move takes %u ns of CPU time\n", hearth_move_ns());
	hearth_trial_explain();
	hearth_homes_explain();
}
