/* SPDX-License-Identifier: GPL-2.0-only */
/* What the unit of counters has to know of the kernel that it is in: filled in by who loads it. */
#ifndef HEARTH_GUEST_COUNTERS_LAYOUT_H
#define HEARTH_GUEST_COUNTERS_LAYOUT_H

#include <stdint.h>

#define COUNTERS_NAME "hearth_counters"
#define LAYOUT_SECTION ".hearth.layout"
#define MODULE_SECTION ".gnu.linkonce.this_module"
/* Room for `struct module` and for `struct pmu`. */
#define COUNTERS_MOST_BYTES 4096

/* Where members are, in bytes. */
struct counters_layout {
	uint32_t pmu_capabilities;
	uint32_t pmu_event_init;
	uint32_t pmu_add;
	uint32_t pmu_del;
	uint32_t pmu_start;
	uint32_t pmu_stop;
	uint32_t pmu_read;
	uint32_t event_attr;
	uint32_t event_count;
	uint32_t event_private;
};

#endif
