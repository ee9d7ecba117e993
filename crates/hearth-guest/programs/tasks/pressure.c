// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tasks that press a scheduler.
 *
 *   tasks affinity COUNT CHANGES
 *       affinity=COUNT changes=N outside=N stuck=N
 *   Masks of COUNT spinners change CHANGES times, to one CPU or to several. outside counts spinners
 *   that still ran outside their mask after it was set; stuck those that did not run for a second.
 *
 *   tasks newcomers MS COUNT
 *       newcomers=COUNT busy_wait_ns=T new_wait_ns=T
 *   COUNT spinners crowd CPU 2 for MS, while one has CPU 1 alone. Then how long two others wait
 * that come to CPU 2: the one from CPU 1, and one that is new.
 *
 *   tasks hog CPU MS
 *       hog=CPU cpu_ns=T
 *   A SCHED_FIFO task that spins.
 *
 *   tasks memory MIB ROUNDS
 *       memory=MIB rounds=N
 */
#include "tasks.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define STUCK_NS NS_PER_S

static struct {
	atomic_ulong looks;
	atomic_int cpu;
} * spinners;

static void spin_and_say_where(int me)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;) {
		spin(200);
		atomic_store(&spinners[me].cpu, sched_getcpu());
		atomic_fetch_add(&spinners[me].looks, 1);
	}
}

/* Whether a spinner looked twice since now: the second look began after the mask was set. */
static bool wait_for_look(int which)
{
	unsigned long before = atomic_load(&spinners[which].looks);
	uint64_t start = now_ns();

	while (atomic_load(&spinners[which].looks) < before + 2) {
		if (now_ns() - start > STUCK_NS)
			return false;
		sched_yield();
	}
	return true;
}

static cpu_set_t some_mask(unsigned int *seed)
{
	int first = rand_r(seed) % nr_cpus(), length = rand_r(seed) % 3 ? 1 : 1 + rand_r(seed) % 4,
	    i;
	cpu_set_t mask;

	CPU_ZERO(&mask);
	for (i = 0; i < length; i++)
		CPU_SET((first + i) % nr_cpus(), &mask);
	return mask;
}

int command_affinity(int argc, char **argv)
{
	int count = number(argc, argv, 0, 12), changes = number(argc, argv, 1, 500);
	int i, which, outside = 0, stuck = 0;
	pid_t children[MAX_TASKS];
	unsigned int seed = 1;
	cpu_set_t mask;

	spinners = shared(MAX_TASKS * sizeof(*spinners));
	for (i = 0; i < count; i++) {
		children[i] = fork();
		if (children[i] < 0)
			die("fork");
		if (!children[i])
			spin_and_say_where(i);
	}
	for (i = 0; i < changes; i++) {
		which = rand_r(&seed) % count;
		mask = some_mask(&seed);
		set_mask(children[which], &mask);
		if (i % 4)
			continue;
		if (!wait_for_look(which))
			stuck++;
		else if (!CPU_ISSET(atomic_load(&spinners[which].cpu), &mask))
			outside++;
	}
	for (i = 0; i < count; i++) {
		kill(children[i], SIGKILL);
		waitpid(children[i], NULL, 0);
	}
	printf("affinity=%d changes=%d outside=%d stuck=%d\n", count, changes, outside, stuck);
	return outside || stuck;
}

#define LONELY_CPU 1
#define CROWDED_CPU 2

static pid_t fork_pinned(int which, int cpu)
{
	pid_t child = fork();

	if (child < 0)
		die("fork");
	if (!child) {
		pin(cpu);
		spin_and_say_where(which);
	}
	return child;
}

static uint64_t wait_until_on(int which, int cpu, uint64_t limit_ns)
{
	uint64_t start = now_ns();

	while (atomic_load(&spinners[which].cpu) != cpu && now_ns() - start < limit_ns)
		sleep_ns(NS_PER_MS / 4);
	return now_ns() - start;
}

int command_newcomers(int argc, char **argv)
{
	uint64_t length_ns = number(argc, argv, 0, 2000) * NS_PER_MS, busy_ns, new_ns;
	int count = number(argc, argv, 1, 4), i;
	pid_t children[MAX_TASKS];
	cpu_set_t crowded;

	spinners = shared(MAX_TASKS * sizeof(*spinners));
	children[0] = fork_pinned(0, LONELY_CPU);
	for (i = 1; i <= count; i++)
		children[i] = fork_pinned(i, CROWDED_CPU);
	sleep_ns(length_ns);
	CPU_ZERO(&crowded);
	CPU_SET(CROWDED_CPU, &crowded);
	children[count + 1] = fork_pinned(count + 1, CROWDED_CPU);
	new_ns = wait_until_on(count + 1, CROWDED_CPU, 20 * NS_PER_S);
	set_mask(children[0], &crowded);
	busy_ns = wait_until_on(0, CROWDED_CPU, 20 * NS_PER_S);
	for (i = 0; i <= count + 1; i++) {
		kill(children[i], SIGKILL);
		waitpid(children[i], NULL, 0);
	}
	printf("newcomers=%d busy_wait_ns=%lu new_wait_ns=%lu\n", count, busy_ns, new_ns);
	return 0;
}

int command_hog(int argc, char **argv)
{
	struct sched_param priority = {.sched_priority = 10};
	uint64_t end = now_ns() + number(argc, argv, 1, 1000) * NS_PER_MS;
	int cpu = number(argc, argv, 0, 1);

	pin(cpu);
	if (sched_setscheduler(0, SCHED_FIFO, &priority))
		die("sched_setscheduler");
	while (now_ns() < end)
		spin(1000);
	printf("hog=%d cpu_ns=%lu\n", cpu, cpu_time_ns());
	return 0;
}

int command_memory(int argc, char **argv)
{
	int mib = number(argc, argv, 0, 64), rounds = number(argc, argv, 1, 4), round;
	size_t size = (size_t)mib << 20, at;
	char *memory = shared(size);

	for (round = 0; round < rounds; round++)
		for (at = 0; at < size; at += 4096)
			memory[at]++;
	printf("memory=%d rounds=%d\n", mib, rounds);
	return 0;
}
