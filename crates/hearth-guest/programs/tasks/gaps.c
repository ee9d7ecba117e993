// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tasks that note when they run and when not, whoever takes their CPU.
 *
 *   tasks gaps MS COUNT
 *
 * COUNT processes that compute for MS ms from a common start.
 *
 *   task=I nr_ran=K
 *   ran=K task=I start_ns=T end_ns=T
 *
 * A task that never sees GAP_NS pass at once ran all the while. Times are since the common start.
 */
#include "tasks.h"

#define MAX_RAN 4096
/* More than an emulator that does one CPU after the other spends on the others. */
#define GAP_NS (10 * NS_PER_MS)
#define ROUNDS_BETWEEN_LOOKS 500

struct ran {
	uint64_t start_ns, end_ns;
};

struct worker {
	int nr_ran;
	struct ran ran[MAX_RAN];
};

static uint64_t length_ns;

static struct {
	struct gate gate;
	atomic_bool told;
	struct worker workers[MAX_TASKS];
} * state;

static void work(int me)
{
	struct worker *self = &state->workers[me];
	struct ran *last = self->ran;
	uint64_t start = pass(&state->gate), now;

	self->nr_ran = 1;
	last->start_ns = last->end_ns = now_ns() - start;
	while (last->end_ns < length_ns && !atomic_load(&state->told)) {
		spin(ROUNDS_BETWEEN_LOOKS);
		now = now_ns() - start;
		if (now > last->end_ns + GAP_NS && self->nr_ran < MAX_RAN) {
			last = &self->ran[self->nr_ran++];
			last->start_ns = now;
		}
		last->end_ns = now;
	}
}

int command_gaps(int argc, char **argv)
{
	int count = number(argc, argv, 1, 1), bad, i, k;

	length_ns = number(argc, argv, 0, 100) * NS_PER_MS;
	count = count < MAX_TASKS ? count : MAX_TASKS;
	state = shared(sizeof(*state));
	end_when_told(&state->told);
	bad = run_children(&state->gate, count, work);
	for (i = 0; i < count; i++) {
		struct worker *one = &state->workers[i];

		printf("task=%d nr_ran=%d\n", i, one->nr_ran);
		for (k = 0; k < one->nr_ran; k++)
			printf("ran=%d task=%d start_ns=%lu end_ns=%lu\n", k, i,
			       one->ran[k].start_ns, one->ran[k].end_ns);
	}
	return bad;
}
