// SPDX-License-Identifier: MIT OR Apache-2.0
/* Plays periods in which moves make an enter cheaper or dearer, and sees what is decided. */
#include "../../src/trial.h"
#include <stdio.h>
#include <stdlib.h>

struct way {
	uint64_t enter_ns; /* CPU time */
	uint64_t enters;   /* in a period */
};

/* Of so many periods, those with moves. */
static int play(int periods, struct way without, struct way with)
{
	static uint64_t all, now_ns;
	int at, moved = 0;

	for (at = 0; at < periods; at++) {
		int moves = hearth_trial_moves();
		const struct way *way = moves ? &with : &without;

		moved += moves;
		all += way->enters;
		now_ns += 100000000;
		hearth_trial_took(way->enter_ns * way->enters, way->enters);
		hearth_trial_period(all, now_ns);
	}
	return moved;
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
	struct way none = {100, 0}, usual = {100, 100}, cheap = {80, 100};
	struct way many = {100, 120}, cheap_but_few = {90, 92};

	expect(play(1000, none, none) == 1000, "without an enter nothing is tried");
	expect(play(10, usual, cheap) >= 5, "moves are tried first");
	expect(play(2000, usual, cheap) > 1950, "moves that spare CPU time are kept");
	play(1000, cheap, usual);
	expect(play(2000, cheap, usual) < 50, "moves that cost some are not");
	play(1000, usual, many);
	expect(play(2000, usual, many) > 1950, "what brings more is seen");
	play(1000, usual, cheap_but_few);
	expect(play(2000, usual, cheap_but_few) < 50, "and what brings less");
	return 0;
}
