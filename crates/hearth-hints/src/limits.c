// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * What a process may use at most: the CPUs of its mask, and the CPU time that the quotas of its
 * cgroup and of all that are above it allow. Looked up at most once a second, without allocation.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "clock.h"
#include "page.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATH_SIZE 1024
#define LOOK_NS 1000000000LL

/* Where a hierarchy with the CPU controller is mounted, and which of its cgroups is there. */
struct hierarchy {
	char mount[PATH_SIZE];
	char root[PATH_SIZE];
	int is_v2;
};

long hearth_read(const char *path, char *text, size_t size)
{
	int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	size_t length = 0;
	ssize_t got = 0;

	if (file < 0)
		return -1;
	while (length < size - 1 && (got = read(file, text + length, size - 1 - length)) > 0)
		length += (size_t)got;
	close(file);
	text[length] = '\0';
	return got < 0 ? -1 : (long)length;
}

/*
 * Calls `each` with every line of a file, cut at `PATH_SIZE * 3` bytes, until it returns other than
 * 0, and returns that.
 */
static int each_line(const char *path, int (*each)(char *line, void *with), void *with)
{
	char line[PATH_SIZE * 3], block[1024];
	int file = open(path, O_RDONLY | O_CLOEXEC), done = 0;
	size_t length = 0;
	ssize_t got, at;

	if (file < 0)
		return 0;
	while (!done && (got = read(file, block, sizeof(block))) > 0) {
		for (at = 0; at < got && !done; at++) {
			if (block[at] != '\n') {
				if (length < sizeof(line) - 1)
					line[length++] = block[at];
				continue;
			}
			line[length] = '\0';
			length = 0;
			done = each(line, with);
		}
	}
	close(file);
	return done;
}

/* Whether a list of words between commas has this one. */
static int has_word(const char *list, const char *word)
{
	size_t length = strlen(word);

	for (; list; list = strchr(list, ',')) {
		list += *list == ',';
		if (!strncmp(list, word, length) && strchr(",\n ", list[length]))
			return 1;
	}
	return 0;
}

/* Of /proc/self/mountinfo: "ID PARENT DEVICE ROOT MOUNT OPTIONS ... - TYPE SOURCE OPTIONS" */
static int is_cpu_mount(char *line, void *with)
{
	struct hierarchy *found = with;
	char type[16], options[256], *after = strstr(line, " - ");

	if (!after || sscanf(after, " - %15s %*s %255s", type, options) != 2)
		return 0;
	if (strcmp(type, "cgroup2") && (strcmp(type, "cgroup") || !has_word(options, "cpu")))
		return 0;
	static_assert(PATH_SIZE == 1024, "the widths below");
	if (sscanf(line, "%*s %*s %*s %1023s %1023s", found->root, found->mount) != 2)
		return 0;
	found->is_v2 = !strcmp(type, "cgroup2");
	/* Version 1 is used where it has the controller, so version 2 is only what is left. */
	return !found->is_v2;
}

struct path_of {
	int is_v2;
	char path[PATH_SIZE];
};

/* A line of /proc/self/cgroup: "0::PATH", or "NUMBER:CONTROLLERS:PATH" */
static int is_cgroup_line(char *line, void *with)
{
	struct path_of *own = with;
	char *controllers = strchr(line, ':'), *path;

	if (!controllers || !(path = strchr(controllers + 1, ':')))
		return 0;
	*path++ = '\0';
	controllers++;
	if (own->is_v2 ? *controllers : !has_word(controllers, "cpu"))
		return 0;
	snprintf(own->path, sizeof(own->path), "%s", path);
	return 1;
}

