// SPDX-License-Identifier: MIT OR Apache-2.0
/* Says its number of CPUs, and does other things that its standard input says. */
#include "hearth.h"
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void obey(char *line)
{
	int a = 0, b = 0;
	char word[16] = "";

	sscanf(line, "%15s %d %d", word, &a, &b);
	if (!strcmp(word, "cpus")) {
		printf("%d\n", hearth_cpus());
	} else if (!strcmp(word, "want")) {
		printf("%d\n", hearth_want(a));
	} else if (!strcmp(word, "wait")) {
		printf("%d\n", hearth_cpus_wait(a, b));
	} else if (!strcmp(word, "poll")) {
		struct pollfd fd = {.fd = hearth_cpus_fd(), .events = POLLIN};
		char events[512];

		printf("%d\n", fd.fd < 0 ? -1 : poll(&fd, 1, a));
		while (fd.fd >= 0 && read(fd.fd, events, sizeof(events)) > 0)
			;
	} else if (!strcmp(word, "fork")) {
		fflush(stdout);
		if (!fork()) {
			printf("%d\n", hearth_cpus());
			printf("%d\n", getpid());
			exit(0);
		}
		wait(NULL);
	} else if (!strcmp(word, "again")) {
		execl("/proc/self/exe", "again", NULL);
	}
	fflush(stdout);
}

int main(void)
{
	char line[64];

	/* What a program leaves unread is the next one's. */
	setvbuf(stdin, NULL, _IONBF, 0);
	while (fgets(line, sizeof(line), stdin))
		obey(line);
	return 0;
}
