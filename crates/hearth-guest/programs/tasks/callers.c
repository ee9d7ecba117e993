// SPDX-License-Identifier: GPL-2.0-only
/*
 * Clients of a socket that want nothing but its time.
 *
 *   tasks callers SOCKET COUNT MS
 *       callers=COUNT came=N
 *   For MS ms all of them connect, say nothing, and come again when they are let go; but one that
 * says a byte each 50 ms, and never ends its line. N: how often one was let in.
 */
#include "tasks.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

static int come(const struct sockaddr_un *to)
{
	int caller = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);

	if (caller < 0)
		die("socket");
	if (!connect(caller, (const struct sockaddr *)to, sizeof(*to)))
		return caller;
	close(caller);
	return -1;
}

static bool is_let_go(int caller)
{
	char answer[4096];
	ssize_t count;

	do
		count = recv(caller, answer, sizeof(answer), MSG_DONTWAIT);
	while (count > 0);
	return !count || errno != EAGAIN;
}

int command_callers(int argc, char **argv)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	uint64_t count = number(argc, argv, 1, 100), ms = number(argc, argv, 2, 1000);
	struct rlimit files = {count + 16, count + 16};
	uint64_t end, said = 0, came = 0, i;
	int *callers = calloc(count, sizeof(*callers));

	if (argc < 1 || !callers)
		die("callers");
	strncpy(to.sun_path, argv[0], sizeof(to.sun_path) - 1);
	/* Less are enough where this is not allowed. */
	setrlimit(RLIMIT_NOFILE, &files);
	for (i = 0; i < count; i++)
		callers[i] = -1;
	for (end = now_ns() + ms * NS_PER_MS; now_ns() < end; usleep(1000)) {
		for (i = 0; i < count; i++) {
			if (callers[i] >= 0 && is_let_go(callers[i])) {
				close(callers[i]);
				callers[i] = -1;
			}
			if (callers[i] < 0) {
				callers[i] = come(&to);
				came += callers[i] >= 0;
			}
		}
		if (now_ns() > said + 50 * NS_PER_MS && callers[0] >= 0) {
			send(callers[0], "s", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
			said = now_ns();
		}
	}
	printf("callers=%lu came=%lu\n", count, came);
	return 0;
}
