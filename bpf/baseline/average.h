/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How much of the time something was the case lately (kernel/sched/pelt.c): a geometric average
 * with a half-life of 32 ms.
 *
 *   average = average * 2^(-t / 32 ms) + value * (1 - 2^(-t / 32 ms))
 *
 *             of a task                         of a run queue
 *   load      its weight while it is on one     the weights on it
 *   runnable  1024 while it is runnable         1024 for each that is
 *   util      1024 while it runs                1024 while one runs
 *
 * The kernel sums periods of 1024 us and scales by what the sum can be; here the average is exact
 * at any time, but for rounding. What is kept is the average times 2^SHIFT.
 */
#ifndef HEARTH_BASELINE_AVERAGE_H
#define HEARTH_BASELINE_AVERAGE_H

#define SHIFT 20
#define PERIOD_NS (1ull << 20)
/* 2^(-1/32), times 2^32. */
#define ONE_PERIOD 4202935003ull

static u64 times(u64 value, u64 factor)
{
	return (unsigned __int128)value * factor >> 32;
}

/* 2^(-ns / 32 periods), times 2^32; within a period on the straight line. */
static u64 decay(u64 ns)
{
	u64 periods = ns / PERIOD_NS, rest = ns % PERIOD_NS;
	u64 factor = 1ull << 32, i;

	if (periods >= 32 * 32)
		return 0;
	for (i = 0; i < periods % 32; i++)
		factor = times(factor, ONE_PERIOD);
	factor -= times(factor, (1ull << 32) - ONE_PERIOD) * rest / PERIOD_NS;
	return factor >> periods / 32;
}

static u64 average_of(u64 average, u64 value, u64 factor)
{
	return times(average, factor) + times(value << SHIFT, (1ull << 32) - factor);
}

/* Up to now these were the case. */
static void average_update(struct average *avg, u64 now, u64 load, u64 runnable, u64 util)
{
	u64 factor;

	if (now <= avg->at_ns)
		return;
	factor = decay(now - avg->at_ns);
	avg->at_ns = now;
	avg->load = average_of(avg->load, load, factor);
	avg->runnable = average_of(avg->runnable, runnable, factor);
	avg->util = average_of(avg->util, util, factor);
}

static u64 less(u64 one, u64 other)
{
	return one > other ? one - other : 0;
}

/* attach_entity_load_avg, detach_entity_load_avg */
static void average_attach(struct run_queue *rq, const struct entity *se)
{
	rq->avg.load += se->avg.load;
	rq->avg.runnable += se->avg.runnable;
	rq->avg.util += se->avg.util;
}

static void average_detach(struct run_queue *rq, const struct entity *se)
{
	rq->avg.load = less(rq->avg.load, se->avg.load);
	rq->avg.runnable = less(rq->avg.runnable, se->avg.runnable);
	rq->avg.util = less(rq->avg.util, se->avg.util);
}

static void entity_average(struct entity *se, u64 now)
{
	bool runs = se->cpu >= 0 && rqs[se->cpu].curr == se;

	average_update(&se->avg, now, se->on_rq ? se->weight : 0,
		       se->on_rq && !se->delayed ? ONE : 0, runs ? ONE : 0);
}

static void rq_average(struct run_queue *rq, u64 now)
{
	average_update(&rq->avg, now, rq->weight, nr_runnable(rq) * ONE, rq->curr ? ONE : 0);
}

/* update_load_avg, before what the averages are of changes. */
static void update_averages(struct run_queue *rq, struct entity *se, u64 now)
{
	rq_average(rq, now);
	entity_average(se, now);
}

/* init_entity_runnable_average, post_init_entity_util_avg: a new task counts as busy, and as
 * needing half of what its CPU has left. */
static void average_begin(struct run_queue *rq, struct entity *se, u64 now)
{
	u64 half = less(ONE << SHIFT, rq->avg.util) / 2;
	u64 util = half;

	if (rq->avg.util)
		util = rq->avg.util / ((rq->avg.load >> SHIFT) + 1) * se->weight;
	se->avg.at_ns = now;
	se->avg.load = se->weight << SHIFT;
	se->avg.util = util < half ? util : half;
	se->avg.runnable = se->avg.util;
}

/* cpu_load, task_h_load, cpu_runnable, cpu_util */
static u64 load_of(const struct average *avg)
{
	return avg->load >> SHIFT;
}

static u64 runnable_of(const struct average *avg)
{
	return avg->runnable >> SHIFT;
}

static u64 util_of(const struct average *avg)
{
	u64 util = avg->util >> SHIFT;

	return util < ONE ? util : ONE;
}

#endif
