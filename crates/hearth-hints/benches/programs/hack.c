// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Hackbench, as in the paper on data affinity (section 5): groups of processes, in each of which
 * every sender writes messages of 100 bytes to every receiver, over pipes. What a group shares is
 * the kernel's, and its fragment has a name, since it is of several processes. By hand: the
 * processes of a group are bound to its CPU.
 *
 *	hack WAY GROUPS PAIRS MESSAGES
 */
#include "../../include/hearth.h"
#include "program.h"
#include <sys/wait.h>
#include <unistd.h>

#define MESSAGE 100
#define MOST_PAIRS 100

struct group {
	uint64_t fragment;
	int cpu;
	int pipes[MOST_PAIRS][2]; /* one of each receiver: where to read, where to write */
};

static enum ways way;
static long pairs, messages;
static _Atomic uint64_t *sum; /* of what came, in memory of all */

static void enter(const struct group *group)
{
	if (way == HINTS)
		hearth_enter(group->fragment);
}

static void leave(void)
{
	if (way == HINTS)
		hearth_leave();
}

static void send_all(const struct group *group, long unused)
{
	char message[MESSAGE];
	long at, to;

	(void)unused;
	for (at = 0; at < messages; at++) {
		enter(group);
		memset(message, (int)(at % 100) + 1, MESSAGE);
		for (to = 0; to < pairs; to++) {
			if (write(group->pipes[to][1], message, MESSAGE) != MESSAGE)
				fail("write");
		}
		leave();
	}
}

static void receive_all(const struct group *group, long own)
{
	char message[MESSAGE];
	uint64_t own_sum = 0;
	long left = pairs * messages;

	/* What is that short is written as a whole, and so read as a whole. */
	while (left--) {
		enter(group);
		if (read(group->pipes[own][0], message, MESSAGE) != MESSAGE)
			fail("read");
		own_sum += (uint64_t)message[MESSAGE / 2];
		leave();
	}
	*sum += own_sum;
}

static void make_process(const struct group *group, long number,
			 void (*work)(const struct group *, long))
{
	pid_t child = fork();

	if (child < 0)
		fail("fork");
	if (child)
		return;
	if (way == HAND)
		bind_to(group->cpu);
	wait_for_all();
	work(group, number);
	_exit(0);
}

static void make_group(long number)
{
	static int cpus[CPU_SETSIZE];
	struct group group;
	char name[32];
	long at;

	snprintf(name, sizeof(name), "hack group %ld", number);
	group.fragment = hearth_fragment_named(name);
	group.cpu = cpus[number % own_cpus(cpus)];
	for (at = 0; at < pairs; at++) {
		if (pipe(group.pipes[at]))
			fail("pipe");
	}
	for (at = 0; at < pairs; at++) {
		make_process(&group, at, send_all);
		make_process(&group, at, receive_all);
	}
	for (at = 0; at < pairs; at++) {
		close(group.pipes[at][0]);
		close(group.pipes[at][1]);
	}
}

int main(int count, char **words)
{
	struct taken before;
	long groups, at;
	int status, is_bad = 0;

	way = way_given(count, words, "hack WAY GROUPS PAIRS MESSAGES");
	groups = number(words[2], 1);
	pairs = number(words[3], 1);
	messages = number(words[4], 1);
	if (pairs > MOST_PAIRS) {
		fprintf(stderr, "%ld pairs are more than %d\n", pairs, MOST_PAIRS);
		return 2;
	}
	sum = shared(sizeof(*sum));
	expect(2 * groups * pairs);
	for (at = 0; at < groups; at++)
		make_group(at);
	wait_for_all();
	before = taken();
	while (wait(&status) > 0)
		is_bad |= status;
	report(*sum, before);
	return is_bad ? 3 : 0;
}
