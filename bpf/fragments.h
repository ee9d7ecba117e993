/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Fragments: data that tasks say they are about to work on, and the CPU that holds it (data
 * affinity). A task declares a number in a word of its own memory, which is looked at when the task
 * is the one that runs: at a tick, when it yields or stops. A number stands for a fragment of the
 * task's process, or of all, if it has the top bit.
 *
 *   home      a fragment that is new gets the CPU with least to do. Its tasks come to wait there.
 *             Each CPU of the home's cache is as good, and idle CPUs take them when that pays
 *             (moves.h). The home moves along when it did, and when a busy CPU draws a task
 *   batch     virtual time has epochs of the credit `fragment`. Within one, tasks of fragments are
 *             ordered by fragment in place of usage: so they run in succession until each has had
 *             its part of the epoch, and nobody waits for more than an epoch longer
 *
 * (The paper keeps a fragment whole: papers/whole.h.)
 *
 * A task that declares what is nowhere, or everything in turn, moves itself about and nobody else:
 * usage is charged as ever.
 *
 * The table is open for PROBES places from where a number's hash points. A fragment that no task
 * declares any more keeps its home until its place is needed.
 */
#ifndef HEARTH_FRAGMENTS_H
#define HEARTH_FRAGMENTS_H

#include "slices.h"

#define NO_FRAGMENT (-1)
#define FRAGMENT_BITS 14
#define PROBES 8
/* Of a number: the same in all processes. */
#define SHARED_NUMBER (1ull << 63)

_Static_assert(1 << FRAGMENT_BITS == HEARTH_MAX_FRAGMENTS, "an index has room for each fragment");

/* What is known of a fragment in one word, to be changed as a whole:
 *
 *   bit 63 ...... 32 | 31 ....... 16 | 15 .. 0
 *       tasks        | of these run  | home
 */
#define RUNS_SHIFT 16
#define TASKS_SHIFT 32
#define ONE_RUNS (1ull << RUNS_SHIFT)
#define ONE_TASK (1ull << TASKS_SHIFT)

struct fragment {
	/* Of the process, and the number in it; 0 if the place has never been used. */
	u64 key;
	u64 word;
	/* Jiffies: a CPU was idle beside it, from and until. */
	u64 uneven_from;
	u64 uneven_until;
} __attribute__((aligned(CACHE_LINE)));

struct fragment fragments[HEARTH_MAX_FRAGMENTS];
/* One CPU at a time makes a fragment; who comes meanwhile goes without, and looks again. */
static u32 fragment_is_made;
/* Declarations that found no place. */
u64 fragments_refused;
/* A task has declared one since the scheduler began. */
bool fragments_are_used;

static __always_inline struct fragment *fragment_at(s32 index)
{
	return &fragments[index & (HEARTH_MAX_FRAGMENTS - 1)];
}

static __always_inline s32 home_in(u64 word)
{
	return word & (HEARTH_MAX_CPUS - 1);
}

static __always_inline u32 runs_in(u64 word)
{
	return word >> RUNS_SHIFT & 0xffff;
}

static __always_inline u32 tasks_in(u64 word)
{
	return word >> TASKS_SHIFT;
}

static __always_inline s32 home_of(struct hearth_task *tc)
{
	return home_in(fragment_at(tc->fragment)->word);
}

static __always_inline bool is_of_fragment(struct hearth_task *tc)
{
	return tc->fragment >= 0;
}

/* A usage as the order of a fragment's tasks. */
static __always_inline u64 order_in_epoch(u64 usage, s32 index)
{
	return (usage & ~sums.epoch_rest) |
	       ((u64)index << sums.epoch_bits >> FRAGMENT_BITS & sums.epoch_rest);
}

/* ---- The table ---- */

/* Spreads keys over the table; every bit of the key counts. */
static __always_inline u64 mixed(u64 key)
{
	key = (key ^ key >> 32) * 0x9e3779b97f4a7c15ull;
	return key ^ key >> 29;
}

static __always_inline u64 key_of(struct task_struct *p, u64 number)
{
	u64 key = number & SHARED_NUMBER ? number : mixed(number ^ task_process(p) << 40);

	return key ? key : 1;
}

/* A task more, or less, has declared a fragment. */
static __always_inline void tasks_count(struct fragment *f, s64 change)
{
	u64 word = __sync_fetch_and_add(&f->word, change * ONE_TASK);

	__sync_fetch_and_add(&cpu_ctx(home_in(word))->declared, change);
}

/* The CPU with least to do: that runs or waits there, or has declared what is at home there. */
verified_alone s32 least_loaded(struct task_struct *p __arg_trusted, s32 otherwise)
{
	struct hearth_shape *whole = &shapes[0];
	s64 least = 0;
	s32 best = NO_CPU;
	u32 i;

	bpf_for(i, 0, topology.nr_online) {
		s32 cpu = whole->member[i & (HEARTH_MAX_CPUS - 1)];
		s64 load = waiting_at(cpu) + !cpu_ctx(cpu)->is_idle + cpu_ctx(cpu)->declared;

		if (!bpf_cpumask_test_cpu(cpu, p->cpus_ptr))
			continue;
		if (best < 0 || load < least || (load == least && cpu == otherwise)) {
			best = cpu;
			least = load;
		}
	}
	return best < 0 ? otherwise : best;
}

