// SPDX-License-Identifier: GPL-2.0-only
/*
 * References whose counts are known, each kind a region.
 *
 *   known walk NAME KIB TIMES          loads each line of an array, TIMES times
 *   known move NAME KIB FROM TO TIMES  stores to each line on CPU FROM, then loads on TO
 *   known share NAME TIMES             CPUs 0 and 1 add to a word in turns, TIMES times each
 *   known spin NAME KIB TIMES          CPU 0 walks, as above, and CPU 1 waits for it in a loop
 *   known nops NAME COUNT              COUNT instructions without references
 *   known ask NAME                     100,000 loads, by the counts that the plugin tells; and what
 *                                      CPU 0's counters have afterwards
 *   known clock NAME                   how long the guest says that loads from 64 MiB take
 *   known mix NAME KIB TIMES           multiplies matrices: much of everything, for speed
 *
 * And one that is no region, and has no end:
 *
 *   known roam KIB TIMES GAP...        loads lines of an array in any order, TIMES with each number
 *                                      of instructions between two loads in turn
 */
#include "../../hearth-guest/programs/common.h"
#include "../../hearth-guest/programs/region/region.h"

#include <sys/mman.h>
#include <sys/wait.h>

#define LINE 64
#define HUGE_PAGE (2ul << 20)

static long number(const char *text)
{
	return strtol(text, NULL, 10);
}

/* Copies of the program have a CPU each. */
static int own_cpu(void)
{
	const char *copy = getenv("HEARTH_COPY");

	return copy ? (int)number(copy) : 0;
}

/* Memory that is contiguous where it matters: its lines meet in no set of a cache that they need
 * not. */
