// SPDX-License-Identifier: GPL-2.0-only
/*
 * Programs whose scheduling is known, to be observed.
 *
 *   alternate CPU KIB PASSES ROUNDS   two processes take turns on one CPU through a pipe; each
 * walks its working set PASSES times when it is its turn move CPU CPU ROUNDS               one
 * process goes from one CPU to the other and back yield CPU ROUNDS                  two processes
 * on one CPU yield to each other spin CPU MILLISECONDS             two processes on one CPU compute
 *
 * At the end it prints how often it was switched, as the kernel counts it, into the file named
 * first.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct line {
	struct line *next;
	char rest[56];
};

static void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		exit(3);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

/* A circle through all lines of a working set, in an order that nothing foresees. */
static struct line *circle(long lines)
{
	struct line *set = aligned_alloc(4096, (lines + 64) / 64 * 4096);
	long *order = malloc(lines * sizeof(long));

	if (!set || !order)
		exit(3);
	for (long i = 0; i < lines; i++)
		order[i] = i;
	for (long i = lines - 1; i > 0; i--) {
		long j = random() % (i + 1), other = order[i];

		order[i] = order[j];
		order[j] = other;
	}
	for (long i = 0; i < lines; i++)
		set[order[i]].next = &set[order[(i + 1) % lines]];
	free(order);
	return set;
}

static void alternate(long kib, long passes, long rounds)
{
	int there[2], back[2];
	long lines = kib * 16;
	struct line *at;
	char byte = 0;
	pid_t child;

	if (pipe(there) || pipe(back))
		exit(3);
	child = fork();
	at = circle(lines);
	int in = child ? back[0] : there[0], out = child ? there[1] : back[1];

	for (long round = 0; round < rounds; round++) {
		if (!child && read(in, &byte, 1) != 1)
			_exit(3);
		for (long step = 0; step < lines * passes; step++)
			at = at->next;
		__asm__ volatile("" : : "r"(at));
		if (write(out, &byte, 1) != 1)
			_exit(3);
		if (child && read(in, &byte, 1) != 1)
			exit(3);
	}
	if (!child)
		_exit(0);
}

static void move(int one, int other, long rounds)
{
	for (long round = 0; round < rounds; round++)
		pin(round % 2 ? other : one);
}

static void yield(long rounds)
{
	pid_t child = fork();

	for (long round = 0; round < rounds; round++)
		sched_yield();
	if (!child)
		_exit(0);
}

static void spin(double ms)
{
	pid_t child = fork();

	for (double end = now() + ms; now() < end;)
		;
	if (!child)
		_exit(0);
}

static long switches(int who)
{
	struct rusage usage;

	getrusage(who, &usage);
	return usage.ru_nvcsw + usage.ru_nivcsw;
}

int main(int count, char **words)
{
	FILE *file;

	if (count < 5)
		return 2;
	pin(atoi(words[3]));
	if (!strcmp(words[2], "alternate") && count == 7)
		alternate(atol(words[4]), atol(words[5]), atol(words[6]));
	else if (!strcmp(words[2], "move") && count == 6)
		move(atoi(words[3]), atoi(words[4]), atol(words[5]));
	else if (!strcmp(words[2], "yield") && count == 5)
		yield(atol(words[4]));
	else if (!strcmp(words[2], "spin") && count == 5)
		spin(atof(words[4]));
	else
		return 2;
	while (wait(NULL) > 0)
		;
	file = fopen(words[1], "w");
	if (!file)
		return 3;
	fprintf(file, "%ld\n", switches(RUSAGE_SELF) + switches(RUSAGE_CHILDREN));
	return fclose(file) ? 3 : 0;
}
