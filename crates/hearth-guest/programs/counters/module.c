// SPDX-License-Identifier: GPL-2.0-only
/*
 * A unit of counters for the guest's kernel, in the place of the one that CPUs under emulation
 * lack: cycles, instructions and misses of the last level, as the plugin of `hearth emulate` counts
 * them. To the kernel it is a CPU's own unit (kernel/events/core.c), so that whoever opens
 * PERF_TYPE_HARDWARE reads it: system call, BPF helper, perf.
 *
 *   perf_event_open --> event_init   which counter, or that there is none
 *   a task or CPU   --> start, stop  from when on, and up to when
 *   somebody asks   --> read
 *
 * Each of these asks the plugin what this CPU's counter has, and adds to the event what came since.
 *
 * This is a kernel module, and knows nothing of the kernel that it will be in: whoever loads it
 * (region/counters.c) fills in where members of the kernel's structures are. There is no interrupt
 * at a count, so nothing can be sampled by it.
 */
#include "layout.h"
#include "../region/region.h"

#include <linux/perf_event.h>
#include <stddef.h>

#define ENOENT 2
#define EOPNOTSUPP 95

/* include/linux/perf_event.h of the kernel. */
#define PERF_PMU_CAP_NO_INTERRUPT 1
#define PERF_EF_START 1

struct perf_event;
struct pmu;

extern int perf_pmu_register(struct pmu *pmu, const char *name, int type);

struct counters_layout layout __attribute__((section(LAYOUT_SECTION)));

static _Alignas(64) char pmu[COUNTERS_MOST_BYTES];

static void *member(void *structure, uint32_t offset)
{
	return (char *)structure + offset;
}

static const struct perf_event_attr *attributes(struct perf_event *event)
{
	return member(event, layout.event_attr);
}

/* What the CPU's counter has that an event is for. */
static uint64_t counter(struct perf_event *event)
{
	struct counters now = {};

	call(CALL_COUNTERS, (uint64_t)&now, sizeof(now));
	switch (attributes(event)->config) {
	case PERF_COUNT_HW_CPU_CYCLES:
		return now.cycles;
	case PERF_COUNT_HW_INSTRUCTIONS:
		return now.instructions;
	default:
		return now.misses;
	}
}

/* The word that the kernel keeps for units has what the counter had when it was last looked at. */
static uint64_t *seen(struct perf_event *event)
{
	return member(event, layout.event_private);
}

static void unit_read(struct perf_event *event)
{
	uint64_t *count = member(event, layout.event_count), now = counter(event);

	*count += now - *seen(event);
	*seen(event) = now;
}

static void unit_start(struct perf_event *event, int flags)
{
	(void)flags;
	*seen(event) = counter(event);
}

static void unit_stop(struct perf_event *event, int flags)
{
	(void)flags;
	unit_read(event);
}

static int unit_add(struct perf_event *event, int flags)
{
	if (flags & PERF_EF_START)
		unit_start(event, flags);
	return 0;
}

static int unit_init(struct perf_event *event)
{
	const struct perf_event_attr *wanted = attributes(event);

	if (wanted->type != PERF_TYPE_HARDWARE)
		return -ENOENT;
	if (wanted->exclude_user || wanted->exclude_kernel || wanted->exclude_idle)
		return -EOPNOTSUPP;
	switch (wanted->config) {
	case PERF_COUNT_HW_CPU_CYCLES:
	case PERF_COUNT_HW_INSTRUCTIONS:
	case PERF_COUNT_HW_CACHE_MISSES:
		return 0;
	default:
		return -ENOENT;
	}
}

static void set(uint32_t offset, void *function)
{
	*(void **)member(pmu, offset) = function;
}

static int counters_init(void)
{
	*(int *)member(pmu, layout.pmu_capabilities) = PERF_PMU_CAP_NO_INTERRUPT;
	set(layout.pmu_event_init, unit_init);
	set(layout.pmu_add, unit_add);
	set(layout.pmu_del, unit_stop);
	set(layout.pmu_start, unit_start);
	set(layout.pmu_stop, unit_stop);
	set(layout.pmu_read, unit_read);
	return perf_pmu_register((struct pmu *)pmu, "cpu", PERF_TYPE_RAW);
}

/* `struct module`, in which the pointer is moved to where the kernel looks for it. */
struct {
	int (*init)(void);
	char rest[COUNTERS_MOST_BYTES - sizeof(void *)];
} this_module __attribute__((section(MODULE_SECTION), used, aligned(64))) = {.init = counters_init};

static const char license[] __attribute__((section(".modinfo"), used)) = "license=GPL";
static const char name[] __attribute__((section(".modinfo"), used)) = "name=" COUNTERS_NAME;
