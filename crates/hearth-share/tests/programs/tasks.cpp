// SPDX-License-Identifier: GPL-2.0-only
// For each line that it reads, a parallel sum, and the limit that oneTBB goes by.
#include <cstdio>
#include <oneapi/tbb/blocked_range.h>
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/parallel_reduce.h>

int main(int count, char **)
{
	using oneapi::tbb::global_control;
	char line[64];
	global_control *own =
		count > 1 ? new global_control(global_control::max_allowed_parallelism, 3)
			  : nullptr;

	while (fgets(line, sizeof(line), stdin)) {
		long sum = oneapi::tbb::parallel_reduce(
			oneapi::tbb::blocked_range<long>(0, 1000), 0L,
			[](const oneapi::tbb::blocked_range<long> &part, long sum) {
				for (long i = part.begin(); i < part.end(); i++)
					sum += i;
				return sum;
			},
			[](long one, long other) { return one + other; });
		printf("threads %ld sum %ld\n",
		       (long)global_control::active_value(global_control::max_allowed_parallelism),
		       sum);
		fflush(stdout);
	}
	delete own;
	return 0;
}
