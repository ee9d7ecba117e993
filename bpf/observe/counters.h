/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Hardware counters, and how often they are read.
 *
 * Reading a counter costs 30 ns where the CPU does it, and more than a microsecond where a
 * hypervisor does. So intervals are drawn by lot: each is counted with odds such that reading costs
 * no more than budget_ppm of a CPU's time. The odds follow, every few milliseconds, from how many
 * intervals began and from what a read was seen to cost. Within a period all intervals have the
 * same odds, so that the counted ones stand for all.
 */
#ifndef HEARTH_OBSERVE_COUNTERS_H
#define HEARTH_OBSERVE_COUNTERS_H

#define COUNTERS_EVENTS(name)                                \
	struct {                                             \
		__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY); \
		__uint(max_entries, OBSERVE_MAX_CPUS);       \
		__type(key, u32);                            \
		__type(value, u32);                          \
	} name SEC(".maps")

COUNTERS_EVENTS(cycles);
COUNTERS_EVENTS(instructions);
COUNTERS_EVENTS(misses);

/* Whether all of them are there; the verifier drops what needs them where they are not. */
const volatile bool has_counters;
/* Share of a CPU's time that reading counters may cost, in millionths. */
const volatile u32 budget_ppm;

/* Time between two samples. */
const volatile u64 sample_ns = 2000000;

#define ODDS_PERIOD_NS 8000000ULL
#define ODDS_ALWAYS (1ULL << 32)

struct reading {
	u64 ns;
	u64 instructions;
	u64 misses;
	u64 cycles;
};

/* A lot for each interval, on one CPU. */
struct lots {
	u64 since;
	u64 begun;
	u64 odds;
	/* What one reading of all counters costs, smoothed. */
	u64 cost_ns;
};

/* False if the kernel could not read one: it answers with a negative error. */
static __always_inline bool read_counters(struct reading *reading, u64 now)
{
	reading->ns = now;
	reading->cycles = bpf_perf_event_read(&cycles, BPF_F_CURRENT_CPU);
	reading->instructions = bpf_perf_event_read(&instructions, BPF_F_CURRENT_CPU);
	reading->misses = bpf_perf_event_read(&misses, BPF_F_CURRENT_CPU);
	return (s64)(reading->cycles | reading->instructions | reading->misses) >= 0;
}

/* Sets the odds once in a period. Counting all intervals would take two readings for each, and one
 * for each sample. */
static __always_inline void lots_renew(struct lots *lots, u64 now)
{
	u64 elapsed = now - lots->since, allowed, wanted;

	if (elapsed < ODDS_PERIOD_NS)
		return;
	if (elapsed > 16 * ODDS_PERIOD_NS)
		elapsed = 16 * ODDS_PERIOD_NS;
	/* Readings, in units of 2^-16 of a millionth. */
	allowed = (elapsed * budget_ppm / (lots->cost_ns | 1)) << 16;
	wanted = (2 * lots->begun + elapsed / sample_ns) * 1000000;
	lots->odds = (allowed / (wanted | 1)) << 16;
	if (lots->odds > ODDS_ALWAYS)
		lots->odds = ODDS_ALWAYS;
	lots->since = now;
	lots->begun = 0;
}

static __always_inline bool lots_draw(struct lots *lots, u64 now)
{
	if (!has_counters)
		return false;
	lots_renew(lots, now);
	lots->begun++;
	return bpf_get_prandom_u32() < lots->odds;
}

static __always_inline void lots_cost(struct lots *lots, u64 ns)
{
	lots->cost_ns = lots->cost_ns ? (7 * lots->cost_ns + ns) / 8 : ns;
}

#endif
