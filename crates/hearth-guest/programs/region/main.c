// SPDX-License-Identifier: GPL-2.0-only
/*
 * Marks what is to be counted, for the plugin of `hearth emulate`.
 *
 *   hearth-region symbols
 *     tells where the kernel switches tasks, and where their names are
 *   hearth-region counters
 *     gives the kernel counters of cycles, instructions and misses, which are those of the plugin
 *   hearth-region shuffle MIB SEED LIST
 *     frees MIB of each memory node in any order, and writes the files of the list anew; a process
 *     stays behind that holds the pages between
 *   hearth-region run NAME N SEED cold|warm|uncounted -- CMD...
 *     runs N copies of CMD as a region; exits as the first that fails does. Warm: once before, and
 *     counts what comes after. Uncounted: as no region
 *
 * The first copy starts with the region; each other one up to a tick later, as SEED says. A copy
 * finds its number, from 0, in HEARTH_COPY. A copy that a signal ends counts as one that exits with
 * 128 and its number.
 */
#include "../common.h"
#include "region.h"

#include <sys/wait.h>

#define MOST_COPIES 1024
#define TICK_NS (4 * NS_PER_MS)

/* As a region begins to count; or there is none. */
enum caches {
	COLD,
	WARM,
	UNCOUNTED,
	NR_CACHES,
};

static const char *const names_of_caches[] = {"cold", "warm", "uncounted"};

#define EXIT_USAGE 2
#define EXIT_NOT_FOUND 127

static pid_t start_copy(long number, uint64_t wait_ns, char **command)
{
	pid_t pid = fork();
	char text[24];

	if (pid < 0)
		die("fork");
	if (pid)
		return pid;
	snprintf(text, sizeof(text), "%ld", number);
	setenv("HEARTH_COPY", text, 1);
	if (wait_ns)
		sleep_ns(wait_ns);
	execvp(command[0], command);
	fprintf(stderr, "%s: %s\n", command[0], strerror(errno));
	_exit(EXIT_NOT_FOUND);
}

static int exit_code(int status)
{
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static int wait_for(const pid_t *copies, long count)
{
	int code = 0, status;
	long i;

	for (i = 0; i < count; i++) {
		if (waitpid(copies[i], &status, 0) < 0)
			die("waitpid");
		if (!code)
			code = exit_code(status);
	}
	return code;
}

/*
 * Reads the name first, for the plugin finds only what is mapped: the kernel may have taken the
 * page away meanwhile, to see who uses it (NUMA balancing).
 */
static void tell(enum call operation, const char *name)
{
	const volatile char *end = name;

	while (*end)
		end++;
	call(operation, (uint64_t)name, (uint64_t)(end - name));
}

static int run_copies(long count, uint64_t seed, char **command)
{
	static pid_t copies[MOST_COPIES];
	long i;

	for (i = 0; i < count; i++)
		copies[i] = start_copy(i, i ? next_random(&seed) % TICK_NS : 0, command);
	return wait_for(copies, count);
}

static int run(const char *name, long count, uint64_t seed, enum caches caches, char **command)
{
	const char *measures = getenv("HEARTH_MEASURES");
	int code = 0;

	if (caches == UNCOUNTED)
		return run_copies(count, seed, command);
	tell(CALL_BEGIN, name);
	if (caches == WARM) {
		code = run_copies(count, seed, command);
		if (measures)
			unlink(measures);
		call(CALL_ANEW, 0, 0);
	}
	if (!code)
		code = run_copies(count, seed, command);
	tell(CALL_END, name);
	return code;
}

static void tell_symbols(void)
{
	struct kernel_structure task = kernel_structure("task_struct");
	uint32_t pid = kernel_offset(&task, "pid"), comm = kernel_offset(&task, "comm");

	call(CALL_SYMBOLS, kernel_symbol("__switch_to"), pid | (uint64_t)comm << 32);
	printf("pid=%u comm=%u\n", pid, comm);
}

/* A process that stays behind with all memory of this one. */
static int hold(void)
{
	pid_t pid = fork();

	if (pid < 0)
		die("fork");
	if (!pid)
		for (;;)
			pause();
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "symbols")) {
		tell_symbols();
		return 0;
	}
	if (argc == 2 && !strcmp(argv[1], "counters")) {
		load_counters();
		return 0;
	}
	if (argc == 5 && !strcmp(argv[1], "shuffle")) {
		shuffle(strtoull(argv[2], NULL, 10), strtoull(argv[3], NULL, 10), argv[4]);
		return hold();
	}
	if (argc > 7 && !strcmp(argv[1], "run") && !strcmp(argv[6], "--")) {
		long count = strtol(argv[3], NULL, 10);
		enum caches caches = COLD;

		while (caches < NR_CACHES && strcmp(argv[5], names_of_caches[caches]))
			caches++;
		if (count >= 1 && count <= MOST_COPIES && caches < NR_CACHES)
			return run(argv[2], count, strtoull(argv[4], NULL, 10), caches, argv + 7);
	}
	fprintf(stderr, "usage: hearth-region symbols | counters | shuffle MIB SEED LIST | "
			"run NAME COPIES SEED cold|warm|uncounted -- COMMAND...\n");
	return EXIT_USAGE;
}
