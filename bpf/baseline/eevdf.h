/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which task of a run queue runs next: of those that are eligible, the one with the earliest
 * virtual deadline.
 *
 *   eligible   its vruntime is the weighted mean of the queue's at most: it has had no more than
 *              its share
 *   deadline   vruntime when its request began, and base_slice over its weight
 *   lag        how far it is behind the mean; kept over a sleep, within bounds
 *
 * Features of kernel/sched/features.h as Linux 7 has them: PLACE_LAG, PLACE_DEADLINE_INITIAL,
 * PLACE_REL_DEADLINE, RUN_TO_PARITY, DELAY_DEQUEUE and DELAY_ZERO. All tasks have the same slice,
 * so PREEMPT_SHORT never applies.
 */
#ifndef HEARTH_BASELINE_EEVDF_H
#define HEARTH_BASELINE_EEVDF_H

/* sysctl_sched_base_slice: 0.70 ms (the policy's quantum) times 1 + ilog2 of the CPUs, 8 at most
 * (get_update_sysctl_factor). */
static u64 base_slice;

static void base_slice_make(void)
{
	u32 cpus = topology.nr_online < 8 ? topology.nr_online : 8;

	base_slice = policy.quantum_ns;
	for (; cpus > 1; cpus /= 2)
		base_slice += policy.quantum_ns;
}

/* calc_delta_fair */
static u64 virtual_ns(u64 ns, const struct entity *se)
{
	return ns * ONE / se->weight;
}

static s64 since(u64 vruntime, u64 zero)
{
	return (s64)(vruntime - zero);
}

/* The sum of weight * (vruntime - zero), and of the weights. */
static s64 weighted_sum(const struct run_queue *rq, s64 *weights)
{
	const struct entity *se;
	s64 sum = 0;

	*weights = 0;
	for (se = rq->newest; se; se = se->older) {
		sum += since(se->vruntime, rq->zero) * (s64)se->weight;
		*weights += se->weight;
	}
	if ((se = rq->curr)) {
		sum += since(se->vruntime, rq->zero) * (s64)se->weight;
		*weights += se->weight;
	}
	return sum;
}

/* avg_vruntime: rounded down, so that the one that is least behind is eligible. */
static u64 mean_vruntime(struct run_queue *rq)
{
	s64 weights, sum = weighted_sum(rq, &weights);

	if (!weights)
		return rq->zero;
	if (sum < 0)
		sum -= weights - 1;
	rq->zero += sum / weights;
	return rq->zero;
}

/* entity_eligible */
static bool is_eligible(const struct run_queue *rq, const struct entity *se)
{
	s64 weights, sum = weighted_sum(rq, &weights);

	return sum >= since(se->vruntime, rq->zero) * weights;
}

/* update_curr and update_deadline: whether its request is served. */
static bool curr_update(struct run_queue *rq, u64 now)
{
	struct entity *se = rq->curr;
	bool is_served;

	if (!se || now <= se->exec_start)
		return false;
	update_averages(rq, se, now);
	se->vruntime += virtual_ns(now - se->exec_start, se);
	se->exec_start = now;
	mean_vruntime(rq);
	is_served = since(se->vruntime, se->deadline) >= 0;
	if (is_served)
		se->deadline = se->vruntime + virtual_ns(base_slice, se);
	return is_served;
}

/* protect_slice, set by set_protect_slice when it began to run. */
static bool is_protected(const struct entity *se)
{
	return since(se->vruntime, se->protected) < 0;
}

/* pick_eevdf: the task that runs counts, unless it is to stop. `protects`: once picked it stays,
 * while it is eligible, until it was served (RUN_TO_PARITY). */
static struct entity *pick(struct run_queue *rq, struct entity *curr, bool protects)
{
	s64 weights, sum = weighted_sum(rq, &weights);
	struct entity *best = NULL, *se;

	if (curr && sum >= since(curr->vruntime, rq->zero) * weights)
		best = curr;
	if (best && (rq->nr_queued == 1 || (protects && is_protected(curr))))
		return curr;
	/* Of equal deadlines that which has waited longest. */
	for (se = rq->oldest; se; se = se->newer)
		if (sum >= since(se->vruntime, rq->zero) * weights &&
		    (!best || since(se->deadline, best->deadline) < 0))
			best = se;
	return best ?: curr ?: rq->oldest;
}

/* entity_lag, update_entity_lag: bounded by a slice and a tick. Of a delayed task it neither gets
 * worse while it sleeps, nor better than none (DELAY_ZERO). Whether it is another than where the
 * task stands. */
static bool lag_update(struct run_queue *rq, struct entity *se)
{
	s64 limit = virtual_ns(base_slice + policy.tick_ns, se);
	s64 exact = since(mean_vruntime(rq), se->vruntime), lag = exact;

	lag = lag > limit ? limit : lag < -limit ? -limit : lag;
	if (se->delayed) {
		lag = lag < se->lag ? se->lag : lag;
		lag = lag > 0 ? 0 : lag;
	}
	se->lag = lag;
	return lag != exact;
}