/* The folder of the own cgroup; 0 if it is not to be seen. `top` gets the length of the mount. */
static int own_folder(char *folder, size_t size, size_t *top, int *is_v2)
{
	struct hierarchy cpu = {.mount = ""};
	struct path_of own = {.path = ""};
	const char *below;
	size_t root;
	int length;

	each_line("/proc/self/mountinfo", is_cpu_mount, &cpu);
	own.is_v2 = *is_v2 = cpu.is_v2;
	if (!*cpu.mount || !each_line("/proc/self/cgroup", is_cgroup_line, &own))
		return 0;
	/* A container may see its part of the hierarchy as the whole, under the host's path. */
	root = strlen(cpu.root);
	below = own.path;
	if (root > 1) {
		below = own.path + root;
		if (strncmp(own.path, cpu.root, root) || (*below && *below != '/'))
			below = "";
	}
	if (strstr(below, "/.."))
		below = "";
	*top = strlen(cpu.mount);
	length = snprintf(folder, size, "%s%s", cpu.mount, strcmp(below, "/") ? below : "");
	return length > 0 && (size_t)length < size;
}

/* A file of a cgroup; 0 if it has none. */
static int read_file(const char *folder, const char *name, char *text, size_t size)
{
	char path[PATH_SIZE * 2 + 32];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return hearth_read(path, text, size) > 0;
}

/* The CPUs that the quota of one cgroup allows, made whole upwards; INT_MAX without one. */
static int quota_of(const char *folder, int is_v2)
{
	char text[64], period_text[64];
	long long quota, period;

	if (is_v2) {
		if (!read_file(folder, "cpu.max", text, sizeof(text)) ||
		    sscanf(text, "%lld %lld", &quota, &period) != 2)
			return INT_MAX;
	} else {
		if (!read_file(folder, "cpu.cfs_quota_us", text, sizeof(text)) ||
		    !read_file(folder, "cpu.cfs_period_us", period_text, sizeof(period_text)))
			return INT_MAX;
		quota = atoll(text);
		period = atoll(period_text);
	}
	if (quota <= 0 || period <= 0 || quota / period >= INT_MAX)
		return INT_MAX;
	return (int)((quota - 1) / period + 1);
}

/* The least quota from the own cgroup up to the topmost that is to be seen. */
static int quota_limit(void)
{
	char folder[PATH_SIZE * 2];
	int is_v2, least = INT_MAX;
	size_t top;

	if (!own_folder(folder, sizeof(folder), &top, &is_v2))
		return least;
	for (;;) {
		char *last = strrchr(folder, '/');
		int quota = quota_of(folder, is_v2);

		least = quota < least ? quota : least;
		if (strlen(folder) <= top || !last)
			return least;
		*last = '\0';
	}
}

/* The CPUs that the process's first thread may run on. A kernel for many CPUs has a large mask. */
static int mask_limit(void)
{
	unsigned long mask[65536 / (8 * sizeof(unsigned long))];
	size_t size;
	int failed, word, count = 0;

	for (size = 128; size <= sizeof(mask); size *= 2) {
		memset(mask, 0, size);
		failed = sched_getaffinity(getpid(), size, (cpu_set_t *)mask);
		if (!failed)
			break;
		if (errno != EINVAL)
			return 1;
	}
	if (size > sizeof(mask))
		return 1;
	for (word = 0; word < (int)(size / sizeof(unsigned long)); word++)
		count += __builtin_popcountl(mask[word]);
	return count > 0 ? count : 1;
}

int hearth_limit(void)
{
	static _Atomic int limit;
	static _Atomic int64_t looked_ns;
	int64_t now = hearth_clock_ns(CLOCK_MONOTONIC_COARSE), before = atomic_load(&looked_ns);
	int known = atomic_load(&limit), kept = errno, mask, quota;

	if (known && now - before < LOOK_NS)
		return known;
	/* One thread looks; the others go on with what is known. */
	if (known && !atomic_compare_exchange_strong(&looked_ns, &before, now))
		return known;
	mask = mask_limit();
	quota = quota_limit();
	known = mask < quota ? mask : quota;
	atomic_store(&looked_ns, now);
	atomic_store(&limit, known);
	errno = kept;
	return known;
}
