/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The page of a process: a file DIR/PID of 64 bytes, where DIR is $HEARTH_DIR or
 * /dev/shm/hearth-UID, a folder of that user alone. The process maps it; whoever leads reads and
 * writes it as a file, so that a page that was cut short harms nobody but its owner.
 *
 *	 0  magic    version   pid      want      the process
 *	16  start_time         cpus     why       the process | the leader
 *	32  told_ns            runtime  state     the leader  | the process
 *	48  milli    image     -        -         the leader  | the process
 */
#ifndef HEARTH_PAGE_H
#define HEARTH_PAGE_H

#include <assert.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define HEARTH_PAGE_MAGIC 0x48545248 /* "HRTH" */
#define HEARTH_PAGE_VERSION 1

/* A leader's word is good for so long; it repeats it each second. */
#define HEARTH_TOLD_NS 2000000000LL

/* What bounds the number. */
enum hearth_why {
	HEARTH_WHY_MACHINE = 0, /* the machine has no more */
	HEARTH_WHY_MASK = 1,	/* the CPUs that it may run on */
	HEARTH_WHY_QUOTA = 2,	/* its cgroup's quota, or an ancestor's */
	HEARTH_WHY_SHARE = 3,	/* others want CPUs too */
	HEARTH_WHY_WANT = 4,	/* it wants no more */
};

/* Bits of `runtime`: what follows the number in this process. */
enum hearth_runtime {
	HEARTH_RUNTIME_HINTS = 1 << 0, /* the program itself */
	HEARTH_RUNTIME_GNU = 1 << 1,
	HEARTH_RUNTIME_LLVM = 1 << 2,
	HEARTH_RUNTIME_TBB = 1 << 3,
	HEARTH_RUNTIME_BLAS = 1 << 4,
};

struct hearth_page {
	uint32_t magic;
	uint32_t version;
	uint32_t pid;
	_Atomic uint32_t want; /* CPUs; 0: as many as there are */
	uint64_t start_time;   /* field 22 of /proc/PID/stat: ticks since the machine began */
	_Atomic uint32_t cpus; /* 0: nobody says */
	_Atomic uint32_t why;
	_Atomic uint64_t told_ns; /* CLOCK_MONOTONIC at the leader's last word */
	_Atomic uint32_t runtime;
	_Atomic uint32_t state; /* 0: follows; else hands off, and why */
	_Atomic uint32_t milli; /* the number before it was made whole, in thousandths of a CPU */
	uint32_t image;		/* tells a program from the one that the same process ran before */
	uint32_t rest[2];
};

static_assert(sizeof(struct hearth_page) == 64, "a page has 64 bytes");
static_assert(offsetof(struct hearth_page, want) == 12, "want");
static_assert(offsetof(struct hearth_page, start_time) == 16, "start_time");
static_assert(offsetof(struct hearth_page, cpus) == 24, "cpus");
static_assert(offsetof(struct hearth_page, told_ns) == 32, "told_ns");
static_assert(offsetof(struct hearth_page, runtime) == 40, "runtime");
static_assert(offsetof(struct hearth_page, milli) == 48, "milli");
static_assert(offsetof(struct hearth_page, image) == 52, "image");
static_assert(ATOMIC_INT_LOCK_FREE == 2 && ATOMIC_LLONG_LOCK_FREE == 2, "other processes write it");

/* This process's page, made at the first call. Where none can be made: one that nobody reads. */
struct hearth_page *hearth_page(void);

/* Whether anybody can read it. */
int hearth_page_is_shared(void);

/* The CPUs of the mask and of the quotas of the own cgroup and its ancestors, at least 1. */
int hearth_limit(void);

/* Reads a file of at most `size` - 1 bytes as a string; its length, or -1. */
long hearth_read(const char *path, char *text, size_t size);

#endif