/* place_entity: as far behind the mean as it was when it left. Its own coming moves the mean
 * towards it, for which the lag is made larger. */
static void entity_place(struct run_queue *rq, struct entity *se, bool is_initial)
{
	u64 request = virtual_ns(base_slice, se);
	u64 mean = mean_vruntime(rq);
	s64 lag = 0;

	if (rq->nr_queued && rq->weight)
		lag = (s64)((__int128)se->lag * (s64)(rq->weight + se->weight) / (s64)rq->weight);
	se->vruntime = mean - lag;
	if (se->has_distance) {
		se->deadline += se->vruntime;
		se->has_distance = false;
		return;
	}
	se->deadline = se->vruntime + (is_initial ? request / 2 : request);
}

static void entity_count(struct run_queue *rq, struct entity *se, bool comes)
{
	se->on_rq = comes;
	rq->nr_queued += comes ? 1 : -1;
	rq->weight += comes ? se->weight : -se->weight;
}

/* enqueue_entity */
static void entity_enqueue(struct run_queue *rq, struct entity *se, u64 now)
{
	curr_update(rq, now);
	update_averages(rq, se, now);
	entity_place(rq, se, se->is_new);
	se->is_new = false;
	entity_count(rq, se, true);
	list_add(rq, se);
}

static void undelay(struct run_queue *rq, struct entity *se)
{
	rq->nr_delayed -= se->delayed;
	se->delayed = false;
}

/* dequeue_entity: leaves its queue. It keeps its lag, and if it goes to another queue
 * (`moves`) the rest of its request. */
static void entity_dequeue(struct run_queue *rq, struct entity *se, bool moves, u64 now)
{
	curr_update(rq, now);
	update_averages(rq, se, now);
	lag_update(rq, se);
	undelay(rq, se);
	if (moves) {
		se->deadline -= se->vruntime;
		se->has_distance = true;
	}
	list_remove(rq, se);
	if (rq->curr == se)
		rq->curr = NULL;
	entity_count(rq, se, false);
}

/* dequeue_entity with DELAY_DEQUEUE: a task that sleeps and has had more than its share stays and
 * competes, until it is picked or eligible. Whether it does. */
static bool entity_delay(struct run_queue *rq, struct entity *se, u64 now)
{
	curr_update(rq, now);
	if (is_eligible(rq, se))
		return false;
	update_averages(rq, se, now);
	lag_update(rq, se);
	rq->curr = NULL;
	list_add(rq, se);
	se->delayed = true;
	rq->nr_delayed++;
	return true;
}

/* requeue_delayed_entity: it wakes up, and was still there. */
static void entity_requeue(struct run_queue *rq, struct entity *se, u64 now)
{
	curr_update(rq, now);
	update_averages(rq, se, now);
	if (lag_update(rq, se)) {
		list_remove(rq, se);
		entity_count(rq, se, false);
		entity_place(rq, se, false);
		entity_count(rq, se, true);
		list_add(rq, se);
	}
	undelay(rq, se);
}

/* pick_next_entity: one that sleeps by now leaves when it is picked. */
static struct entity *pick_runnable(struct run_queue *rq, struct entity *curr, u64 now)
{
	struct entity *se;

	while ((se = pick(rq, curr, true)) && se->delayed)
		entity_dequeue(rq, se, false, now);
	return se;
}

/* Its averages go with it (migrate_task_rq_fair, set_task_rq). It is not hot any more. */
static void entity_moves(struct entity *se, s32 cpu, u64 now)
{
	if (se->cpu == cpu)
		return;
	if (se->cpu >= 0) {
		update_averages(&rqs[se->cpu], se, now);
		average_detach(&rqs[se->cpu], se);
	}
	rq_average(&rqs[cpu], now);
	if (se->is_new)
		average_begin(&rqs[cpu], se, now);
	se->cpu = cpu;
	se->exec_start = 0;
	average_attach(&rqs[cpu], se);
}

/* reweight_entity: its lag and what is left of its request stay what they are in real time. */
static void entity_weigh(struct entity *se, u64 weight, u64 now)
{
	struct run_queue *rq = se->on_rq ? &rqs[se->cpu] : NULL;
	u64 old = se->weight;

	if (rq) {
		curr_update(rq, now);
		update_averages(rq, se, now);
		lag_update(rq, se);
		rq->weight += weight - old;
	} else {
		entity_average(se, now);
	}
	if (se->cpu >= 0) {
		u64 load = (unsigned __int128)se->avg.load * weight / old;

		rqs[se->cpu].avg.load = less(rqs[se->cpu].avg.load + load, se->avg.load);
		se->avg.load = load;
	}
	se->lag = se->lag * (s64)old / (s64)weight;
	if (rq) {
		u64 left = (s64)(se->deadline - se->vruntime) * (s64)old / (s64)weight;
		u64 mean = rq->zero;

		se->weight = weight;
		se->vruntime = mean - se->lag;
		se->deadline = se->vruntime + left;
	}
	se->weight = weight;
}

#endif
