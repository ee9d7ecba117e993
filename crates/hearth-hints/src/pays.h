/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Whether a move to a fragment's home pays: see pays.c. */
#ifndef HEARTH_PAYS_H
#define HEARTH_PAYS_H

#include "fragments.h"

enum hearth_verdict {
	HEARTH_STAY,
	HEARTH_MOVE,
	HEARTH_TRY_STAY, /* and measure what it takes */
	HEARTH_TRY_MOVE,
};

/* A thread's gains that it missed since it was last at a home, and its moves since its last try. */
struct hearth_missed {
	uint64_t gain_ns;
	uint64_t moves;
};

/* For a thread that is about to enter the fragment, and is not at its home. */
enum hearth_verdict hearth_pays(const struct hearth_home *home, struct hearth_missed *missed);

/* What a thread took from enter to leave, for so many enters; what a move took. CPU time. */
void hearth_took(struct hearth_home *home, int at_home, uint64_t took_ns, uint64_t enters);
void hearth_move_took(uint64_t took_ns);

/* A thread has moved. */
void hearth_moved(void);

/* What a move usually takes; 0: not known. */
uint32_t hearth_move_ns(void);

#endif
