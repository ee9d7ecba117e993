/* SPDX-License-Identifier: GPL-2.0-only */
/* What the guest's programs share: clock, CPU masks, small files, giving up. */
#ifndef HEARTH_GUEST_COMMON_H
#define HEARTH_GUEST_COMMON_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_MS 1000000ull
#define NS_PER_S 1000000000ull

/* One instruction takes 2^3 ns of a deterministic guest's time (-icount shift=3). */
#define NS_PER_INSTRUCTION 8.0

static inline __attribute__((noreturn, format(printf, 1, 2))) void die(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fprintf(stderr, ": %s\n", strerror(errno));
	exit(1);
}

static inline uint64_t clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

static inline uint64_t now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

/* CPU time of the calling thread. */
static inline uint64_t cpu_time_ns(void)
{
	return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

static inline void sleep_ns(uint64_t ns)
{
	struct timespec t = {.tv_sec = ns / NS_PER_S, .tv_nsec = ns % NS_PER_S};

	while (nanosleep(&t, &t) && errno == EINTR)
		;
}

static inline int nr_cpus(void)
{
	return (int)sysconf(_SC_NPROCESSORS_ONLN);
}

static inline void set_mask(pid_t pid, const cpu_set_t *mask)
{
	if (sched_setaffinity(pid, sizeof(*mask), mask))
		die("sched_setaffinity of %d", (int)pid);
}

static inline void pin(int cpu)
{
	cpu_set_t mask;

	CPU_ZERO(&mask);
	CPU_SET(cpu, &mask);
	set_mask(0, &mask);
}

static inline void pin_away_from(int cpu)
{
	cpu_set_t mask;
	int other;

	CPU_ZERO(&mask);
	for (other = 0; other < nr_cpus(); other++)
		if (other != cpu)
			CPU_SET(other, &mask);
	set_mask(0, &mask);
}

/* The first line of a small file; "-" if there is none. */
static inline void read_line(const char *path, char *line, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length = fd < 0 ? 0 : read(fd, line, size - 1);

	if (fd >= 0)
		close(fd);
	line[length > 0 ? length : 0] = 0;
	line[strcspn(line, "\n")] = 0;
	if (!line[0])
		snprintf(line, size, "-");
}

static inline int compare_u64(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

	return a < b ? -1 : a > b;
}

/* 2 * rounds instructions, whatever the compiler thinks. */
static inline void spin(uint64_t rounds)
{
	__asm__ volatile("1: dec %0\n\tjnz 1b" : "+r"(rounds) : : "cc");
}

#endif
