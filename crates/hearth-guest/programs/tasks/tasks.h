/* SPDX-License-Identifier: GPL-2.0-only */
/* Commands of `tasks`, and what they share. Each takes the arguments after its name and returns an
 * exit status. */
#ifndef HEARTH_GUEST_TASKS_H
#define HEARTH_GUEST_TASKS_H

#include "../common.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <sys/wait.h>

#define MAX_CPUS 128
#define MAX_TASKS 256

int command_spin(int argc, char **argv);
int command_sleepers(int argc, char **argv);
int command_yielders(int argc, char **argv);
int command_pingpong(int argc, char **argv);
int command_forks(int argc, char **argv);
int command_exits(int argc, char **argv);
int command_affinity(int argc, char **argv);
int command_newcomers(int argc, char **argv);
int command_demoted(int argc, char **argv);
int command_returned(int argc, char **argv);
int command_hog(int argc, char **argv);
int command_memory(int argc, char **argv);
int command_pages(int argc, char **argv);
int command_gaps(int argc, char **argv);
int command_follow(int argc, char **argv);
int command_declare(int argc, char **argv);
int command_fragments(int argc, char **argv);
int command_callers(int argc, char **argv);

/* A child that spins until it is killed, or its parent ends. */
pid_t fork_spinner(void);

/* Has SIGTERM, to this process or a child that is forked from now on, set *told. */
void end_when_told(atomic_bool *told);

/* A number among the arguments, or its default. */
static inline int number(int argc, char **argv, int index, int otherwise)
{
	return index < argc ? atoi(argv[index]) : otherwise;
}

/* Zeroed memory that children share. */
static inline void *shared(size_t size)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		die("mmap");
	return memory;
}

/* "0-3,6" as a mask; "all" for every CPU. */
static inline cpu_set_t parse_mask(const char *text)
{
	cpu_set_t mask;
	int first, last, used;

	CPU_ZERO(&mask);
	if (!strcmp(text, "all")) {
		for (first = 0; first < nr_cpus(); first++)
			CPU_SET(first, &mask);
		return mask;
	}
	while (sscanf(text, "%d%n", &first, &used) == 1) {
		last = first;
		text += used;
		if (sscanf(text, "-%d%n", &last, &used) == 1)
			text += used;
		for (; first <= last; first++)
			CPU_SET(first, &mask);
		if (*text != ',')
			break;
		text++;
	}
	return mask;
}

/* Where children wait until all are there; in memory that they share. They sleep there: if each
 * looked every ms, many would use up the CPUs that others need to come. */
struct gate {
	atomic_int ready;
	atomic_ullong start_ns;
	/* The start: what waits reads, and who opens closes. */
	int reads, opens;
};

/* A child is ready. The time of the common start, when it has come. */
static inline uint64_t pass(struct gate *gate)
{
	char nothing;

	atomic_fetch_add(&gate->ready, 1);
	while (read(gate->reads, &nothing, 1) < 0 && errno == EINTR)
		;
	if (!atomic_load(&gate->start_ns))
		_exit(1);
	return atomic_load(&gate->start_ns);
}

/* A child for each number below `count`, which works and passes the gate; 0 if all ended well. */
static inline int run_children(struct gate *gate, int count, void (*work)(int me))
{
	int i, status, bad = 0, ends[2];

	if (pipe(ends))
		die("pipe");
	gate->reads = ends[0];
	gate->opens = ends[1];
	for (i = 0; i < count; i++) {
		pid_t child = fork();

		if (child < 0)
			die("fork");
		if (!child) {
			close(gate->opens);
			work(i);
			_exit(0);
		}
	}
	while (atomic_load(&gate->ready) < count) {
		if (waitpid(-1, &status, WNOHANG) > 0) {
			fprintf(stderr, "a child ended before the start: status %#x\n", status);
			exit(1);
		}
		sleep_ns(NS_PER_MS);
	}
	atomic_store(&gate->start_ns, now_ns());
	close(gate->opens);
	while (wait(&status) > 0)
		bad |= status;
	return bad ? 1 : 0;
}

#endif
