/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where a task goes that wakes up or begins: select_task_rq_fair.
 *
 *   wakes up  its last CPU or the waker's, whichever wake_affine prefers; or an idle CPU of the
 *             same cache, if either is busy (select_idle_sibling)
 *   begins    the idlest group of CPUs, from all of them down to one CPU
 *             (sched_balance_find_dst_cpu)
 */
#ifndef HEARTH_BASELINE_SELECT_H
#define HEARTH_BASELINE_SELECT_H

/* ---- A task that wakes up ---- */

/* record_wakee: how often who wakes others changes whom. */
static void wakee_note(struct entity *waker, s32 pid, u64 now)
{
	if (now > waker->wakee_decayed_ns + 1000 * MS) {
		waker->wakee_flips /= 2;
		waker->wakee_decayed_ns = now;
	}
	if (waker->last_wakee != pid) {
		waker->last_wakee = pid;
		waker->wakee_flips++;
	}
}

/* wake_wide: the waker wakes more tasks than a cache has CPUs, so it draws none to it. */
static bool is_wide(const struct entity *waker, const struct entity *se, s32 cpu)
{
	u32 factor = cpus_in(spans[LEVEL_LLC][cpu]);
	u32 most = waker->wakee_flips, least = se->wakee_flips;

	if (most < least) {
		most = se->wakee_flips;
		least = waker->wakee_flips;
	}
	return least >= factor && most >= least * factor;
}

/* wake_affine_idle */
static s32 affine_idle(s32 this_cpu, s32 prev_cpu, bool sync)
{
	if (is_idle_cpu(this_cpu) && share_cache(this_cpu, prev_cpu))
		return is_idle_cpu(prev_cpu) ? prev_cpu : this_cpu;
	if (sync && nr_running(&rqs[this_cpu]) - rqs[this_cpu].nr_delayed == 1)
		return this_cpu;
	return is_idle_cpu(prev_cpu) ? prev_cpu : NO_CPU;
}

/* wake_affine_weight: where there would be less load, with a bias for where it was. */
static bool is_lighter_here(const struct entity *se, s32 this_cpu, s32 prev_cpu, bool sync)
{
	struct run_queue *this = &rqs[this_cpu], *prev = &rqs[prev_cpu];
	u64 load = load_of(&se->avg), here = load_of(&this->avg);
	u64 there = less(load_of(&prev->avg), load);

	if (sync && this->curr) {
		u64 of_waker = load_of(&this->curr->avg);

		if (of_waker > here)
			return true;
		here -= of_waker;
	}
	here = (here + load) * 100 * capacity_of(prev);
	there = there * (100 + (IMBALANCE_PCT - 100) / 2) * capacity_of(this) + sync;
	return here < there;
}

static s32 affine(struct entity *se, s32 this_cpu, s32 prev_cpu, bool sync, u64 now)
{
	s32 cpu = affine_idle(this_cpu, prev_cpu, sync);

	if (cpu >= 0)
		return cpu;
	update_averages(&rqs[this_cpu], rqs[this_cpu].curr ?: se, now);
	update_averages(&rqs[prev_cpu], se, now);
	return is_lighter_here(se, this_cpu, prev_cpu, sync) ? this_cpu : prev_cpu;
}

/* select_idle_cpu: an idle CPU of the cache, from the next one on; the more of it is used, the
 * fewer are looked at (SIS_UTIL). */
static s32 idle_beside(struct task_struct *p, s32 target)
{
	struct span span = spans[LEVEL_LLC][target];
	u32 looks = rqs[order[span.first]].nr_idle_scan;
	u32 at = place_of[target], i;

	for (i = 0; i < cpus_in(span) && looks > 0; i++) {
		s32 cpu;

		at = at + 1 < span.end ? at + 1 : span.first;
		cpu = order[at];
		if (!may_run_on(p, cpu))
			continue;
		looks--;
		if (is_idle_cpu(cpu))
			return cpu;
	}
	return NO_CPU;
}

/* update_idle_cpu_scan: at a periodic balance of the cache, by the square of what is used of it. */
static void idle_scan_update(const struct group *all)
{
	u64 cpus = cpus_in(all->span), util = all->util / cpus;
	u64 used = util * util * IMBALANCE_PCT * IMBALANCE_PCT / (10000 * ONE);

	rqs[order[all->span.first]].nr_idle_scan = less(ONE, used) * cpus / ONE;
}

/* select_idle_sibling */
static s32 idle_sibling(struct task_struct *p, struct entity *se, s32 prev, s32 target)
{
	s32 recent = se->recent_cpu, cpu;

	if (is_idle_cpu(target))
		return target;
	if (prev != target && share_cache(prev, target) && is_idle_cpu(prev))
		return prev;
	se->recent_cpu = prev;
	if (recent >= 0 && recent != prev && recent != target && share_cache(recent, target) &&
	    is_idle_cpu(recent) && may_run_on(p, recent))
		return recent;
	cpu = idle_beside(p, target);
	return cpu >= 0 ? cpu : target;
}

