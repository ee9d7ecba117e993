// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a guest gets from its host after it has booted: hearth-load pause has the
 * machine stand still until the host goes on with it, when nothing else runs there;
 * hearth-load prints the file that the host has put into QEMU's fw_cfg as opt/hearth.
 *
 * Both go through ports, so both happen at the same instruction each time. The host copies
 * the file into a huge page, many bytes at a port's write; a page of another sort might be
 * elsewhere by then.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/io.h>
#include <sys/mman.h>
#include <unistd.h>

#define NAME "opt/hearth"

/* pvpanic: a guest that says that it has panicked is paused. */
#define PANIC_PORT 0x505
#define PANICKED 1

/* A second. */
#define MOST_TRIES 1000
#define TRY_US 1000

#define SELECT_PORT 0x510
#define DATA_PORT 0x511
#define DMA_PORT 0x514
#define DIRECTORY 0x19

#define HUGE_PAGE (2ul << 20)
#define HUGE_PAGES "/proc/sys/vm/nr_hugepages"
/* Of the page, what is not for the order to the host. */
#define MOST (HUGE_PAGE / 2)

struct file {
	uint32_t size;
	uint16_t key, reserved;
	char name[56];
};

/* An order to the host, with its most significant bytes first. */
struct order {
	uint32_t what;
	uint32_t bytes;
	uint64_t address;
};

#define ERROR 1
#define READ 2

static int fail(const char *what)
{
	perror(what);
	return 1;
}

static void select_key(uint16_t key)
{
	outw(key, SELECT_PORT);
}

static void read_data(void *data, size_t size)
{
	insb(DATA_PORT, data, size);
}

static int keep_huge_pages(const char *number)
{
	int file = open(HUGE_PAGES, O_WRONLY);
	int done = file >= 0 && write(file, number, 1) == 1;

	close(file);
	return done;
}

static uint64_t physical(const void *page)
{
	long size = sysconf(_SC_PAGESIZE);
	off_t place = (uintptr_t)page / size * sizeof(uint64_t);
	int file = open("/proc/self/pagemap", O_RDONLY);
	uint64_t entry = 0;

	if (file < 0 || pread(file, &entry, sizeof(entry), place) != sizeof(entry))
		return 0;
	close(file);
	return (entry & ((1ull << 55) - 1)) * size;
}

static int copy(char *page, uint64_t address, size_t size)
{
	volatile struct order *order = (void *)(page + MOST);
	uint64_t place = address + MOST;

	while (size) {
		size_t bytes = size < MOST ? size : MOST;

		order->bytes = htonl(bytes);
		order->address = htobe64(address);
		order->what = htonl(READ);
		__sync_synchronize();
		outl(htonl(place >> 32), DMA_PORT);
		outl(htonl((uint32_t)place), DMA_PORT + 4);
		if (order->what & htonl(ERROR)) {
			fputs("the host does not copy " NAME "\n", stderr);
			return 1;
		}
		if (fwrite(page, 1, bytes, stdout) != bytes)
			return fail("output");
		size -= bytes;
	}
	return 0;
}

static int print(const struct file *file)
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | MAP_POPULATE, failed;
	uint64_t address;
	char *page;

	if (!keep_huge_pages("1"))
		return fail(HUGE_PAGES);
	page = mmap(NULL, HUGE_PAGE, PROT_READ | PROT_WRITE, flags, -1, 0);
	if (page == MAP_FAILED)
		return fail("a huge page");
	address = physical(page);
	if (!address)
		return fail("the huge page's address");
	select_key(ntohs(file->key));
	failed = copy(page, address, ntohl(file->size));
	munmap(page, HUGE_PAGE);
	keep_huge_pages("0");
	return failed;
}

/* How many tasks run, this one among them; 0 if the kernel does not say. */
static int running(void)
{
	FILE *file = fopen("/proc/loadavg", "r");
	int tasks = 0;

	if (!file)
		return 0;
	if (fscanf(file, "%*s %*s %*s %d/", &tasks) != 1)
		tasks = 0;
	fclose(file);
	return tasks;
}

/*
 * The host stops a machine's CPUs at a time of its own, all but the one that asks for it. Nobody
 * notices that where the others idle.
 */
static void wait_for_rest(void)
{
	int tries;

	for (tries = 0; tries < MOST_TRIES && running() != 1; tries++)
		usleep(TRY_US);
}

int main(int argc, char **argv)
{
	struct file file;
	uint32_t files;

	if (ioperm(PANIC_PORT, 1, 1) || ioperm(SELECT_PORT, 2, 1) || ioperm(DMA_PORT, 8, 1))
		return fail("ports");
	if (argc > 1 && !strcmp(argv[1], "pause")) {
		wait_for_rest();
		outb(PANICKED, PANIC_PORT);
		return 0;
	}
	select_key(DIRECTORY);
	read_data(&files, sizeof(files));
	for (files = ntohl(files); files; files--) {
		read_data(&file, sizeof(file));
		if (!strncmp(file.name, NAME, sizeof(file.name)))
			return print(&file);
	}
	fputs("the host has given no " NAME "\n", stderr);
	return 1;
}
