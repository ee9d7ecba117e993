// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tasks that wait: for a timer, for their turn, for each other.
 *
 *   tasks sleepers COUNT MS SPINNERS [PERIOD-US]
 *       sleepers=COUNT wakes=N p50_ns=T p99_ns=T max_ns=T fewest_wakes=N
 *   Latency is from the time that a sleeper asked to be woken at until it runs; SPINNERS processes
 *   spin meanwhile.
 *
 *   tasks yielders COUNT YIELDS CPU
 *       yielders=COUNT turns=N widest_lead=N
 *   widest_lead is the most turns that one thread was ever ahead of another.
 *
 *   tasks pingpong TRIPS [MASK]
 *       pingpong=TRIPS moves=N switches=N      of both sides together
 */
#include "tasks.h"

#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

static struct {
	uint64_t *latency_ns;
	int wakes;
	uint64_t start_ns, end_ns, period_ns;
	pthread_t thread;
} sleepers[MAX_TASKS];

static void *sleep_periodically(void *argument)
{
	long me = (long)argument;
	uint64_t at = sleepers[me].start_ns + (uint64_t)me * sleepers[me].period_ns / 7;

	while (at < sleepers[me].end_ns) {
		struct timespec t = {.tv_sec = at / NS_PER_S, .tv_nsec = at % NS_PER_S};

		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
		sleepers[me].latency_ns[sleepers[me].wakes++] = now_ns() - at;
		at += sleepers[me].period_ns;
	}
	return NULL;
}

static pid_t fork_spinner(void)
{
	pid_t child = fork();

	if (child < 0)
		die("fork");
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			spin(1000);
	}
	return child;
}

int command_sleepers(int argc, char **argv)
{
	int count = number(argc, argv, 0, 4), spinners = number(argc, argv, 2, 0);
	uint64_t length_ns = number(argc, argv, 1, 500) * NS_PER_MS;
	uint64_t period_ns = number(argc, argv, 3, 5000) * 1000ull;
	uint64_t start_ns, *all;
	int most = (int)(length_ns / period_ns) + 1, fewest = most, total = 0;
	pid_t children[MAX_TASKS];
	long i;

	for (i = 0; i < spinners; i++)
		children[i] = fork_spinner();
	prctl(PR_SET_TIMERSLACK, 1);
	start_ns = now_ns() + 20 * NS_PER_MS;
	for (i = 0; i < count; i++) {
		sleepers[i].start_ns = start_ns;
		sleepers[i].end_ns = start_ns + length_ns;
		sleepers[i].period_ns = period_ns;
		sleepers[i].latency_ns = calloc(most, sizeof(uint64_t));
		if (!sleepers[i].latency_ns ||
		    pthread_create(&sleepers[i].thread, NULL, sleep_periodically, (void *)i))
			die("sleeper");
	}
	all = calloc((size_t)count * most, sizeof(*all));
	for (i = 0; i < count; i++) {
		pthread_join(sleepers[i].thread, NULL);
		memcpy(all + total, sleepers[i].latency_ns, sleepers[i].wakes * sizeof(*all));
		total += sleepers[i].wakes;
		fewest = sleepers[i].wakes < fewest ? sleepers[i].wakes : fewest;
	}
	for (i = 0; i < spinners; i++) {
		kill(children[i], SIGKILL);
		waitpid(children[i], NULL, 0);
	}
	qsort(all, total, sizeof(*all), compare_u64);
	printf("sleepers=%d wakes=%d p50_ns=%lu p99_ns=%lu max_ns=%lu fewest_wakes=%d\n", count,
	       total, all[total / 2], all[total * 99 / 100], all[total - 1], fewest);
	return 0;
}

static struct {
	pthread_barrier_t start;
	atomic_int turns[MAX_TASKS];
	atomic_int widest;
	int count, yields, cpu;
} turns;

static void *take_turns(void *argument)
{
	long me = (long)argument;
	int i, k, lead;

	pin(turns.cpu);
	pthread_barrier_wait(&turns.start);
	for (i = 0; i < turns.yields; i++) {
		atomic_fetch_add(&turns.turns[me], 1);
		for (k = 0; k < turns.count; k++) {
			lead = i + 1 - atomic_load(&turns.turns[k]);
			if (lead > atomic_load(&turns.widest))
				atomic_store(&turns.widest, lead);
		}
		sched_yield();
	}
	return NULL;
}

int command_yielders(int argc, char **argv)
{
	pthread_t threads[MAX_TASKS];
	long i;

	turns.count = number(argc, argv, 0, 3);
	turns.yields = number(argc, argv, 1, 200);
	turns.cpu = number(argc, argv, 2, 1);
	pthread_barrier_init(&turns.start, NULL, turns.count);
	for (i = 0; i < turns.count; i++)
		if (pthread_create(&threads[i], NULL, take_turns, (void *)i))
			die("pthread_create");
	for (i = 0; i < turns.count; i++)
		pthread_join(threads[i], NULL);
	printf("yielders=%d turns=%d widest_lead=%d\n", turns.count, turns.count * turns.yields,
	       atomic_load(&turns.widest));
	return 0;
}

struct side {
	int moves;
	long switches;
};

static void play(int from, int to, int trips, bool first, struct side *side)
{
	int last = sched_getcpu(), cpu;
	struct rusage usage;
	char byte = 0;

	while (trips--) {
		if (first && write(to, &byte, 1) != 1)
			die("pipe");
		if (read(from, &byte, 1) != 1)
			die("pipe");
		if (!first && write(to, &byte, 1) != 1)
			die("pipe");
		cpu = sched_getcpu();
		side->moves += cpu != last;
		last = cpu;
	}
	getrusage(RUSAGE_SELF, &usage);
	side->switches = usage.ru_nvcsw + usage.ru_nivcsw;
}

int command_pingpong(int argc, char **argv)
{
	cpu_set_t mask = parse_mask(argc > 1 ? argv[1] : "all");
	int there[2], back[2], trips = number(argc, argv, 0, 1000), status;
	struct side *sides = shared(2 * sizeof(*sides));
	pid_t child;

	set_mask(0, &mask);
	if (pipe(there) || pipe(back))
		die("pipe");
	child = fork();
	if (child < 0)
		die("fork");
	if (!child) {
		play(there[0], back[1], trips, false, &sides[1]);
		_exit(0);
	}
	play(back[0], there[1], trips, true, &sides[0]);
	waitpid(child, &status, 0);
	printf("pingpong=%d moves=%d switches=%ld\n", trips, sides[0].moves + sides[1].moves,
	       sides[0].switches + sides[1].switches);
	return status ? 1 : 0;
}
