// SPDX-License-Identifier: GPL-2.0-only
/*
 * Small programs whose scheduling is known, for tests of a scheduler.
 *
 *   tasks spin MS NICE,NICE... [MASK [FIRST-MASK]]   spinners; their shares and when each ran
 *   tasks sleepers COUNT MS SPINNERS [PERIOD-US]     timers' latency beside spinners
 *   tasks yielders COUNT YIELDS CPU                  threads of one CPU that take turns
 *   tasks pingpong TRIPS [MASK]                      one byte between two processes
 *   tasks forks COUNT AT-ONCE                        children that exit at once
 *   tasks exits                                      children that end in every state
 *   tasks affinity COUNT CHANGES                     masks that change under spinners
 *   tasks newcomers MS COUNT                         tasks that come to a crowded CPU
 *   tasks demoted FIFO-MS MS CPU                     a task that was real-time, beside spinners
 *   tasks returned COUNT SLEEP-MS HOG-MS CPU         tasks that were real-time, and slept meanwhile
 *   tasks hog CPU MS                                 a real-time task that does not sleep
 *   tasks memory MIB ROUNDS                          touches memory again and again
 *   tasks pages MIB HOME-CPU CPU MS [WHAT]           memory of one node, used from another
 *   tasks gaps MS COUNT                              tasks that note when they run
 *   tasks declare MS FRAGMENT,... [HOW]              tasks that declare what they work on
 *   tasks fragments THREADS EACH                    threads that declare many, one after the other
 *   tasks callers SOCKET COUNT MS                    clients that want nothing but time
 *   tasks follow MS                                  prints how many CPUs it can get
 *
 * What runs for MS ms in spin and gaps ends earlier when it is sent SIGTERM, and prints what it
 * has. They print lines of key=value pairs, which the top of each command's file explains. The exit
 * status is 0 if what the command itself can check was right.
 */
#include "tasks.h"

static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
} commands[] = {
	{"spin", command_spin},		{"sleepers", command_sleepers},
	{"yielders", command_yielders}, {"pingpong", command_pingpong},
	{"forks", command_forks},	{"exits", command_exits},
	{"affinity", command_affinity}, {"newcomers", command_newcomers},
	{"demoted", command_demoted},	{"hog", command_hog},
	{"memory", command_memory},	{"pages", command_pages},
	{"gaps", command_gaps},		{"follow", command_follow},
	{"declare", command_declare},	{"fragments", command_fragments},
	{"callers", command_callers},	{"returned", command_returned},
};

int main(int argc, char **argv)
{
	size_t i;

	for (i = 0; argc > 1 && i < sizeof(commands) / sizeof(commands[0]); i++)
		if (!strcmp(argv[1], commands[i].name))
			return commands[i].run(argc - 2, argv + 2);
	fprintf(stderr, "tasks: no such command; see the top of main.c\n");
	return 2;
}
