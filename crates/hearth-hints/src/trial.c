// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Whether this process is better off with moves or without. What an enter takes elsewhere while all
 * others keep to their homes does not tell what it would take if nobody did; and a move costs more
 * than can be seen from within. So both ways are tried, for some periods each:
 *
 *	settle (1 period)   caches come to what the way makes of them
 *	measure (2 periods) and more, until there were enters enough
 *	keep (20 periods)   the better way; then the other is tried again
 *
 * Each time that the same way is better, it is kept for twice as long, up to half a minute.
 *
 * Two things count: how many enters there are in a second, twice, since that is what is wanted of a
 * program that does what it can; and the CPU time of an enter with all moves, which is what differs
 * where a program waits for what comes from outside.
 */
#include "trial.h"
#include <stdatomic.h>
#include <stdio.h>

#define MEASURED 2
#define ENOUGH_ENTERS 50
#define KEPT 20
#define MOST_KEPT 320

enum steps { SETTLE, MEASURE, KEEP };

static _Atomic int moves = 1;
static _Atomic uint64_t cost_ns, sampled; /* enters, of this period */

static enum steps step;
static uint32_t periods; /* in this step */
static uint32_t keep = KEPT;
static int better = 1;

struct sums {
	uint64_t cost_ns, sampled; /* CPU time of so many enters */
	uint64_t enters, time_ns;  /* all, in so much time */
};

static struct sums sums;    /* of the periods that are measured */
static struct sums last[2]; /* without moves and with */

int hearth_trial_moves(void)
{
	return atomic_load_explicit(&moves, memory_order_relaxed);
}

void hearth_trial_took(uint64_t cost, uint64_t count)
{
	atomic_fetch_add_explicit(&cost_ns, cost, memory_order_relaxed);
	atomic_fetch_add_explicit(&sampled, count, memory_order_relaxed);
}

void hearth_trial_moved(uint64_t cost)
{
	atomic_fetch_add_explicit(&cost_ns, cost, memory_order_relaxed);
}

static void go_on(enum steps next, int with_moves)
{
	step = next;
	periods = 0;
	sums = (struct sums){0};
	atomic_store_explicit(&moves, with_moves, memory_order_relaxed);
}

static double per_second(const struct sums *of)
{
	return (double)of->enters * 1e9 / (double)(of->time_ns + 1);
}

static double enter_ns(const struct sums *of)
{
	return (double)of->cost_ns / (double)(of->sampled + 1);
}

static int moves_are_better(void)
{
	double rate = per_second(&last[1]) / per_second(&last[0]);

	return rate * rate * enter_ns(&last[0]) >= enter_ns(&last[1]);
}

static void decide(int now)
{
	if (!last[!now].sampled) {
		go_on(SETTLE, !now);
		return;
	}
	if (better == moves_are_better()) {
		keep = 2 * keep < MOST_KEPT ? 2 * keep : MOST_KEPT;
	} else {
		better = !better;
		keep = KEPT;
	}
	go_on(KEEP, better);
}

void hearth_trial_period(uint64_t all_enters, uint64_t now_ns)
{
	static uint64_t enters_before, before_ns;
	uint64_t cost = atomic_exchange(&cost_ns, 0), count = atomic_exchange(&sampled, 0);
	uint64_t enters = all_enters - enters_before, time_ns = now_ns - before_ns;
	int now = hearth_trial_moves();

	enters_before = all_enters;
	before_ns = now_ns;
	if (!enters)
		return;
	periods++;
	if (step == SETTLE) {
		go_on(MEASURE, now);
		return;
	}
	/* Of those that are kept the last ones are compared with what is tried next. */
	if (step == KEEP && periods + MEASURED <= keep)
		return;
	sums.cost_ns += cost;
	sums.sampled += count;
	sums.enters += enters;
	sums.time_ns += time_ns;
	if (sums.sampled < ENOUGH_ENTERS || periods < (step == KEEP ? keep : MEASURED))
		return;
	last[now] = sums;
	if (step == KEEP)
		go_on(SETTLE, !now);
	else
		decide(now);
}

void hearth_trial_explain(void)
{
	int with;

	for (with = 1; with >= 0 && last[0].sampled && last[1].sampled; with--)
		fprintf(stderr, "hearth: %s moves %.0f enters a second, of %.0f ns of CPU time\n",
			with ? "with" : "without", per_second(&last[with]), enter_ns(&last[with]));
}
