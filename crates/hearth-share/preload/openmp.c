// SPDX-License-Identifier: GPL-2.0-only
/*
 * What GNU's and LLVM's OpenMP have in common: which parallel regions follow. Left as they are:
 * regions within regions, and those of a league of teams, where the threads of each region are a
 * part of many.
 */
#include "follow.h"

int omp_get_level(void);
int omp_get_max_threads(void);
int omp_get_num_teams(void);

int follow_region(const void *caller)
{
	static struct follow_function level = {.name = "omp_get_level"};
	static struct follow_function teams = {.name = "omp_get_num_teams"};
	static struct follow_function max_threads = {.name = "omp_get_max_threads"};
	__typeof__(&omp_get_level) get_level = follow_real(&level, caller);
	__typeof__(&omp_get_num_teams) get_teams = follow_real(&teams, caller);
	__typeof__(&omp_get_max_threads) get_max_threads = follow_real(&max_threads, caller);

	if (!get_level || !get_teams || !get_max_threads)
		return 0;
	return get_level() > 0 || get_teams() > 1 ? 0 : get_max_threads();
}
