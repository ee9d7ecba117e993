// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A neighbour that runs until it is killed: a quiet one computes in registers, a noisy one changes
 * a word in each line of a buffer, over and over. The first 8 bytes of FILE count what it did:
 * millions of steps, or MiB.
 *
 *	neighbour quiet|noisy BYTES FILE [MIB]
 *
 * A noisy one also computes now and then, at times drawn by lot, after MIB (1000) at most: what
 * never changes tells nobody who counts how much it takes from others.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
	LINE_WORDS = 64 / sizeof(uint64_t),
	MIB_WORDS = (1 << 20) / sizeof(uint64_t),
	STEPS = 1000000,
	PAUSE_STEPS = 5 * STEPS,
};

static volatile uint64_t *counter;
static uint64_t state = 88172645463325252U;

static uint64_t drawn(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

static void compute(long steps)
{
	while (steps--)
		drawn();
	/* What nobody reads the compiler would leave out. */
	__asm__ volatile("" : : "r"(state));
}

static void quiet(void)
{
	for (;;) {
		compute(STEPS);
		++*counter;
	}
}

static void noisy(long mib, long streamed_mib)
{
	uint64_t *buffer = malloc((size_t)mib << 20);
	long at = 0;

	if (!buffer)
		exit(1);
	memset(buffer, 1, (size_t)mib << 20);
	for (;;) {
		for (long left = 1 + (long)(drawn() % streamed_mib); left; left--) {
			for (long word = 0; word < MIB_WORDS; word += LINE_WORDS)
				++buffer[at * MIB_WORDS + word];
			at = (at + 1) % mib;
			++*counter;
		}
		compute(PAUSE_STEPS);
	}
}

int main(int count, char **words)
{
	long streamed_mib = count == 5 ? atol(words[4]) : 1000;
	int file;

	if ((count != 4 && count != 5) || streamed_mib <= 0) {
		fprintf(stderr, "usage: neighbour quiet|noisy BYTES FILE [MIB]\n");
		return 2;
	}
	file = open(words[3], O_RDWR);
	counter = mmap(NULL, sizeof(*counter), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	if (counter == MAP_FAILED) {
		perror(words[3]);
		return 1;
	}
	if (!strcmp(words[1], "noisy"))
		noisy(1 + (atol(words[2]) >> 20), streamed_mib);
	quiet();
}
