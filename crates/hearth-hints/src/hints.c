// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The process's page, and what it says. No allocation and no descriptor is kept, but for the one
 * that hearth_cpus_fd() gives: so the program may close what it does not know, and fork.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "../include/hearth.h"
#include "clock.h"
#include "page.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH_SIZE 256
#define MAX_CPUS (1 << 16)

static struct hearth_page nobody; /* in place of a page that cannot be made */
static _Atomic(struct hearth_page *) page;
static pthread_mutex_t begin_lock = PTHREAD_MUTEX_INITIALIZER;
static char page_path[PATH_SIZE];
static int watch = -1;

/* The child's page is its own, to be made at its first call. The parent's stays. */
static void forget_after_fork(void)
{
	struct hearth_page *old = atomic_exchange(&page, NULL);

	if (old && old != &nobody)
		munmap(old, sizeof(*old));
	if (watch >= 0)
		close(watch);
	watch = -1;
	pthread_mutex_init(&begin_lock, NULL);
}

/* Also held over fork(), so that the child finds nothing half made. */
static void lock(void)
{
	pthread_mutex_lock(&begin_lock);
}

static void unlock(void)
{
	pthread_mutex_unlock(&begin_lock);
}

/* The folder of this user's pages, made if need be: -1 unless it is a folder of this user alone. */
static int open_folder(char *name, size_t size)
{
	const char *given = secure_getenv("HEARTH_DIR");
	struct stat found;
	int folder, length;

	length = given && *given ? snprintf(name, size, "%s", given)
				 : snprintf(name, size, "/dev/shm/hearth-%u", geteuid());
	if (length < 0 || (size_t)length >= size)
		return -1;
	mkdir(name, 0700);
	folder = open(name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (folder < 0)
		return -1;
	if (fstat(folder, &found) || found.st_uid != geteuid() || found.st_mode & 077) {
		close(folder);
		return -1;
	}
	return folder;
}

/* Field 22 of /proc/self/stat. The program's name before it may hold anything. */
static uint64_t start_time(void)
{
	char text[1024], *at;
	int field;

	if (hearth_read("/proc/self/stat", text, sizeof(text)) < 0)
		return 0;
	at = strrchr(text, ')');
	for (field = 2; at && field < 22; field++)
		at = strchr(at + 1, ' ');
	return at ? strtoull(at + 1, NULL, 10) : 0;
}

/* A word of the random bytes that the kernel gives to each program that it begins. */
static uint32_t image(void)
{
	const void *random = (const void *)getauxval(AT_RANDOM);
	uint32_t word = 0;

	if (random)
		memcpy(&word, random, sizeof(word));
	return word;
}

static int is_own(const struct hearth_page *found, const struct hearth_page *own)
{
	return found->magic == own->magic && found->version == own->version &&
	       found->pid == own->pid && found->start_time == own->start_time &&
	       (found->image == own->image || !found->image);
}

/* Maps the file, if it is one of this user's that is long enough. */
static struct hearth_page *map(int file)
{
	struct stat found;
	void *mapped;

	if (fstat(file, &found) || !S_ISREG(found.st_mode) || found.st_uid != geteuid() ||
	    found.st_size < (off_t)sizeof(struct hearth_page))
		return NULL;
	mapped =
		mmap(NULL, sizeof(struct hearth_page), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	return mapped == MAP_FAILED ? NULL : mapped;
}

/*
 * The page that another copy of this library has made in this process, or that `hearth exec` made
 * for it before it began. That one knows no image yet.
 */
static struct hearth_page *adopt(int folder, const char *name, const struct hearth_page *own)
{
	int file = openat(folder, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct hearth_page *found;

	if (file < 0)
		return NULL;
	found = map(file);
	close(file);
	if (found && !is_own(found, own)) {
		munmap(found, sizeof(*found));
		found = NULL;
	}
	if (found)
		found->image = own->image;
	return found;
}

/*
 * Has the leader hear of a new page, if there is one that reads the pipe. It is opened for both
 * ways: so there is no signal when the reader goes meanwhile.
 */
static void tell_leader(int folder)
{
	int pipe = openat(folder, "news", O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat found;

	if (pipe < 0)
		return;
	if (!fstat(pipe, &found) && S_ISFIFO(found.st_mode) && write(pipe, "", 1) < 0)
		errno = 0; /* full: there is enough to read */
	close(pipe);
}

/* A page appears whole: it is written beside its place and moved there. */
static struct hearth_page *make(int folder, const char *name, const struct hearth_page *own)
{
	struct hearth_page *made = NULL;
	char beside[32];
	int file;

	snprintf(beside, sizeof(beside), ".%s", name);
	unlinkat(folder, beside, 0);
	file = openat(folder, beside, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (file < 0)
		return NULL;
	if (write(file, own, sizeof(*own)) == (ssize_t)sizeof(*own))
		made = map(file);
	close(file);
	if (made && !renameat(folder, beside, folder, name)) {
		tell_leader(folder);
		return made;
	}
	if (made)
		munmap(made, sizeof(*made));
	unlinkat(folder, beside, 0);
	return NULL;
}

static struct hearth_page *open_page(void)
{
	struct hearth_page own = {
		.magic = HEARTH_PAGE_MAGIC,
		.version = HEARTH_PAGE_VERSION,
		.pid = (uint32_t)getpid(),
		.start_time = start_time(),
		.image = image(),
	};
	char folder_name[PATH_SIZE - 16], name[16];
	struct hearth_page *opened;
	int folder = open_folder(folder_name, sizeof(folder_name));

	if (folder < 0)
		return NULL;
	snprintf(name, sizeof(name), "%u", own.pid);
	snprintf(page_path, sizeof(page_path), "%s/%s", folder_name, name);
	opened = adopt(folder, name, &own);
	if (!opened)
		opened = make(folder, name, &own);
	close(folder);
	return opened;
}

static struct hearth_page *begin(void)
{
	static int forks_are_seen;
	int kept = errno;
	struct hearth_page *begun;

	lock();
	begun = atomic_load(&page);
	if (!begun) {
		if (!forks_are_seen)
			forks_are_seen = !pthread_atfork(lock, unlock, forget_after_fork);
		begun = open_page();
		if (!begun)
			begun = &nobody;
		atomic_store(&page, begun);
	}
	unlock();
	errno = kept;
	return begun;
}

struct hearth_page *hearth_page(void)
{
	struct hearth_page *begun = atomic_load_explicit(&page, memory_order_acquire);

	return begun ? begun : begin();
}

int hearth_page_is_shared(void)
{
	return hearth_page() != &nobody;
}

__attribute__((destructor)) static void remove_page(void)
{
	struct hearth_page *begun = atomic_load(&page);

	if (begun && begun != &nobody && begun->pid == (uint32_t)getpid())
		unlink(page_path);
}

/* Whether a leader has said something, and lately. The coarse clock may lag behind the leader's. */
static int is_told(struct hearth_page *begun, uint32_t cpus)
{
	int64_t told = (int64_t)atomic_load_explicit(&begun->told_ns, memory_order_relaxed);
	int64_t age = (int64_t)((uint64_t)hearth_clock_ns(CLOCK_MONOTONIC_COARSE) - (uint64_t)told);

	return cpus <= MAX_CPUS && age < HEARTH_TOLD_NS && age > -HEARTH_TOLD_NS;
}

int hearth_cpus(void)
{
	struct hearth_page *begun = hearth_page();
	uint32_t cpus = atomic_load_explicit(&begun->cpus, memory_order_relaxed);

	return cpus && is_told(begun, cpus) ? (int)cpus : hearth_limit();
}

int hearth_want(int cpus)
{
	struct hearth_page *begun = hearth_page();

	atomic_store(&begun->want, cpus > 0 ? (uint32_t)cpus : 0);
	return begun == &nobody ? -1 : 0;
}

static int watch_page(void)
{
	int made;

	if (!hearth_page_is_shared())
		return -1;
	made = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (made >= 0 && inotify_add_watch(made, page_path, IN_MODIFY) < 0) {
		close(made);
		made = -1;
	}
	return made;
}

int hearth_cpus_fd(void)
{
	int made;

	hearth_page();
	lock();
	if (watch < 0)
		watch = watch_page();
	made = watch;
	unlock();
	return made;
}

/*
 * A wait looks again and again: half as long as a number lasts at least. A watch of the page would
 * see changes at once, but to end one takes the kernel milliseconds, by which a program would end
 * later.
 */
#define LOOK_MS 50

int hearth_cpus_wait(int seen, int timeout_ms)
{
	int64_t end = hearth_clock_ns(CLOCK_MONOTONIC) + timeout_ms * 1000000LL;
	int cpus, kept = errno;

	while ((cpus = hearth_cpus()) == seen) {
		int64_t look_ms = LOOK_MS;

		if (timeout_ms >= 0) {
			int64_t left_ms =
				(end - hearth_clock_ns(CLOCK_MONOTONIC) + 999999) / 1000000;

			if (left_ms <= 0)
				break;
			look_ms = left_ms < look_ms ? left_ms : look_ms;
		}
		poll(NULL, 0, (int)look_ms);
	}
	errno = kept;
	return cpus;
}
