// SPDX-License-Identifier: GPL-2.0-only
/*
 * Free memory as a kernel has it that has been in use, and files that lie in it.
 *
 * Which pages a cache can hold beside each other depends on where they are in memory. A kernel that
 * has just booted hands out pages in a row, and places a program's pages the same way in every
 * boot: two of them that meet in a cache would meet in all runs under one scheduler, and perhaps in
 * none under another, for the same program. So half the pages of each memory node are freed in an
 * order of a seed's, the other half stays taken to keep them apart, and programs are written anew
 * into them.
 */
#include "../common.h"
#include "region.h"

#include <linux/mempolicy.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define PAGE 4096ul
#define MOST_NODES 64
#define BLOCK (64 * 1024)
/* Documentation/admin-guide/mm/pagemap.rst: bits 0-54 of an entry. */
#define FRAME_OF_ENTRY ((1ull << 55) - 1)

/* Any order of the numbers below a count: Fisher and Yates. */
static uint32_t *any_order(uint32_t count, uint64_t *state)
{
	uint32_t *order = malloc(count * sizeof(*order));
	uint32_t i;

	if (!order)
		die("malloc");
	for (i = 0; i < count; i++)
		order[i] = i;
	for (i = count; i > 1; i--) {
		uint32_t other = (uint32_t)(next_random(state) % i), last = order[i - 1];

		order[i - 1] = order[other];
		order[other] = last;
	}
	return order;
}

/* Every other page of so much memory of a node is freed, in any order. Nodes without memory are
 * left. */
static void shuffle_node(int node, uint64_t bytes, uint64_t *state)
{
	unsigned long mask = 1ul << node;
	uint32_t i, count = (uint32_t)(bytes / PAGE);
	uint32_t *order;
	char *memory;

	if (syscall(SYS_set_mempolicy, MPOL_BIND, &mask, MOST_NODES + 1))
		return;
	memory = mmap(NULL, 2 * bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED || madvise(memory, 2 * bytes, MADV_NOHUGEPAGE) ||
	    madvise(memory, 2 * bytes, MADV_POPULATE_WRITE))
		die("%lu bytes of node %d", 2 * bytes, node);
	order = any_order(count, state);
	for (i = 0; i < count; i++)
		if (madvise(memory + 2 * order[i] * PAGE, PAGE, MADV_DONTNEED))
			die("madvise");
	free(order);
	syscall(SYS_set_mempolicy, MPOL_DEFAULT, NULL, 0);
}

/* The same file on other pages. */
static void write_anew(const char *path)
{
	static char block[BLOCK];
	char other[4096];
	struct stat about;
	ssize_t length;
	int from, to;

	snprintf(other, sizeof(other), "%s.anew", path);
	from = open(path, O_RDONLY | O_CLOEXEC);
	if (from < 0 || fstat(from, &about))
		die("%s", path);
	to = open(other, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, about.st_mode & 0777);
	if (to < 0)
		die("%s", other);
	while ((length = read(from, block, sizeof(block))) > 0)
		if (write(to, block, (size_t)length) != length)
			die("%s", other);
	if (length < 0 || close(to) || close(from) || rename(other, path))
		die("%s", path);
}

/* Adds the page frames of a file to a checksum: FNV-1a over their numbers. */
static void add_frames(const char *path, uint64_t *sum)
{
	int pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	volatile char *page;
	struct stat about;
	uint64_t entry;
	char *memory;

	if (pagemap < 0)
		die("/proc/self/pagemap");
	if (fd < 0 || fstat(fd, &about))
		die("%s", path);
	memory = mmap(NULL, (size_t)about.st_size + 1, PROT_READ, MAP_SHARED, fd, 0);
	if (memory == MAP_FAILED)
		die("%s", path);
	for (page = memory; page < memory + about.st_size; page += PAGE) {
		(void)*page;
		if (pread(pagemap, &entry, sizeof(entry),
			  (off_t)((uintptr_t)page / PAGE * sizeof(entry))) != sizeof(entry))
			die("/proc/self/pagemap");
		*sum = (*sum ^ (entry & FRAME_OF_ENTRY)) * 0x100000001b3;
	}
	munmap(memory, (size_t)about.st_size + 1);
	close(fd);
	close(pagemap);
}

void shuffle(uint64_t mib_of_node, uint64_t seed, const char *list)
{
	FILE *files = fopen(list, "re");
	uint64_t frames = 0xcbf29ce484222325;
	char path[4000];
	int node;

	if (!files)
		die("%s", list);
	for (node = 0; node < MOST_NODES; node++)
		shuffle_node(node, mib_of_node << 20, &seed);
	while (fgets(path, sizeof(path), files)) {
		path[strcspn(path, "\n")] = 0;
		write_anew(path);
		add_frames(path, &frames);
	}
	fclose(files);
	printf("frames=%016llx\n", (unsigned long long)frames);
}
