/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * False waits: waits that some kernels count, though they did not happen.
 *
 * The kernel's watchdog goes by p->scx.runnable_at, the time since which a task waits. A task that
 * begins to run has that time renewed when it next comes to wait, and so has one that is new to the
 * scheduler. A task that leaves for another class while it waits has not, on kernels such as 6.16
 * and 7.0: it comes back, minutes later, with the old time. If it then waits for a moment while the
 * watchdog looks, the kernel ends the scheduler for a wait of minutes.
 *
 *   time  ----|------------|-----------|---------|---------->
 *        runnable_at   leaves the   comes to    the watchdog looks, and counts
 *        (it waits)    class        wait        from runnable_at
 *
 * Nothing can renew the time: BPF may write a task's slice and vtime, but not runnable_at or the
 * flag that has the kernel renew it, and no function of the kernel does. To run does. By its time
 * such a task is late, and goes first at the next tick (waits.h), so that the watchdog, which looks
 * twice in its time, has little to find. Where it cannot run, for a higher class holds its only
 * CPU, it is found all the same. So it is noted when it really came to wait, and the host tells the
 * truth (ending.rs). The last ones are kept apart from their tasks, which may be gone when the
 * kernel has let go.
 */
#ifndef HEARTH_FALSE_WAITS_H
#define HEARTH_FALSE_WAITS_H

#include "state.h"

struct {
	u64 count;
	struct hearth_false_wait last[HEARTH_FALSE_WAITS];
} false_waits;

/* A task comes to wait. Of one that came from another class it is the first time, and the kernel
 * has to count from now; if not, that is noted. */
static __always_inline void false_wait_note(struct task_struct *p, struct hearth_task *tc)
{
	struct hearth_false_wait *noted;
	u64 now, index;

	if (!tc->has_joined)
		return;
	tc->has_joined = false;
	now = bpf_jiffies64();
	if (!is_before(p->scx.runnable_at, now))
		return;
	index = __sync_fetch_and_add(&false_waits.count, 1) & (HEARTH_FALSE_WAITS - 1);
	noted = &false_waits.last[index];
	noted->pid = p->pid;
	noted->came_at = now;
}

#endif
