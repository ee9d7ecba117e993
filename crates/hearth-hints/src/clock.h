/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef HEARTH_CLOCK_H
#define HEARTH_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline int64_t hearth_clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

#endif
