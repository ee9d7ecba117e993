// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The CPUs that fragments may have as homes: those of the process's mask. HEARTH_TOPOLOGY names a
 * file that says others, to see what would be decided on another machine; then no thread is moved.
 * It has the CPUs as the kernel writes them, such as "0-15,32-47" in
 * /sys/devices/system/cpu/online, on as many lines as one likes; what follows a # is a comment.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "fragments.h"
#include "page.h"
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BITS (8 * sizeof(unsigned long))
#define WORDS (HEARTH_MAX_CPUS / BITS)

static _Atomic unsigned long ours[WORDS];
static _Atomic int end;
static int are_real = 1;

static void take(const unsigned long *mask)
{
	int last = -1;
	size_t word;

	for (word = 0; word < WORDS; word++) {
		atomic_store_explicit(&ours[word], mask[word], memory_order_relaxed);
		if (mask[word])
			last = (int)(word * BITS + BITS - 1) - __builtin_clzl(mask[word]);
	}
	atomic_store_explicit(&end, last + 1, memory_order_relaxed);
}

/* Takes a line of CPUs, such as "0-3, 8". Returns from where on it is something else, or NULL. */
static const char *take_list(char *line, unsigned long *mask)
{
	char *part, *rest = NULL;

	line[strcspn(line, "#")] = '\0';
	for (part = strtok_r(line, ", \t\r", &rest); part; part = strtok_r(NULL, ", \t\r", &rest)) {
		char *after;
		unsigned long first = strtoul(part, &after, 10), last = first;

		if (*part < '0' || *part > '9')
			return part;
		if (*after == '-' && after[1] >= '0' && after[1] <= '9')
			last = strtoul(after + 1, &after, 10);
		if (*after || last < first || last >= HEARTH_MAX_CPUS)
			return part;
		for (; first <= last; first++)
			mask[first / BITS] |= 1UL << first % BITS;
	}
	return NULL;
}

static int read_topology(const char *path)
{
	unsigned long mask[WORDS] = {0}, any = 0;
	char text[4096], *line, *rest = text;
	long length = hearth_read(path, text, sizeof(text));
	int number = 0;
	size_t word;

	if (length < 0 || length == sizeof(text) - 1) {
		fprintf(stderr, "hearth: HEARTH_TOPOLOGY: %s %s; data affinity is off\n", path,
			length < 0 ? "cannot be read" : "is longer than 4094 bytes");
		return 0;
	}
	while ((line = strsep(&rest, "\n"))) {
		const char *wrong = take_list(line, mask);

		number++;
		if (!wrong)
			continue;
		fprintf(stderr,
			"hearth: HEARTH_TOPOLOGY: %s, line %d: \"%s\" is no list of CPUs below %d, "
			"such as 0-3,8; data affinity is off\n",
			path, number, wrong, HEARTH_MAX_CPUS);
		return 0;
	}
	for (word = 0; word < WORDS; word++)
		any |= mask[word];
	if (!any) {
		fprintf(stderr, "hearth: HEARTH_TOPOLOGY: %s has no CPU; data affinity is off\n",
			path);
		return 0;
	}
	take(mask);
	return 1;
}

int hearth_cpus_begin(void)
{
	const char *path = secure_getenv("HEARTH_TOPOLOGY");
	unsigned long mask[WORDS] = {0};

	if (path && *path) {
		are_real = 0;
		return read_topology(path);
	}
	if (sched_getaffinity(getpid(), sizeof(mask), (cpu_set_t *)mask))
		return 0;
	take(mask);
	return 1;
}

/* The mask of the whole process may have become smaller: then its first thread has it, too. */
static int is_first_threads(const unsigned long *mask)
{
	unsigned long first[WORDS] = {0};

	return !sched_getaffinity(getpid(), sizeof(first), (cpu_set_t *)first) &&
	       !memcmp(first, mask, sizeof(first));
}

int hearth_cpus_are_all(const unsigned long *mask)
{
	unsigned long more = 0, less = 0, both[WORDS];
	size_t word;
	int count = 0;

	for (word = 0; word < WORDS; word++) {
		unsigned long known = atomic_load_explicit(&ours[word], memory_order_relaxed);

		more |= mask[word] & ~known;
		less |= known & ~mask[word];
		both[word] = known | mask[word];
		count += __builtin_popcountl(mask[word]);
	}
	if (count < 2)
		return 0;
	if (more)
		take(both);
	if (less && is_first_threads(mask)) {
		take(mask);
		less = 0;
	}
	return !less;
}

int hearth_cpus_are_real(void)
{
	return are_real;
}

int hearth_cpu_is_ours(int cpu)
{
	if (cpu < 0 || cpu >= HEARTH_MAX_CPUS)
		return 0;
	return atomic_load_explicit(&ours[cpu / BITS], memory_order_relaxed) >> cpu % BITS & 1;
}

int hearth_cpu_end(void)
{
	return atomic_load_explicit(&end, memory_order_relaxed);
}
