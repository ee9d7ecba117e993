// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tasks that declare the data that they work on, by the daemon's own protocol.
 *
 *   tasks declare MS FRAGMENT,FRAGMENT... [own|null|wild|late|change|library]
 *
 * A task for each fragment number computes for MS ms from a common start, with its word registered:
 * its own, one at address 0xdead000, or one in the middle of nowhere. With `late` it takes 300 ms
 * to say which, as one does that waits for a CPU. With `change` each declares the next number
 * halfway, and says where it is at once. With `library` they do it as programs do.
 *
 *   task=I pid=P fragment=F registered=E first=C last=C moves=N cpu_ns=T at_once=C
 *
 * E is the daemon's answer; the CPUs are those of the second half, and N how often they changed.
 */
#include "tasks.h"
#include "../../../hearth-hints/include/hearth.h"

#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>

#define ROUNDS_BETWEEN_LOOKS 500
#define SHARED_BIT (1ul << 63)

struct declarer {
	uint64_t fragment, cpu_ns;
	int pid, registered, first, last, moves, at_once;
};

static uint64_t length_ns;
static const char *how = "own";

static struct {
	struct gate gate;
	struct declarer all[MAX_TASKS];
} * state;

static _Atomic uint64_t word;

/* The daemon's answer, or -1 if there is none. */
static int register_word(uint64_t address)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX, .sun_path = "/run/hearth/words"};
	struct {
		uint32_t version, tid;
		uint64_t address;
	} said = {1, syscall(SYS_gettid), address};
	int answer = -1, fd = socket(AF_UNIX, SOCK_STREAM, 0);

	bool is_connected = fd >= 0 && !connect(fd, (struct sockaddr *)&at, sizeof(at));

	if (!strcmp(how, "late"))
		sleep_ns(300 * NS_PER_MS);
	if (!is_connected || send(fd, &said, sizeof(said), MSG_NOSIGNAL) != sizeof(said) ||
	    read(fd, &answer, sizeof(answer)) != sizeof(answer))
		answer = -1;
	close(fd);
	return answer;
}

static void work(int me)
{
	struct declarer *self = &state->all[me];
	uint64_t address = (uint64_t)(uintptr_t)&word, start, now, cpu_before;
	bool has_changed = strcmp(how, "change");
	int cpu;

	if (!strcmp(how, "null"))
		address = 0xdead000;
	if (!strcmp(how, "wild"))
		address = 0xffff888000000000;
	self->pid = getpid();
	self->first = self->last = self->at_once = -1;
	if (!strcmp(how, "library")) {
		hearth_enter(self->fragment);
	} else {
		self->registered = register_word(address);
		atomic_store(&word, self->fragment);
		sched_yield();
	}
	start = pass(&state->gate);
	cpu_before = cpu_time_ns();
	while ((now = now_ns() - start) < length_ns) {
		spin(ROUNDS_BETWEEN_LOOKS);
		if (now < length_ns / 2)
			continue;
		if (!has_changed) {
			has_changed = true;
			atomic_store(&word, self->fragment + 1);
			sched_yield();
			self->at_once = sched_getcpu();
		}
		cpu = sched_getcpu();
		if (self->first < 0)
			self->first = cpu;
		self->moves += self->last >= 0 && cpu != self->last;
		self->last = cpu;
	}
	self->cpu_ns = cpu_time_ns() - cpu_before;
}

int command_declare(int argc, char **argv)
{
	char *next = argc > 1 ? argv[1] : (char *)"1";
	int count = 0, bad, i;

	length_ns = number(argc, argv, 0, 100) * NS_PER_MS;
	how = argc > 2 ? argv[2] : how;
	state = shared(sizeof(*state));
	while (*next && count < MAX_TASKS) {
		/* A fragment of all processes, for these are processes. */
		state->all[count++].fragment = strtoull(next, &next, 10) | SHARED_BIT;
		next += *next == ',';
	}
	bad = run_children(&state->gate, count, work);
	for (i = 0; i < count; i++) {
		struct declarer *one = &state->all[i];

		printf("task=%d pid=%d fragment=%lu registered=%d first=%d last=%d moves=%d "
		       "cpu_ns=%lu at_once=%d\n",
		       i, one->pid, one->fragment & ~SHARED_BIT, one->registered, one->first,
		       one->last, one->moves, one->cpu_ns, one->at_once);
	}
	return bad;
}
