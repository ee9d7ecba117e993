/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * How many CPUs this process can get now: not those that it sees, but its share of them, given its
 * mask, its cgroups' quotas and weights, and what else runs. `hearth exec` or the Hearth daemon
 * says it; where neither runs, the number is that of mask and quota.
 *
 * A program of many threads asks at the begin of a parallel region, or follows:
 *
 *	int cpus = hearth_cpus();
 *	for (;;) {
 *		use_threads(cpus);
 *		cpus = hearth_cpus_wait(cpus, -1);
 *	}
 *
 * All functions may be called by any thread at any time, and never fail. A child of fork() is a
 * process of its own from its first call on. A signal handler may call hearth_cpus() once a thread
 * has called it before.
 */
#ifndef HEARTH_H
#define HEARTH_H

#ifdef __cplusplus
extern "C" {
#endif

/* CPUs that this process can get now, at least 1. Once begun, as cheap as two loads and a clock. */
int hearth_cpus(void);

/*
 * Waits until the number differs from `seen`, for `timeout_ms` at most (below 0: for ever), and
 * returns it.
 */
int hearth_cpus_wait(int seen, int timeout_ms);

/*
 * A descriptor that is readable when the number may have changed, or -1 if there is none; the same
 * at each call, and not to be closed. read() what it has, then ask hearth_cpus(). The end of
 * whoever says the number is no event: poll with a timeout of a second or two.
 */
int hearth_cpus_fd(void);

/*
 * How many CPUs this process would use at most; 0, as at the begin: as many as there are. What it
 * would not use goes to others. Returns 0, or -1 if nobody can be told.
 */
int hearth_want(int cpus);

#ifdef __cplusplus
}
#endif

#endif
