/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What the parts of data affinity know of each other: fragments.c (what a thread says) asks homes.c
 * (where fragments are), which asks cpus.c (which CPUs there are); place.c moves threads.
 */
#ifndef HEARTH_FRAGMENTS_H
#define HEARTH_FRAGMENTS_H

#include <assert.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define HEARTH_FRAGMENT_WORD_VERSION 1

/* Fragments that a process can have at a time. One that nobody entered for a second makes room. */
#define HEARTH_MAX_FRAGMENTS 16384

/* Ranges of addresses that are fragments, at a time. */
#define HEARTH_MAX_RANGES 16384

/* Of numbers that are made from a name. */
#define HEARTH_NAME_BIT (1ULL << 63)

/* Where there are more CPUs than a cpu_set_t has, data affinity is off. */
#define HEARTH_MAX_CPUS 1024

enum hearth_fragment_flags {
	HEARTH_FRAGMENT_INHERIT = 1 << 0, /* children begin in this fragment */
};

/*
 * What a thread says, in its own memory: a scheduler that was told the address reads it, and nobody
 * else writes it.
 */
struct hearth_fragment_word {
	uint32_t version;
	_Atomic uint32_t flags;
	_Atomic uint64_t fragment; /* 0: none */
};

static_assert(sizeof(struct hearth_fragment_word) == 16, "a word has 16 bytes");
static_assert(offsetof(struct hearth_fragment_word, fragment) == 8, "fragment");
static_assert(ATOMIC_LLONG_LOCK_FREE == 2, "it is read while the thread runs");

/* Looks whether there is a daemon with a scheduler, and which: a number, 0 for none. */
void hearth_look_for_scheduler(void);
uint64_t hearth_scheduler(void);

/*
 * Tells the scheduler where the calling thread's word is, and waits for no answer: whether it could
 * be told.
 */
int hearth_announce_thread(const struct hearth_fragment_word *word);

/*
 * The same, and asks whether it heeds the word. If it says yes, it moves the thread upon
 * sched_yield(). There may be none, or it will not: then this library does. If it does not answer
 * in time, it is asked later, and the library does so long.
 */
enum hearth_answer { HEARTH_NO, HEARTH_YES, HEARTH_LATER };

enum hearth_answer hearth_register_thread(const struct hearth_fragment_word *word,
					  int64_t *rests_until_ns);

/* A fragment's home, as is believed; all of it may change at any time. */
struct hearth_home {
	_Atomic uint64_t fragment;
	_Atomic uint64_t load_ns; /* time of threads within it, in this period */
	_Atomic uint64_t past_ns; /* the same of periods before, halved at each */
	_Atomic uint16_t place;	  /* CPU + 1; 0: none */
	_Atomic uint16_t period;  /* when it was last entered */
	_Atomic uint32_t home_ns; /* CPU time from enter to leave, at home; 0: not known */
	_Atomic uint32_t away_ns; /* the same elsewhere */
	uint32_t rest[7];
};

static_assert(sizeof(struct hearth_home) == 64, "a cache line of its own");

/* The fragment's home, which it gets if it has none; NULL if there are too many. */
struct hearth_home *hearth_home_of(uint64_t fragment, int current_cpu);

/* Keeps it from being forgotten. */
void hearth_home_enter(struct hearth_home *home);

/* The same, without giving one. */
struct hearth_home *hearth_home_known(uint64_t fragment);

/* Another home for a fragment whose home is no more a CPU of this process; -1 if there is none. */
int hearth_home_again(struct hearth_home *home, int current_cpu);

/* Makes the table; 0 if there is no memory for it. */
int hearth_homes_begin(void);

/* Moves fragments if CPUs are unevenly loaded, once a period at most. */
void hearth_balance(void);

/* Around a fork, so that the child's table is whole. */
void hearth_balance_stop(void);
void hearth_balance_go_on(void);

uint64_t hearth_rehomed(void);

/* Enters of all threads until now. */
uint64_t hearth_enters(void);

/* Says on standard error which fragments are where, those of most load first. */
void hearth_homes_explain(void);

/* Around a fork, so that the child's ranges are whole. */
void hearth_ranges_stop(void);
void hearth_ranges_go_on(void);

/* Ranges that were too many. */
uint64_t hearth_ranges_refused(void);

/* The CPUs of the process, of this machine or of HEARTH_TOPOLOGY; 0 if they cannot be known. */
int hearth_cpus_begin(void);
int hearth_cpus_are_real(void);
int hearth_cpu_is_ours(int cpu);
int hearth_cpu_end(void); /* above the last one */

/*
 * Whether a thread with this mask may run on all CPUs of the process, of which there are two at
 * least: else the program has bound it. What is known of the process's mask is put right by it.
 */
int hearth_cpus_are_all(const unsigned long *mask);

/* Moves the calling thread to this CPU, with the mask that it had. Whether it came there. */
int hearth_place(int cpu);

#endif