static char *array(size_t bytes, int flags)
{
	size_t room = (bytes + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE + HUGE_PAGE;
	char *memory = mmap(NULL, room, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		die("%zu bytes", room);
	memory += HUGE_PAGE - (uintptr_t)memory % HUGE_PAGE;
	madvise(memory, room - HUGE_PAGE, MADV_HUGEPAGE);
	memset(memory, 1, bytes);
	return memory;
}

static void begin(const char *name)
{
	call(CALL_BEGIN, (uint64_t)name, strlen(name));
}

static void end(const char *name)
{
	call(CALL_END, (uint64_t)name, strlen(name));
}

static void load_lines(const char *memory, size_t bytes, long times)
{
	uint64_t word;

	for (; times; times--) {
		for (size_t at = 0; at < bytes; at += LINE)
			__asm__ volatile("mov (%1), %0" : "=r"(word) : "r"(memory + at));
	}
}

static void store_lines(char *memory, size_t bytes)
{
	for (size_t at = 0; at < bytes; at += LINE)
		__asm__ volatile("mov %0, (%1)" : : "r"(at), "r"(memory + at) : "memory");
}

static void walk(const char *name, size_t bytes, long times)
{
	char *memory;

	pin(own_cpu());
	memory = array(bytes, MAP_PRIVATE);
	begin(name);
	load_lines(memory, bytes, times);
	end(name);
}

static void move(const char *name, size_t bytes, int from, int to, long times)
{
	char *memory;

	pin(from);
	memory = array(bytes, MAP_PRIVATE);
	begin(name);
	store_lines(memory, bytes);
	pin(to);
	load_lines(memory, bytes, times);
	end(name);
}

/* Two tasks take turns: each waits until the word is its own, which costs loads and nothing else.
 */
static void take_turns(volatile uint64_t *word, uint64_t mine, long times)
{
	for (long i = 0; i < times; i++) {
		while (*word % 2 != mine)
			sched_yield();
		*word = *word + 1;
	}
}

static void share(const char *name, long times)
{
	volatile uint64_t *word = (volatile uint64_t *)array(LINE, MAP_SHARED);
	pid_t other;

	*word = 0;
	pin(0);
	begin(name);
	other = fork();
	if (other < 0)
		die("fork");
	if (!other) {
		pin(1);
		take_turns(word, 1, times);
		_exit(0);
	}
	take_turns(word, 0, times);
	waitpid(other, NULL, 0);
	end(name);
}

/* As programs wait for each other: a loop of PAUSE. */
static void spin_beside(const char *name, size_t bytes, long times)
{
	volatile uint64_t *is_done = (volatile uint64_t *)array(LINE, MAP_SHARED);
	char *memory = array(bytes, MAP_PRIVATE);
	pid_t other;

	*is_done = 0;
	pin(0);
	other = fork();
	if (other < 0)
		die("fork");
	if (!other) {
		pin(1);
		while (!*is_done)
			__builtin_ia32_pause();
		_exit(0);
	}
	begin(name);
	load_lines(memory, bytes, times);
	end(name);
	*is_done = 1;
	waitpid(other, NULL, 0);
}

static void nops(const char *name, long count)
{
	long turns = count / 4;

	pin(0);
	begin(name);
	__asm__ volatile("1: nop\n\tnop\n\tdec %0\n\tjnz 1b" : "+r"(turns) : : "cc");
	end(name);
}

/* As the plugin tells them: see hearth_emulate::counts::Counts. */
enum {
	WORD_CPU,
	WORD_PID,
	COUNTS = 22,
	WORD_TASK = 2 + COUNTS,
	WORD_TASK_LOADS = WORD_TASK + 1,
	WORDS = 2 + 3 * COUNTS,
};

static void ask(const char *name)
{
	static uint64_t before[WORDS], after[WORDS];
	struct counters counters = {};
	char *memory;

	pin(0);
	memory = array(LINE, MAP_PRIVATE);
	memset(before, 1, sizeof(before));
	memset(after, 1, sizeof(after));
	begin(name);
	/* Counting begins with the next block of code. */
	sched_yield();
	call(CALL_COUNTS, (uint64_t)before, sizeof(before));
	load_lines(memory, LINE, 100000);
	call(CALL_COUNTS, (uint64_t)after, sizeof(after));
	end(name);
	printf("asked cpu=%lu pid=%lu own-pid=%d loads=%lu\n", after[WORD_CPU], after[WORD_PID],
	       getpid(), after[WORD_TASK_LOADS] - before[WORD_TASK_LOADS]);
	call(CALL_COUNTERS, (uint64_t)&counters, sizeof(counters));
	printf("counters cycles=%lu instructions=%lu misses=%lu\n", counters.cycles,
	       counters.instructions, counters.misses);
}

static void time_loads(const char *name)
{
	size_t bytes = 64ul << 20;
	uint64_t began;
	char *memory;

	pin(0);
	memory = array(bytes, MAP_PRIVATE);
	begin(name);
	sched_yield();
	began = now_ns();
	load_lines(memory, bytes, 1);
	printf("took ns=%lu\n", now_ns() - began);
	end(name);
}

static void mix(const char *name, size_t bytes, long times)
{
	size_t side = 64, all = bytes / sizeof(int32_t) / 3 / (side * side);
	int32_t *memory;

	pin(0);
	memory = (int32_t *)array(bytes, MAP_PRIVATE);
	begin(name);
	for (size_t turn = 0; turn < (size_t)times * all; turn++) {
		int32_t *a = memory + turn % all * 3 * side * side, *b = a + side * side,
			*c = b + side * side;

		for (size_t i = 0; i < side; i++) {
			for (size_t k = 0; k < side; k++) {
				for (size_t j = 0; j < side; j++)
					((volatile int32_t *)c)[i * side + j] +=
						a[i * side + k] * b[k * side + j];
			}
		}
	}
	end(name);
}

static void roam(size_t bytes, long times, char **gaps)
{
	char *memory = array(bytes, MAP_PRIVATE);
	uint64_t word, lines = bytes / LINE, state = 1;

	for (char **gap = gaps;; gap = gap[1] ? gap + 1 : gaps) {
		uint64_t turns = (uint64_t)number(*gap) / 2 + 1;

		for (long i = 0; i < times; i++) {
			char *line = memory + next_random(&state) % lines * LINE;

			__asm__ volatile("mov (%1), %0" : "=r"(word) : "r"(line));
			spin(turns);
		}
	}
}

int main(int count, char **words)
{
	const char *what = count > 2 ? words[1] : "";
	static char name[64];

	if (count > 2)
		snprintf(name, sizeof(name), "%s", words[2]);
	if (!strcmp(what, "walk") && count == 5)
		walk(name, (size_t)number(words[3]) << 10, number(words[4]));
	else if (!strcmp(what, "move") && count == 7)
		move(name, (size_t)number(words[3]) << 10, (int)number(words[4]),
		     (int)number(words[5]), number(words[6]));
	else if (!strcmp(what, "share") && count == 4)
		share(name, number(words[3]));
	else if (!strcmp(what, "spin") && count == 5)
		spin_beside(name, (size_t)number(words[3]) << 10, number(words[4]));
	else if (!strcmp(what, "nops") && count == 4)
		nops(name, number(words[3]));
	else if (!strcmp(what, "ask") && count == 3)
		ask(name);
	else if (!strcmp(what, "clock") && count == 3)
		time_loads(name);
	else if (!strcmp(what, "mix") && count == 5)
		mix(name, (size_t)number(words[3]) << 10, number(words[4]));
	else if (!strcmp(what, "roam") && count > 4)
		roam((size_t)number(words[2]) << 10, number(words[3]), words + 4);
	else
		return 2;
	return 0;
}
