// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Chat rooms over TCP, after the paper on data affinity (section 5.1) and the benchmark that it
 * used: each user of a room sends messages of 100 bytes to the server, which passes each on to all
 * of the room. A user has four threads: one at each end that reads, and one that writes. The room
 * is the fragment. By hand: the threads of a room are bound to its CPU.
 *
 *	chat WAY ROOMS USERS MESSAGES
 */
#include "../../include/hearth.h"
#include "program.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#define MESSAGE 100
#define WAITING 4096

/* Messages that wait for the thread that writes them to one user. */
struct box {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	char (*messages)[MESSAGE];
	long begin, end; /* ever growing; the place is modulo WAITING */
};

struct user {
	struct room *room;
	int client, server; /* the two ends */
	struct box box;
	uint64_t sum; /* of what came */
};

struct room {
	uint64_t fragment;
	int cpu;
	struct user *users;
};

static enum ways way;
static long user_count, messages;

static void enter(const struct user *user)
{
	if (way == HINTS)
		hearth_enter(user->room->fragment);
}

static void leave(void)
{
	if (way == HINTS)
		hearth_leave();
}

static void start(const struct user *user)
{
	if (way == HAND)
		bind_to(user->room->cpu);
	wait_for_all();
}

/* Whole messages; 0 at the end. */
static int read_message(int from, char *message)
{
	ssize_t got = recv(from, message, MESSAGE, MSG_WAITALL);

	if (got < 0)
		fail("recv");
	return got == MESSAGE;
}

static void write_message(int to, const char *message)
{
	size_t done = 0;

	while (done < MESSAGE) {
		ssize_t put = send(to, message + done, MESSAGE - done, MSG_NOSIGNAL);

		if (put < 0)
			fail("send");
		done += (size_t)put;
	}
}

static void put(struct box *box, const char *message)
{
	pthread_mutex_lock(&box->lock);
	while (box->end - box->begin == WAITING)
		pthread_cond_wait(&box->changed, &box->lock);
	memcpy(box->messages[box->end++ % WAITING], message, MESSAGE);
	pthread_cond_signal(&box->changed);
	pthread_mutex_unlock(&box->lock);
}

static void take(struct box *box, char *message)
{
	pthread_mutex_lock(&box->lock);
	while (box->end == box->begin)
		pthread_cond_wait(&box->changed, &box->lock);
	memcpy(message, box->messages[box->begin++ % WAITING], MESSAGE);
	pthread_cond_signal(&box->changed);
	pthread_mutex_unlock(&box->lock);
}

static void *client_writes(void *given)
{
	struct user *user = given;
	char message[MESSAGE];
	long at;

	start(user);
	for (at = 0; at < messages; at++) {
		enter(user);
		memset(message, (int)(at % 100) + 1, MESSAGE);
		write_message(user->client, message);
		leave();
	}
	return NULL;
}

static void *client_reads(void *given)
{
	struct user *user = given;
	long left = messages * user_count;
	char message[MESSAGE];

	start(user);
	while (left-- && read_message(user->client, message)) {
		enter(user);
		user->sum += (uint64_t)message[MESSAGE / 2];
		leave();
	}
	return NULL;
}

static void *server_reads(void *given)
{
	struct user *user = given;
	char message[MESSAGE];
	long left = messages, to;

	start(user);
	while (left-- && read_message(user->server, message)) {
		enter(user);
		for (to = 0; to < user_count; to++)
			put(&user->room->users[to].box, message);
		leave();
	}
	return NULL;
}

static void *server_writes(void *given)
{
	struct user *user = given;
	long left = messages * user_count;
	char message[MESSAGE];

	start(user);
	while (left--) {
		take(&user->box, message);
		enter(user);
		write_message(user->server, message);
		leave();
	}
	return NULL;
}

/* Both ends of a connection over the loopback interface. */
static void connect_user(int listener, const struct sockaddr_in *address, struct user *user)
{
	int one = 1;

	user->client = socket(AF_INET, SOCK_STREAM, 0);
	if (user->client < 0 || connect(user->client, (const void *)address, sizeof(*address)))
		fail("connect");
	user->server = accept(listener, NULL, NULL);
	if (user->server < 0)
		fail("accept");
	setsockopt(user->client, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	setsockopt(user->server, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
}

static struct user *open_rooms(long rooms)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	int listener = socket(AF_INET, SOCK_STREAM, 0), cpus[CPU_SETSIZE];
	int cpu_count = own_cpus(cpus);
	struct user *users = calloc((size_t)(rooms * user_count), sizeof(*users));
	struct room *all = calloc((size_t)rooms, sizeof(*all));
	socklen_t size = sizeof(address);
	long at;

	if (listener < 0 || bind(listener, (void *)&address, size) || listen(listener, 16) ||
	    getsockname(listener, (void *)&address, &size))
		fail("listen");
	for (at = 0; at < rooms * user_count; at++) {
		struct room *room = &all[at / user_count];

		if (at % user_count == 0)
			*room = (struct room){.fragment = (uint64_t)(at / user_count) + 1,
					      .cpu = cpus[at / user_count % cpu_count],
					      .users = &users[at]};
		users[at].room = room;
		users[at].box.messages = calloc(WAITING, MESSAGE);
		pthread_mutex_init(&users[at].box.lock, NULL);
		pthread_cond_init(&users[at].box.changed, NULL);
		connect_user(listener, &address, &users[at]);
	}
	close(listener);
	return users;
}

int main(int count, char **words)
{
	static void *(*const parts[])(void *) = {client_writes, client_reads, server_reads,
						 server_writes};
	long rooms, user_total, at;
	struct taken before;
	struct user *users;
	pthread_t *threads;
	uint64_t sum = 0;

	way = way_given(count, words, "chat WAY ROOMS USERS MESSAGES");
	rooms = number(words[2], 1);
	user_count = number(words[3], 1);
	messages = number(words[4], 1);
	users = open_rooms(rooms);
	user_total = rooms * user_count;
	threads = calloc((size_t)(4 * user_total), sizeof(*threads));
	expect(4 * user_total);
	for (at = 0; at < 4 * user_total; at++)
		threads[at] = make_thread(parts[at % 4], &users[at / 4]);
	before = run_threads(threads, 4 * user_total);
	for (at = 0; at < user_total; at++)
		sum += users[at].sum;
	report(sum, before);
	return 0;
}
