// SPDX-License-Identifier: GPL-2.0-only
/*
 *   tasks follow MS
 *
 * Prints how many CPUs it can get, whenever that changes. It uses none of them.
 *
 *   cpus=3 ms=140
 */
#include "tasks.h"
#include "../../../hearth-hints/include/hearth.h"

int command_follow(int argc, char **argv)
{
	uint64_t begin = now_ns(), end = begin + number(argc, argv, 0, 1000) * 1000000ULL;
	int before = 0, cpus = hearth_cpus();

	while (now_ns() < end) {
		if (cpus != before) {
			printf("cpus=%d ms=%d\n", cpus, (int)((now_ns() - begin) / 1000000));
			fflush(stdout);
		}
		before = cpus;
		cpus = hearth_cpus_wait(before, 1000);
	}
	return 0;
}
