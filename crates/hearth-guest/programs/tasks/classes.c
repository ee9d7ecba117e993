// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tasks that change their scheduling class.
 *
 *   tasks demoted FIFO-MS MS CPU
 *       demoted=CPU cpu_ns=T longest_wait_ns=T
 *   A task that was real-time for FIFO-MS ms, and then for MS ms is not, beside two spinners. Times
 * are of the second part.
 *
 *   tasks returned COUNT SLEEP-MS HOG-MS CPU
 *       returned=N longest_wait_ns=T
 *   Tasks of one CPU that go to a real-time class while they wait there, sleep for SLEEP-MS ms, and
 * come back while they sleep. When they wake up a spinner runs there, or if HOG-MS is above 0 a
 * real-time task, which ends after so long. How long one waited, at most.
 */
#include "tasks.h"

#include <signal.h>
#include <sys/wait.h>

static void set_class(int class, int priority)
{
	struct sched_param parameters = {.sched_priority = priority};

	if (sched_setscheduler(0, class, &parameters))
		die("sched_setscheduler");
}

static uint64_t spin_until(uint64_t end)
{
	uint64_t last = now_ns(), now, longest = 0;

	while (last < end) {
		spin(100);
		now = now_ns();
		longest = now - last > longest ? now - last : longest;
		last = now;
	}
	return longest;
}

int command_demoted(int argc, char **argv)
{
	uint64_t fifo_ns = number(argc, argv, 0, 1000) * NS_PER_MS;
	uint64_t length_ns = number(argc, argv, 1, 1000) * NS_PER_MS;
	int cpu = number(argc, argv, 2, 1), i;
	uint64_t longest, cpu_before;
	pid_t children[2];

	pin(cpu);
	set_class(SCHED_FIFO, 10);
	spin_until(now_ns() + fifo_ns);
	set_class(SCHED_OTHER, 0);
	cpu_before = cpu_time_ns();
	for (i = 0; i < 2; i++)
		children[i] = fork_spinner();
	longest = spin_until(now_ns() + length_ns);
	printf("demoted=%d cpu_ns=%lu longest_wait_ns=%lu\n", cpu, cpu_time_ns() - cpu_before,
	       longest);
	for (i = 0; i < 2; i++) {
		kill(children[i], SIGKILL);
		waitpid(children[i], NULL, 0);
	}
	return 0;
}

/* A task that is there and back, as memory that it shares has it. */
struct away {
	atomic_bool sleeps;
	atomic_ullong until_ns;
	atomic_ullong waited_ns;
};

static void set_class_of(pid_t pid, int class, int priority)
{
	struct sched_param parameters = {.sched_priority = priority};

	if (sched_setscheduler(pid, class, &parameters))
		die("sched_setscheduler");
}

static pid_t fork_away(struct away *away, int cpu)
{
	pid_t child = fork();
	uint64_t until_ns;

	if (child < 0)
		die("fork");
	if (child)
		return child;
	pin(cpu);
	while (!(until_ns = atomic_load(&away->until_ns)))
		spin(100);
	atomic_store(&away->sleeps, true);
	sleep_ns(until_ns - now_ns());
	atomic_store(&away->waited_ns, now_ns() - until_ns);
	_exit(0);
}

int command_returned(int argc, char **argv)
{
	int count = number(argc, argv, 0, 1), cpu = number(argc, argv, 3, 1), i;
	uint64_t sleep_length_ns = number(argc, argv, 1, 1000) * NS_PER_MS;
	uint64_t hog_ns = number(argc, argv, 2, 0) * NS_PER_MS;
	struct away *away = shared(count * sizeof(*away));
	uint64_t longest = 0, until_ns;
	pid_t spinner, children[MAX_TASKS];

	if (count > MAX_TASKS)
		die("too many tasks");
	pin(cpu);
	spinner = fork_spinner();
	for (i = 0; i < count; i++)
		children[i] = fork_away(&away[i], cpu);
	/* They have waited, and this task takes their CPU: none of them runs. */
	sleep_ns(200 * NS_PER_MS);
	set_class(SCHED_FIFO, 20);
	until_ns = now_ns() + sleep_length_ns;
	for (i = 0; i < count; i++) {
		set_class_of(children[i], SCHED_FIFO, 10);
		atomic_store(&away[i].until_ns, until_ns);
	}
	for (i = 0; i < count; i++)
		while (!atomic_load(&away[i].sleeps))
			sleep_ns(NS_PER_MS);
	for (i = 0; i < count; i++)
		set_class_of(children[i], SCHED_OTHER, 0);
	if (hog_ns) {
		sleep_ns(until_ns - now_ns() - 10 * NS_PER_MS);
		spin_until(until_ns + hog_ns);
	}
	set_class(SCHED_OTHER, 0);
	for (i = 0; i < count; i++) {
		waitpid(children[i], NULL, 0);
		longest = away[i].waited_ns > longest ? away[i].waited_ns : longest;
	}
	printf("returned=%d longest_wait_ns=%lu\n", count, longest);
	kill(spinner, SIGKILL);
	waitpid(spinner, NULL, 0);
	return 0;
}
