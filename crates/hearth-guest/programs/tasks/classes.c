// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tasks that change their scheduling class.
 *
 *   tasks demoted FIFO-MS MS CPU
 *       demoted=CPU cpu_ns=T longest_wait_ns=T
 *   A task that was real-time for FIFO-MS ms, and then for MS ms is not, beside two spinners. Times
 * are of the second part.
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
