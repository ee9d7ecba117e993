// SPDX-License-Identifier: GPL-2.0-only
/*
 * LLVM's OpenMP, and Intel's, through OpenMP's interface for tools (OpenMP 5.0, section 4): the runtime
 * looks for `ompt_start_tool` when it starts, and calls back at the begin and the end of each parallel
 * region. At the begin the number of threads is not yet decided, so setting it there sets it for this
 * region; the user's number is back when the region is over. A num_threads clause has been read by
 * then, and goes first.
 *
 * There is one tool in a program. If the user has one, it is his.
 */
#include "follow.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>

/* Of OpenMP's omp-tools.h, what is used here. */
typedef union {
	uint64_t value;
	void *ptr;
} ompt_data_t;

typedef void (*ompt_function_t)(void);
typedef ompt_function_t (*ompt_lookup_t)(const char *name);

struct ompt_start_tool_result {
	int (*initialize)(ompt_lookup_t lookup, int device, ompt_data_t *tool);
	void (*finalize)(ompt_data_t *tool);
	ompt_data_t tool;
};

enum { OMPT_PARALLEL_BEGIN = 3, OMPT_PARALLEL_END = 4 };
#define OMPT_PARALLEL_TEAM 0x80000000u /* a region, not a league of teams */

static int (*get_level)(void);
static int (*get_num_teams)(void);
static int (*get_max_threads)(void);
static void (*set_num_threads)(int threads);

/* Notes the user's number in what the runtime keeps for the region; 0 where it was left alone. */
static void region_begins(ompt_data_t *task, const void *frame, ompt_data_t *region, unsigned int asked,
			  int flags, const void *caller)
{
	int most, threads;

	(void)task, (void)frame, (void)asked;
	region->value = 0;
	if (!((unsigned int)flags & OMPT_PARALLEL_TEAM) || get_level() > 0 || get_num_teams() > 1)
		return;
	most = get_max_threads();
	threads = follow_threads(HEARTH_RUNTIME_LLVM, most, caller);
	if (threads >= most)
		return;
	region->value = (uint64_t)most;
	set_num_threads(threads);
}

static void region_ends(ompt_data_t *region, ompt_data_t *task, int flags, const void *caller)
{
	(void)task, (void)flags, (void)caller;
	if (region->value)
		set_num_threads((int)region->value);
}

/* The runtime that asks is the one that the program sees, or one in a part of the program only. */
static bool find_runtime(const void *caller)
{
	static struct follow_function level = { .name = "omp_get_level" };
	static struct follow_function teams = { .name = "omp_get_num_teams" };
	static struct follow_function most = { .name = "omp_get_max_threads" };
	static struct follow_function set = { .name = "omp_set_num_threads" };

	get_level = follow_real(&level, caller);
	get_num_teams = follow_real(&teams, caller);
	get_max_threads = follow_real(&most, caller);
	set_num_threads = follow_real(&set, caller);
	return get_level && get_num_teams && get_max_threads && set_num_threads;
}

static int initialize(ompt_lookup_t lookup, int device, ompt_data_t *tool)
{
	int (*set_callback)(int event, ompt_function_t callback);

	(void)device, (void)tool;
	set_callback = (int (*)(int, ompt_function_t))lookup("ompt_set_callback");
	if (!set_callback || !find_runtime((const void *)lookup))
		return 0;
	return set_callback(OMPT_PARALLEL_BEGIN, (ompt_function_t)region_begins) &&
	       set_callback(OMPT_PARALLEL_END, (ompt_function_t)region_ends);
}

static void finalize(ompt_data_t *tool)
{
	(void)tool;
}

PUBLIC struct ompt_start_tool_result *ompt_start_tool(unsigned int version, const char *runtime)
{
	static struct ompt_start_tool_result result = { initialize, finalize, { 0 } };
	struct ompt_start_tool_result *(*next)(unsigned int, const char *);
	struct ompt_start_tool_result *users = NULL;
	const char *libraries = getenv("OMP_TOOL_LIBRARIES");

	next = (struct ompt_start_tool_result * (*)(unsigned int, const char *)) dlsym(RTLD_NEXT, "ompt_start_tool");
	if (next)
		users = next(version, runtime);
	if (users || (libraries && *libraries))
		return users;
	return &result;
}
