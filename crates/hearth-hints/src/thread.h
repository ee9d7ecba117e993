/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A thread that says what it works on; and all of them together: see threads.c. */
#ifndef HEARTH_THREAD_H
#define HEARTH_THREAD_H

#include "fragments.h"
#include "pays.h"
#include "samples.h"

/* Fragments within fragments. */
#define HEARTH_DEPTH 16

/* How a thread gets to fragments' homes. */
enum hearth_ways {
	HEARTH_WAY_UNKNOWN = 0, /* the thread has said nothing yet */
	HEARTH_WAY_OFF,
	HEARTH_WAY_PRETEND, /* HEARTH_TOPOLOGY: nothing moves */
	HEARTH_WAY_LIBRARY,
	HEARTH_WAY_TOLD, /* a scheduler was told of it, and has not answered: it stays */
	HEARTH_WAY_SCHEDULER,
};

/* What a thread at home uses comes first: one cache line, for it may be cold after each switch. */
struct hearth_thread {
	struct hearth_fragment_word word;
	enum hearth_ways way;
	uint32_t depth;	       /* enters that are not left */
	uint32_t until_sample; /* enters */
	int pretended_cpu;
	_Atomic uint64_t at_home;
	struct hearth_missed missed;
	uint64_t outer[HEARTH_DEPTH];
	_Atomic uint64_t moved, stayed, refused, unmatched;
	struct hearth_samples samples;
	uint64_t scheduler;	/* the one that was told where the word is */
	int64_t rests_until_ns; /* one that did not answer is not asked before */
	struct hearth_thread *next, **link;
};

static_assert(offsetof(struct hearth_thread, outer) < 64, "the first of them, too");

/* The calling thread; all 0 until it says something. */
extern __thread struct hearth_thread hearth_self
	__attribute__((aligned(64), tls_model("initial-exec")));

/* How threads of this process begin; decided once, by the first that asks. */
enum hearth_ways hearth_process_way(void);

/* The calling thread says its first word: it counts among the others until it ends. */
void hearth_thread_begins(struct hearth_thread *own);

/* Only the thread itself counts, so no two writes meet; others may read. */
static inline void hearth_count(_Atomic uint64_t *counter)
{
	uint64_t before = atomic_load_explicit(counter, memory_order_relaxed);

	atomic_store_explicit(counter, before + 1, memory_order_relaxed);
}

#endif
