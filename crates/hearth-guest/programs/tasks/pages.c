// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory that was first touched on one node and is used from another.
 *
 *   tasks pages MIB HOME-CPU CPU MS [WHAT]
 *
 * MIB of memory are first touched on HOME-CPU; then all pages are written to again and again on
 * CPU, for MS ms. WHAT is
 *
 *   small    pages of 4 KiB (the default)     huge    huge pages
 *   mbind    bound to its node by mbind       policy  set_mempolicy for the node of HOME-CPU
 *   shared   a thread on HOME-CPU uses the same pages at the same time
 *   idle     the pages are not used, and no lines are printed
 *
 *   at_ms=T local=PERCENT changes=N huge=N  every 500 ms, and at the end: pages on the node of CPU;
 *                                           how often one was found on another node than before;
 *                                           MiB in huge pages
 */
#include "tasks.h"

#include <linux/mempolicy.h>
#include <pthread.h>
#include <sys/syscall.h>

#define PAGE 4096ul
#define HUGE (2ul << 20)
#define BETWEEN_ROUNDS_NS (20 * NS_PER_MS)
#define BETWEEN_LINES_NS (500 * NS_PER_MS)
/* More than what is flushed page by page. */
#define SCRATCH (64 * PAGE)

static char *memory;
static size_t size;
static atomic_bool over;
static int *before, changes;

static unsigned int node_of_this_cpu(void)
{
	unsigned int cpu, node;

	if (syscall(SYS_getcpu, &cpu, &node, NULL))
		die("getcpu");
	return node;
}

static void touch(char *scratch)
{
	size_t at;

	for (at = 0; at < size; at += PAGE)
		((volatile char *)memory)[at]++;
	/* A TLB under emulation forgets nothing, so no accessed bit would be set again; real ones
	 * are small. Changing much of an address space empties it. */
	if (mprotect(scratch, SCRATCH, PROT_READ) ||
	    mprotect(scratch, SCRATCH, PROT_READ | PROT_WRITE))
		die("mprotect");
	memset(scratch, 1, SCRATCH);
}

/* The percentage of pages on a node. */
static int local(unsigned int node)
{
	size_t count = size / PAGE, i, here = 0;
	static void **pages;
	static int *now;

	if (!pages) {
		pages = calloc(count, sizeof(*pages));
		now = calloc(count, sizeof(*now));
		before = calloc(count, sizeof(*before));
		for (i = 0; i < count; i++) {
			pages[i] = memory + i * PAGE;
			before[i] = -1;
		}
	}
	if (syscall(SYS_move_pages, 0, count, pages, NULL, now, 0))
		die("move_pages");
	for (i = 0; i < count; i++) {
		here += now[i] == (int)node;
		changes += before[i] >= 0 && now[i] != before[i];
		before[i] = now[i];
	}
	return (int)(here * 100 / count);
}

/* MiB of the memory that is in huge pages. */
static int huge_mib(void)
{
	char line[256], wanted[32];
	FILE *file = fopen("/proc/self/smaps", "r");
	bool inside = false;
	int kib = 0;

	if (!file)
		return -1;
	snprintf(wanted, sizeof(wanted), "%lx-", (unsigned long)memory);
	while (fgets(line, sizeof(line), file)) {
		if (strchr(line, '-') && strchr("0123456789abcdef", line[0]))
			inside = !strncmp(line, wanted, strlen(wanted));
		if (inside && sscanf(line, "AnonHugePages: %d kB", &kib) == 1)
			break;
	}
	fclose(file);
	return kib / 1024;
}

static char *map(size_t length)
{
	char *mapped =
		mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (mapped == MAP_FAILED)
		die("mmap");
	return mapped;
}

static void *use(void *cpu)
{
	char *scratch = map(SCRATCH);

	pin((int)(intptr_t)cpu);
	while (!over) {
		touch(scratch);
		sleep_ns(BETWEEN_ROUNDS_NS);
	}
	return NULL;
}

static void place(const char *what, int home_cpu, char *scratch)
{
	unsigned long mask;

	pin(home_cpu);
	mask = 1ul << node_of_this_cpu();
	if (!strcmp(what, "policy") && syscall(SYS_set_mempolicy, MPOL_PREFERRED, &mask, 64))
		die("set_mempolicy");
	memory = (char *)(((uintptr_t)map(size + HUGE) + HUGE - 1) & ~(HUGE - 1));
	if (madvise(memory, size, strcmp(what, "huge") ? MADV_NOHUGEPAGE : MADV_HUGEPAGE))
		die("madvise");
	if (!strcmp(what, "mbind") && syscall(SYS_mbind, memory, size, MPOL_BIND, &mask, 64, 0))
		die("mbind");
	touch(scratch);
}

int command_pages(int argc, char **argv)
{
	uint64_t end, line;
	const char *what = argc > 4 ? argv[4] : "small";
	int home_cpu = number(argc, argv, 1, 4), cpu = number(argc, argv, 2, 0);
	bool is_used = strcmp(what, "idle");
	char *scratch = map(SCRATCH);
	pthread_t other;
	int here;

	size = (size_t)number(argc, argv, 0, 32) << 20;
	place(what, home_cpu, scratch);
	pin(cpu);
	if (!strcmp(what, "shared") &&
	    pthread_create(&other, NULL, use, (void *)(intptr_t)home_cpu))
		die("pthread_create");
	end = now_ns() + number(argc, argv, 3, 1000) * NS_PER_MS;
	for (line = now_ns(); now_ns() < end;) {
		if (is_used)
			touch(scratch);
		else
			scratch[0]++;
		if (is_used && now_ns() >= line) {
			line += BETWEEN_LINES_NS;
			here = local(node_of_this_cpu());
			printf("at_ms=%llu local=%d changes=%d huge=%d\n", now_ns() / NS_PER_MS,
			       here, changes, huge_mib());
			fflush(stdout);
		}
		sleep_ns(BETWEEN_ROUNDS_NS);
	}
	over = true;
	return 0;
}
