// SPDX-License-Identifier: GPL-2.0-only
/*
 * Spinners: each notes when it ran, where, and how much.
 *
 *   tasks spin MS NICE,NICE... [MASK [FIRST-MASK]]
 *
 * One spinner for each nice value, 20 for one of SCHED_IDLE, on the CPUs of MASK, for MS ms from a
 * common start. With a FIRST-MASK they gather there before the start, and may go to MASK from then
 * on.
 *
 *   task=I nice=N cpu_ns=T stretches=K moves=M longest_ns=T longest_wait_ns=T
 *   stretch=K task=I cpu=C start_ns=T end_ns=T        in the order in which they began
 *
 * A stretch ends when another spinner runs on the same CPU, or the spinner finds itself on another
 * CPU: each CPU has a word that names who ran there last. So two stretches with only a stranger
 * between them count as one. Times are since the common start.
 */
#include "tasks.h"

#include <sys/resource.h>
#include <sys/wait.h>

#define MAX_STRETCHES 4096
#define ROUNDS_BETWEEN_LOOKS 500

struct stretch {
	uint64_t start_ns, end_ns;
	int task, cpu;
};

struct spinner {
	int nice;
	uint64_t cpu_ns, longest_wait_ns;
	int moves, nr_stretches;
	struct stretch stretches[MAX_STRETCHES];
};

static struct {
	atomic_int ready;
	atomic_ullong start_ns;
	atomic_bool told;
	atomic_int last_on[MAX_CPUS];
	struct spinner spinners[MAX_TASKS];
} * state;

/* Whether nobody else ran here since this spinner's last look; then *now is a time in its stretch.
 */
static bool still_here(int me, int cpu, uint64_t start, uint64_t *now)
{
	if (atomic_load(&state->last_on[cpu]) != me + 1)
		return false;
	*now = now_ns() - start;
	return atomic_load(&state->last_on[cpu]) == me + 1;
}

static uint64_t look(struct spinner *self, int me, uint64_t start)
{
	struct stretch *last = NULL;
	uint64_t now, wait_ns;
	int cpu = sched_getcpu();

	if (self->nr_stretches)
		last = &self->stretches[self->nr_stretches - 1];
	if (last && last->cpu == cpu && still_here(me, cpu, start, &now)) {
		last->end_ns = now;
		return now;
	}
	atomic_store(&state->last_on[cpu], me + 1);
	now = now_ns() - start;
	wait_ns = now - (last ? last->end_ns : 0);
	self->moves += last && last->cpu != cpu;
	self->longest_wait_ns = wait_ns > self->longest_wait_ns ? wait_ns : self->longest_wait_ns;
	if (self->nr_stretches < MAX_STRETCHES)
		self->stretches[self->nr_stretches++] =
			(struct stretch){.start_ns = now, .end_ns = now, .task = me, .cpu = cpu};
	return now;
}

static void spin_until_end(int me, uint64_t length_ns)
{
	struct spinner *self = &state->spinners[me];
	uint64_t start, cpu_before;

	if (self->nice > 19 ? sched_setscheduler(0, SCHED_IDLE, &(struct sched_param){0})
			    : setpriority(PRIO_PROCESS, 0, self->nice))
		die("setpriority");
	atomic_fetch_add(&state->ready, 1);
	/* Who yields would begin with what that has cost it. */
	while (!(start = atomic_load(&state->start_ns)))
		;
	while (now_ns() < start)
		;
	cpu_before = cpu_time_ns();
	do
		spin(ROUNDS_BETWEEN_LOOKS);
	while (look(self, me, start) < length_ns && !atomic_load(&state->told));
	self->cpu_ns = cpu_time_ns() - cpu_before;
}

static int by_start(const void *left, const void *right)
{
	const struct stretch *a = left, *b = right;

	return compare_u64(&a->start_ns, &b->start_ns);
}

static void print(int count)
{
	static struct stretch all[MAX_TASKS * 64];
	int i, k, nr = 0;

	for (i = 0; i < count; i++) {
		struct spinner *one = &state->spinners[i];
		uint64_t longest = 0;

		for (k = 0; k < one->nr_stretches; k++) {
			uint64_t length = one->stretches[k].end_ns - one->stretches[k].start_ns;

			longest = length > longest ? length : longest;
			if (nr < (int)(sizeof(all) / sizeof(all[0])))
				all[nr++] = one->stretches[k];
		}
		printf("task=%d nice=%d cpu_ns=%lu stretches=%d moves=%d longest_ns=%lu "
		       "longest_wait_ns=%lu\n",
		       i, one->nice, one->cpu_ns, one->nr_stretches, one->moves, longest,
		       one->longest_wait_ns);
	}
	qsort(all, nr, sizeof(all[0]), by_start);
	for (k = 0; k < nr; k++)
		printf("stretch=%d task=%d cpu=%d start_ns=%lu end_ns=%lu\n", k, all[k].task,
		       all[k].cpu, all[k].start_ns, all[k].end_ns);
}

int command_spin(int argc, char **argv)
{
	uint64_t length_ns = number(argc, argv, 0, 100) * NS_PER_MS;
	cpu_set_t mask = parse_mask(argc > 2 ? argv[2] : "all");
	cpu_set_t first = argc > 3 ? parse_mask(argv[3]) : mask;
	char *next = argc > 1 ? argv[1] : (char *)"0";
	pid_t children[MAX_TASKS];
	int i, count = 0, status, bad = 0;

	state = shared(sizeof(*state));
	end_when_told(&state->told);
	while (*next && count < MAX_TASKS) {
		state->spinners[count++].nice = (int)strtol(next, &next, 10);
		next += *next == ',';
	}
	set_mask(0, &first);
	for (i = 0; i < count; i++) {
		children[i] = fork();
		if (children[i] < 0)
			die("fork");
		if (!children[i]) {
			spin_until_end(i, length_ns);
			_exit(0);
		}
	}
	while (atomic_load(&state->ready) < count)
		sleep_ns(NS_PER_MS);
	atomic_store(&state->start_ns, now_ns() + 2 * NS_PER_MS);
	for (i = 0; i < count && argc > 3; i++)
		set_mask(children[i], &mask);
	for (i = 0; i < count; i++) {
		waitpid(children[i], &status, 0);
		bad |= status;
	}
	print(count);
	return bad ? 1 : 0;
}
