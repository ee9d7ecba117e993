// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a guest gets from its host after it has booted: hearth-load pause has the
 * machine stand still until the host goes on with it, hearth-load prints the file that
 * the host has put into QEMU's fw_cfg as opt/hearth.
 *
 * Both go through ports, so both happen at the same instruction each time.
 */
#include <arpa/inet.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/io.h>

#define NAME "opt/hearth"

/* pvpanic: a guest that says that it has panicked is paused. */
#define PANIC_PORT 0x505
#define PANICKED 1

#define SELECT_PORT 0x510
#define DATA_PORT 0x511
#define DIRECTORY 0x19

struct file {
	uint32_t size;
	uint16_t key, reserved;
	char name[56];
};

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

static int print(const struct file *file)
{
	size_t size = ntohl(file->size);
	char *data = malloc(size);

	if (!data)
		return fail("memory for " NAME);
	select_key(ntohs(file->key));
	read_data(data, size);
	return fwrite(data, 1, size, stdout) == size ? 0 : fail("output");
}

int main(int argc, char **argv)
{
	struct file file;
	uint32_t files;

	if (ioperm(PANIC_PORT, 1, 1) || ioperm(SELECT_PORT, 2, 1))
		return fail("ports");
	if (argc > 1 && !strcmp(argv[1], "pause")) {
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