/* The place of a key, or the first that nobody needs if `is_new`, or NO_FRAGMENT. */
verified_alone s32 fragment_find(u64 key, u64 is_new)
{
	u64 hash = mixed(key);
	u32 i;

	bpf_for(i, 0, PROBES) {
		s32 index = (hash + i) & (HEARTH_MAX_FRAGMENTS - 1);
		struct fragment *f = fragment_at(index);

		if (is_new ? !tasks_in(f->word) : f->key == key)
			return index;
	}
	return NO_FRAGMENT;
}

/* A fragment that is known: its place, where a task more has been counted. */
verified_alone s32 fragment_join(u64 key)
{
	s32 index = fragment_find(key, false);

	if (index < 0)
		return NO_FRAGMENT;
	tasks_count(fragment_at(index), 1);
	if (fragment_at(index)->key == key)
		return index;
	/* Its place was taken in this very moment. */
	tasks_count(fragment_at(index), -1);
	return NO_FRAGMENT;
}

/* A fragment that is new, with its home and one task. */
verified_alone s32 fragment_make(struct task_struct *p __arg_trusted, u64 key, s32 cpu)
{
	struct fragment *f;
	u64 word;
	s32 index;

	if (__sync_val_compare_and_swap(&fragment_is_made, 0, 1))
		return NO_FRAGMENT;
	index = fragment_join(key);
	if (index >= 0)
		goto out;
	index = fragment_find(key, true);
	if (index < 0) {
		fragments_refused++;
		goto out;
	}
	f = fragment_at(index);
	word = f->word;
	cpu = least_loaded(p, cpu);
	if (tasks_in(word) ||
	    __sync_val_compare_and_swap(&f->word, word, ONE_TASK | (u64)cpu) != word) {
		index = NO_FRAGMENT;
		goto out;
	}
	fragments_are_used = true;
	f->key = key;
	f->uneven_from = f->uneven_until = 0;
	__sync_fetch_and_add(&cpu_ctx(cpu)->declared, 1);
out:
	__sync_lock_test_and_set(&fragment_is_made, 0);
	return index;
}

/* ---- What a task declares ---- */

static __always_inline void fragment_leave(struct hearth_task *tc)
{
	if (is_of_fragment(tc))
		tasks_count(fragment_at(tc->fragment), -1);
	tc->fragment = NO_FRAGMENT;
	tc->declared = 0;
}

/* A task declares another number. */
verified_alone int fragment_enter(struct task_struct *p __arg_trusted,
				  struct hearth_task *tc __arg_nonnull, u64 number)
{
	u64 key = key_of(p, number);

	fragment_leave(tc);
	if (!number)
		return 0;
	tc->fragment = fragment_join(key);
	if (tc->fragment < 0)
		tc->fragment = fragment_make(p, key, scx_bpf_task_cpu(p));
	if (is_of_fragment(tc))
		tc->declared = number;
	return 0;
}

/* Of the task that runs on this CPU: what it declares now. */
static __always_inline void fragment_follow(struct task_struct *p, struct hearth_task *tc)
{
	u64 number;

	if (!policy.fragment_ns || !declares(p, tc))
		return;
	number = declared_number(p, tc);
	if (number != tc->declared)
		fragment_enter(p, tc, number);
}

/* ---- Where it runs ---- */

/* Its home, if it may run there and no plan says where; else NO_CPU. Each CPU of the home's cache
 * is as good, so it stays where it ran last. */
static __always_inline s32 fragment_cpu(struct task_struct *p, struct hearth_task *tc)
{
	s32 home;

	if (!is_of_fragment(tc) || tc->home >= 0)
		return NO_CPU;
	home = home_of(tc);
	if (!is_kept_whole(tc) && tc->last_cpu >= 0 && domain_of(tc->last_cpu) == domain_of(home))
		home = tc->last_cpu;
	return bpf_cpumask_test_cpu(home, p->cpus_ptr) ? home : NO_CPU;
}

/* Where a task's data is: at its fragment's home, or where it ran last. */
static __always_inline s32 data_cpu(struct task_struct *p, struct hearth_task *tc)
{
	s32 home = fragment_cpu(p, tc);

	return home >= 0 ? home : tc->last_cpu;
}

/* A task goes to a CPU, where it will run. */
static __always_inline void fragment_run(struct task_struct *p, struct hearth_task *tc)
{
	if (tc->runs_in >= 0 || fragment_cpu(p, tc) < 0)
		return;
	tc->runs_in = tc->fragment;
	__sync_fetch_and_add(&fragment_at(tc->fragment)->word, ONE_RUNS);
}

/* It has run, or will not. */
static __always_inline void fragment_ran(struct hearth_task *tc)
{
	if (tc->runs_in < 0)
		return;
	__sync_fetch_and_add(&fragment_at(tc->runs_in)->word, -ONE_RUNS);
	tc->runs_in = NO_FRAGMENT;
}

/* A task stops, or waits again: what it has declared is where it will wait. */
static __always_inline void fragment_stop(struct task_struct *p, struct hearth_task *tc)
{
	fragment_ran(tc);
	fragment_follow(p, tc);
}

/* Gives a fragment another home, unless more of its tasks run than so many. */
verified_alone int fragment_move(s32 index, s32 cpu, u32 most_run)
{
	struct fragment *f = fragment_at(index);
	u64 word = f->word;

	if (runs_in(word) > most_run || home_in(word) == cpu ||
	    __sync_val_compare_and_swap(&f->word, word, (word & ~(ONE_RUNS - 1)) | (u64)cpu) !=
		    word)
		return false;
	__sync_fetch_and_add(&cpu_ctx(home_in(word))->declared, -(s64)tasks_in(word));
	__sync_fetch_and_add(&cpu_ctx(cpu)->declared, (s64)tasks_in(word));
	return true;
}

#endif
