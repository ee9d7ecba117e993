// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Whether this process is better off with moves or without. What an enter takes elsewhere while all
 * others keep to their homes does not tell what it would take if nobody did. So both ways are
 *tried, for some periods each, and what counts is the CPU time of an enter, with all moves:
 *
 *	settle (1 period)   caches come to what the way makes of them
 *	measure (2 periods) and more, until there were enters enough
 *	keep (20 periods)   the better way; then the other is tried again. Each time that the same
 *way is better it is kept for twice as long, up to half a minute.
 */
#include "trial.h"
#include <stdatomic.h>

#define MEASURED 2
#define ENOUGH_ENTERS 50
#define KEPT 20
#define MOST_KEPT 320

enum steps { SETTLE, MEASURE, KEEP };

static _Atomic int moves = 1;
static _Atomic uint64_t cost_ns, enters; /* of this period */

static enum steps step;
static uint32_t periods; /* in this step */
static uint32_t keep = KEPT;
static int better = 1;
static uint64_t sum_ns, sum_enters; /* of those that are measured */
static uint64_t enter_ns[2];	    /* without and with moves; 0: not known */

int hearth_trial_moves(void)
{
	return atomic_load_explicit(&moves, memory_order_relaxed);
}

void hearth_trial_took(uint64_t cost, uint64_t count)
{
	atomic_fetch_add_explicit(&cost_ns, cost, memory_order_relaxed);
	atomic_fetch_add_explicit(&enters, count, memory_order_relaxed);
}

void hearth_trial_moved(uint64_t cost)
{
	atomic_fetch_add_explicit(&cost_ns, cost, memory_order_relaxed);
}

static void go_on(enum steps next, int with_moves)
{
	step = next;
	periods = 0;
	sum_ns = sum_enters = 0;
	atomic_store_explicit(&moves, with_moves, memory_order_relaxed);
}

static void decide(int now)
{
	if (!enter_ns[!now]) {
		go_on(SETTLE, !now);
		return;
	}
	if (better == (enter_ns[1] <= enter_ns[0])) {
		keep = 2 * keep < MOST_KEPT ? 2 * keep : MOST_KEPT;
	} else {
		better = !better;
		keep = KEPT;
	}
	go_on(KEEP, better);
}

void hearth_trial_period(void)
{
	uint64_t cost = atomic_exchange(&cost_ns, 0), count = atomic_exchange(&enters, 0);
	int now = hearth_trial_moves();

	periods++;
	if (step == SETTLE) {
		go_on(MEASURE, now);
		return;
	}
	/* Of those that are kept the last ones are compared with what is tried next. */
	if (step == KEEP && periods + MEASURED <= keep)
		return;
	sum_ns += cost;
	sum_enters += count;
	if (sum_enters < ENOUGH_ENTERS || periods < (step == KEEP ? keep : MEASURED))
		return;
	enter_ns[now] = sum_ns / sum_enters + 1;
	if (step == KEEP)
		go_on(SETTLE, !now);
	else
		decide(now);
}
