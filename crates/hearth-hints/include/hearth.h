/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * How many CPUs this process can get now: not those that it sees, but its share of them, given its
 * mask, its cgroups' quotas and weights, and what else runs. `hearth exec` or the Hearth daemon
 * says it; where neither runs, the number is that of mask and quota.
 *
 * A program of many threads asks at the begin of a parallel region, or follows:
 *
 *	int cpus = hearth_cpus();
 *	for (;;) {
 *		use_threads(cpus);
 *		cpus = hearth_cpus_wait(cpus, -1);
 *	}
 *
 * All functions may be called by any thread at any time, and never fail. A child of fork() is a
 * process of its own from its first call on. A signal handler may call hearth_cpus() once a thread
 * has called it before.
 */
#ifndef HEARTH_H
#define HEARTH_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* CPUs that this process can get now, at least 1. Once begun, as cheap as two loads and a clock. */
int hearth_cpus(void);

/*
 * Waits until the number differs from `seen`, for `timeout_ms` at most (below 0: for ever), and
 * returns it.
 */
int hearth_cpus_wait(int seen, int timeout_ms);

/*
 * A descriptor that is readable when the number may have changed, or -1 if there is none; the same
 * at each call, and not to be closed. read() what it has, then ask hearth_cpus(). The end of
 * whoever says the number is no event: poll with a timeout of a second or two.
 */
int hearth_cpus_fd(void);

/*
 * How many CPUs this process would use at most; 0, as at the begin: as many as there are. What it
 * would not use goes to others. Returns 0, or -1 if nobody can be told.
 */
int hearth_want(int cpus);

/*
 * Data affinity: a thread says which data it is about to work on, and works where that data is.
 * What the data is made of, a fragment, has a number. Threads on one fragment run on one CPU, its
 * home.
 *
 *	hearth_enter(shard);
 *	serve(request, shard);
 *	hearth_leave();
 *
 * Where Hearth schedules the machine it moves the thread; elsewhere this library does, among the
 * CPUs of the process's mask. A thread that the program has bound to CPUs stays where it is. All of
 * it is advice: a program does the same without. HEARTH_FRAGMENTS=off switches it off;
 * HEARTH_FRAGMENTS=explain says on standard error, when the process ends, what was decided.
 */

/*
 * Moves the calling thread to the fragment's home before it returns, if it is not there and that is
 * worth more than it costs. May be called within another fragment, 16 deep. Entering 0 changes
 * nothing, but it is to be left, too.
 */
void hearth_enter(uint64_t fragment);

/* Ends what the last hearth_enter() began: the thread is in the fragment around it, or in none. */
void hearth_leave(void);

/* The fragment that the calling thread is in; 0 if it is in none. */
uint64_t hearth_fragment(void);

/*
 * A number from 1 to 2^62 - 1 is the process's own. These make others: of the data that is or
 * begins at an address, known to this process, and of a name, the same in all processes.
 */
uint64_t hearth_fragment_at(const void *data);
uint64_t hearth_fragment_named(const char *name);

/*
 * Makes so many bytes one fragment, the number of which hearth_fragment_at() returns for each of
 * their addresses until they are forgotten, as they should be before they are freed. What is made
 * or forgotten ends ranges that it overlaps. There may be 16,384; more are counted, and only
 * their first address has their number.
 */
uint64_t hearth_fragment_range(const void *start, size_t length);
void hearth_fragment_forget(const void *start, size_t length);

/* The CPU where the fragment was last found, or -1 if it has no home. */
int hearth_fragment_home(uint64_t fragment);

/*
 * Whether the calling thread is at the fragment's home, or could make this one its home: of several
 * things to do next, one whose data is here needs no move.
 */
int hearth_fragment_is_here(uint64_t fragment);

/* Whether a child of fork() is in the fragment of the thread that made it; else it is in none. */
void hearth_fragments_inherit(int whether);

/* What all threads of this process did until now. */
struct hearth_fragment_counts {
	uint64_t enters;  /* at_home + moved + stayed + refused */
	uint64_t at_home; /* the thread was there already */
	uint64_t moved;	  /* the thread came there */
	uint64_t stayed;  /* it stayed where it was, for to move would have cost more */
	uint64_t refused; /* it stayed: bound by the program, too deep, too many fragments, or 0 */
	uint64_t unmatched; /* hearth_leave() without hearth_enter() */
	uint64_t rehomed;   /* fragments that got another home, since CPUs were unevenly loaded */
	uint64_t unranged;  /* ranges that were too many */
};

void hearth_fragment_counts(struct hearth_fragment_counts *counts);

#ifdef __cplusplus
}
#endif

#endif
