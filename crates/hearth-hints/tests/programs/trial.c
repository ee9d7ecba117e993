// SPDX-License-Identifier: MIT OR Apache-2.0
/* Plays periods in which moves make an enter cheaper or dearer, and sees what is decided. */
#include "../../src/trial.h"
#include <stdio.h>
#include <stdlib.h>

/* Of so many periods, those with moves, where an enter takes so long without and with. */
static int play(int periods, uint64_t without_ns, uint64_t with_ns, uint64_t enters)
{
	int at, with = 0;

	for (at = 0; at < periods; at++) {
		int moves = hearth_trial_moves();

		with += moves;
		hearth_trial_took((moves ? with_ns : without_ns) * enters, enters);
		hearth_trial_period();
	}
	return with;
}

static void expect(int is, const char *what)
{
	if (is)
		return;
	fprintf(stderr, "%s\n", what);
	exit(1);
}

int main(void)
{
	expect(play(1000, 200, 100, 0) == 1000, "without an enter nothing is tried");
	expect(play(10, 200, 100, 100) >= 5, "moves are tried first");
	expect(play(2000, 200, 100, 100) > 1950, "moves that pay are kept");
	play(1000, 100, 110, 100);
	expect(play(2000, 100, 110, 100) < 50, "moves that do not pay are not");
	play(1000, 110, 100, 100);
	expect(play(2000, 110, 100, 100) > 1950, "and what pays again is seen");
	return 0;
}
