// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tasks that wait: for a timer, for their turn, for each other.
 *
 *   tasks sleepers COUNT MS SPINNERS [PERIOD-US]
 *       sleepers=COUNT wakes=N p50_ns=T p99_ns=T max_ns=T fewest_wakes=N cpu_ns=T
 *   Latency is from the time that a sleeper asked to be woken at until it runs; SPINNERS processes
 *   spin meanwhile. cpu_ns is what a sleeper had of a CPU, on average.
 *
 *   tasks yielders COUNT YIELDS CPU
 *       yielders=COUNT turns=N repeats=N widest_lead=N
 *   repeats are turns of a thread that had the turn before too, while others waited for theirs;
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

#define SETTLE_NS (20 * NS_PER_MS)

static struct {
	pthread_barrier_t ready;
	atomic_ullong start_ns;
	uint64_t length_ns, period_ns;
	struct {
		uint64_t *latency_ns;
		int wakes;
		uint64_t cpu_ns;
		pthread_t thread;
	} each[MAX_TASKS];
} sleepers;

static void sleep_until(uint64_t at)
{
	struct timespec t = {.tv_sec = at / NS_PER_S, .tv_nsec = at % NS_PER_S};

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

static void *sleep_periodically(void *argument)
{
	long me = (long)argument;
	uint64_t at, end;

	if (pthread_barrier_wait(&sleepers.ready) == PTHREAD_BARRIER_SERIAL_THREAD)
		atomic_store(&sleepers.start_ns, now_ns() + SETTLE_NS);
	pthread_barrier_wait(&sleepers.ready);
	at = atomic_load(&sleepers.start_ns) + (uint64_t)me * sleepers.period_ns / 7;
	end = atomic_load(&sleepers.start_ns) + sleepers.length_ns;
	for (; at < end; at += sleepers.period_ns) {
		sleep_until(at);
		sleepers.each[me].latency_ns[sleepers.each[me].wakes++] = now_ns() - at;
	}
	sleepers.each[me].cpu_ns = cpu_time_ns();
	return NULL;
}

pid_t fork_spinner(void)
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

static void run_sleepers(int count, int most)
{
	long i;

	pthread_barrier_init(&sleepers.ready, NULL, count);
	for (i = 0; i < count; i++) {
		sleepers.each[i].latency_ns = calloc(most, sizeof(uint64_t));
		if (!sleepers.each[i].latency_ns ||
		    pthread_create(&sleepers.each[i].thread, NULL, sleep_periodically, (void *)i))
			die("sleeper");
	}
	for (i = 0; i < count; i++)
		pthread_join(sleepers.each[i].thread, NULL);
}

static void print_sleepers(int count, int most)
{
	uint64_t *all = calloc((size_t)count * most, sizeof(*all));
	int i, fewest = most, total = 0;
	uint64_t cpu_ns = 0;

	if (!all)
		die("calloc");
	for (i = 0; i < count; i++) {
		int wakes = sleepers.each[i].wakes;

		memcpy(all + total, sleepers.each[i].latency_ns, wakes * sizeof(*all));
		total += wakes;
		fewest = wakes < fewest ? wakes : fewest;
		cpu_ns += sleepers.each[i].cpu_ns / count;
	}
	qsort(all, total, sizeof(*all), compare_u64);
	printf("sleepers=%d wakes=%d p50_ns=%lu p99_ns=%lu max_ns=%lu fewest_wakes=%d cpu_ns=%lu\n",
	       count, total, all[total / 2], all[total * 99 / 100], all[total - 1], fewest, cpu_ns);
}

int command_sleepers(int argc, char **argv)
{
	int count = number(argc, argv, 0, 4), spinners = number(argc, argv, 2, 0), i, most;
	pid_t children[MAX_TASKS];

	sleepers.length_ns = number(argc, argv, 1, 500) * NS_PER_MS;
	sleepers.period_ns = number(argc, argv, 3, 5000) * 1000ull;
	most = (int)(sleepers.length_ns / sleepers.period_ns) + 1;
	for (i = 0; i < spinners; i++)
		children[i] = fork_spinner();
	prctl(PR_SET_TIMERSLACK, 1);
	run_sleepers(count, most);
	for (i = 0; i < spinners; i++) {
		kill(children[i], SIGKILL);
		waitpid(children[i], NULL, 0);
	}
	print_sleepers(count, most);
	return 0;
}

static struct {
	pthread_barrier_t start;
	atomic_int turns[MAX_TASKS];
	atomic_int widest, last, repeats, finished;
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
		if (atomic_exchange(&turns.last, (int)me) == me && !atomic_load(&turns.finished))
			atomic_fetch_add(&turns.repeats, 1);
		for (k = 0; k < turns.count; k++) {
			lead = i + 1 - atomic_load(&turns.turns[k]);
			if (lead > atomic_load(&turns.widest))
				atomic_store(&turns.widest, lead);
		}
		sched_yield();
	}
	atomic_store(&turns.finished, 1);
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
	printf("yielders=%d turns=%d repeats=%d widest_lead=%d\n", turns.count,
	       turns.count * turns.yields, atomic_load(&turns.repeats), atomic_load(&turns.widest));
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