/* ---- A task that begins ---- */

/* update_pick_idlest */
static bool is_idler(const struct group *one, const struct group *other)
{
	if (one->type != other->type)
		return one->type < other->type;
	if (one->type != HAS_SPARE)
		return one->avg_load < other->avg_load;
	if (one->idle_cpus != other->idle_cpus)
		return one->idle_cpus > other->idle_cpus;
	return one->util < other->util;
}

/* sched_balance_find_dst_group: whether another group is enough idler than the own. */
static bool is_worth_it(const struct group *local, const struct group *idlest,
			const struct domain *sd, s32 cpu)
{
	u64 imbalance = ONE * (IMBALANCE_PCT - 100) / 100;
	s64 more = (s64)idlest->idle_cpus - local->idle_cpus;

	if (local->type != idlest->type)
		return local->type > idlest->type;
	if (local->type == HAS_SPARE) {
		s64 distance = more < 0 ? -more : more;

		if (sd->level == LEVEL_ALL &&
		    !adjusted_imbalance(distance, local->nr_running + 1, cpu))
			return false;
		return more > 0;
	}
	if (sd->level == LEVEL_ALL && idlest->avg_load + imbalance >= local->avg_load)
		return false;
	if (idlest->avg_load >= local->avg_load + imbalance)
		return false;
	return idlest->avg_load + imbalance <= local->avg_load ||
	       100 * local->avg_load > IMBALANCE_PCT * idlest->avg_load;
}

static bool may_run_in(struct task_struct *p, struct span span)
{
	u32 place;

	for (place = span.first; place < span.end; place++)
		if (may_run_on(p, order[place]))
			return true;
	return false;
}

/* Whether the task should begin in another group than that of the CPU, and in which. */
static bool find_group(struct task_struct *p, const struct domain *sd, s32 cpu, u64 now,
		       struct span *found)
{
	struct span own = group_of(cpu, sd), at;
	struct group local = look_at(own, true, now), idlest = {.type = OVERLOADED + 1};

	for (at = group_after(own, sd); at.first != own.first; at = group_after(at, sd)) {
		struct group group;

		if (!may_run_in(p, at))
			continue;
		group = look_at(at, true, now);
		if (is_idler(&group, &idlest))
			idlest = group;
	}
	*found = idlest.span;
	if (idlest.type > OVERLOADED)
		return false;
	return !may_run_in(p, own) || is_worth_it(&local, &idlest, sd, cpu);
}

/* sched_balance_find_dst_group_cpu: that which has been idle for the shortest time, or has the
 * least load. */
static s32 idlest_cpu(struct task_struct *p, struct span span)
{
	s32 idlest = NO_CPU, least = NO_CPU;
	u32 place;

	for (place = span.first; place < span.end; place++) {
		s32 cpu = order[place];

		if (!may_run_on(p, cpu))
			continue;
		if (is_idle_cpu(cpu)) {
			if (idlest < 0 || rqs[cpu].idle_stamp > rqs[idlest].idle_stamp)
				idlest = cpu;
		} else if (least < 0 || load_of(&rqs[cpu].avg) < load_of(&rqs[least].avg)) {
			least = cpu;
		}
	}
	return idlest >= 0 ? idlest : least;
}

/* sched_balance_find_dst_cpu: from the widest level down. */
static s32 beginners_cpu(struct task_struct *p, s32 cpu, u64 now)
{
	u32 level = rqs[cpu].nr_domains;

	while (level-- > 0) {
		struct span group;

		if (level < rqs[cpu].nr_domains &&
		    find_group(p, &rqs[cpu].domains[level], cpu, now, &group))
			cpu = idlest_cpu(p, group);
	}
	return cpu;
}

/* ---- select_task_rq_fair ---- */

static s32 select_cpu(struct task_struct *p, struct entity *se, s32 this_cpu, s32 prev_cpu,
		      bool sync, u64 now)
{
	struct entity *waker = rqs[this_cpu].curr;
	s32 target = prev_cpu;

	if (se->is_new)
		return beginners_cpu(p, prev_cpu, now);
	if (waker)
		wakee_note(waker, p->pid, now);
	if (this_cpu != prev_cpu && may_run_on(p, this_cpu) &&
	    !(waker && is_wide(waker, se, this_cpu)))
		target = affine(se, this_cpu, prev_cpu, sync, now);
	return idle_sibling(p, se, prev_cpu, target);
}

#endif
