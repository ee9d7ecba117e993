/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Whether this process is better off with moves or without: see trial.c. */
#ifndef HEARTH_TRIAL_H
#define HEARTH_TRIAL_H

#include <stdint.h>

/* Whether threads are to be moved now. */
int hearth_trial_moves(void);

/* So many enters took so much CPU time; so much went into moves. */
void hearth_trial_took(uint64_t cost_ns, uint64_t enters);
void hearth_trial_moved(uint64_t cost_ns);

/*
 * A period is over, until when there were so many enters in all; not to be called by two threads at
 * once.
 */
void hearth_trial_period(uint64_t all_enters, uint64_t now_ns);

/* Says on standard error what was found. */
void hearth_trial_explain(void);

#endif
