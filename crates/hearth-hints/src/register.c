// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Tells the Hearth daemon where a thread's word is, over the socket /run/hearth/words, or another
 * that HEARTH_WORDS names:
 *
 *	to the daemon     version u32 | thread id u32 | address of the fragment's number u64
 *	from the daemon   0, or an error's number, as i32
 *
 * A thread's first word is only announced: the same goes to the socket beside it that takes
 * datagrams, and nobody answers. Another socket in the place of the one that was known is another
 * daemon, to be told anew.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "clock.h"
#include "fragments.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#define PATIENCE_US 50000
/* Behind the path of the one socket is the other. */
#define HEARTH_ANNOUNCED "-announced"

static const char *socket_path(void)
{
	const char *given = secure_getenv("HEARTH_WORDS");

	return given && *given ? given : "/run/hearth/words";
}

static _Atomic uint64_t scheduler;

void hearth_look_for_scheduler(void)
{
	int kept = errno;
	struct stat found;
	uint64_t number = 0;

	/* The time too, for a number of an inode may be used again. */
	if (!stat(socket_path(), &found) && S_ISSOCK(found.st_mode))
		number = ((uint64_t)found.st_ino * 31 + (uint64_t)found.st_ctim.tv_sec) * 31 +
			 (uint64_t)found.st_ctim.tv_nsec + 1;
	atomic_store_explicit(&scheduler, number, memory_order_relaxed);
	errno = kept;
}

uint64_t hearth_scheduler(void)
{
	return atomic_load_explicit(&scheduler, memory_order_relaxed);
}

/* What the daemon is told. */
struct said {
	uint32_t version, thread;
	uint64_t address;
};

static struct said of_thread(const struct hearth_fragment_word *word)
{
	return (struct said){HEARTH_FRAGMENT_WORD_VERSION, (uint32_t)syscall(SYS_gettid),
			     (uint64_t)(uintptr_t)&word->fragment};
}

/* A socket of the daemon's, and its path with this behind it; -1 if there is none. */
static int daemon_socket(int type, const char *behind, struct sockaddr_un *address)
{
	const char *path = socket_path();
	size_t room = sizeof(address->sun_path);

	address->sun_family = AF_UNIX;
	if ((size_t)snprintf(address->sun_path, room, "%s%s", path, behind) >= room)
		return -1;
	return socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
}

/* A connection on which the daemon was told, or -1. */
static int connect_and_tell(const struct said *said)
{
	const struct timeval patience = {.tv_usec = PATIENCE_US};
	struct sockaddr_un address;
	int made = daemon_socket(SOCK_STREAM, "", &address);

	if (made < 0)
		return -1;
	setsockopt(made, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	setsockopt(made, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	if (!connect(made, (struct sockaddr *)&address, sizeof(address)) &&
	    send(made, said, sizeof(*said), MSG_NOSIGNAL) == sizeof(*said))
		return made;
	close(made);
	return -1;
}

int hearth_announce_thread(const struct hearth_fragment_word *word)
{
	struct said said = of_thread(word);
	struct sockaddr_un address;
	int kept = errno, made, is_told;

	if (!hearth_scheduler())
		return 0;
	made = daemon_socket(SOCK_DGRAM, HEARTH_ANNOUNCED, &address);
	is_told = made >= 0 && sendto(made, &said, sizeof(said), MSG_DONTWAIT | MSG_NOSIGNAL,
				      (struct sockaddr *)&address, sizeof(address)) == sizeof(said);
	if (made >= 0)
		close(made);
	/* A queue that is full has been announced to by others. Connections have a longer one. */
	if (!is_told) {
		made = connect_and_tell(&said);
		is_told = made >= 0;
		if (is_told)
			close(made);
	}
	errno = kept;
	return is_told;
}

/* A thread that had no answer in time does not ask again for so long: the daemon is busy, and may
 * come to it yet, or hangs. */
#define REST_NS 1000000000LL

enum hearth_answer hearth_register_thread(const struct hearth_fragment_word *word,
					  int64_t *rests_until_ns)
{
	struct said said = of_thread(word);
	enum hearth_answer result = HEARTH_NO;
	int kept = errno, answer, daemon;

	if (!hearth_scheduler())
		return HEARTH_NO;
	if (hearth_clock_ns(CLOCK_MONOTONIC_COARSE) < *rests_until_ns)
		return HEARTH_LATER;
	errno = 0;
	daemon = connect_and_tell(&said);
	if (daemon >= 0) {
		if (recv(daemon, &answer, sizeof(answer), MSG_WAITALL) == sizeof(answer))
			result = answer ? HEARTH_NO : HEARTH_YES;
		close(daemon);
	}
	if (result != HEARTH_YES && errno == EAGAIN) {
		result = HEARTH_LATER;
		*rests_until_ns = hearth_clock_ns(CLOCK_MONOTONIC_COARSE) + REST_NS;
	}
	errno = kept;
	return result;
}
