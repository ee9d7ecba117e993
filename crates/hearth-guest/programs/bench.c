// SPDX-License-Identifier: GPL-2.0-only
/*
 * What scheduling costs, in instructions of a deterministic guest.
 *
 *   bench NAME [COUNT]      NAME: calib pipe pipe-pinned yield futex fork
 *   bench start LOG CMD...  runs CMD with its output in LOG, and waits until sched_ext is enabled
 *   bench memory PID        resident memory of a process
 *
 * Each prints one line of key=value pairs:
 *   bench=NAME ops=N instructions_per_op=X state=S ops_name=O [key=value...]
 *   start=PID state=S ops_name=O after_us=T      or  start=failed status=N after_us=T
 *   memory=PID resident_kib=N peak_kib=N
 * state is that of sched_ext when the measured part ended; ops_name the scheduler's name, or "-".
 *
 * All CPUs of such a guest share one stream of instructions: a round trip counts what both sides
 * and the idle loop between them execute.
 */
#include "common.h"

#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define WARM_UP_TRIPS 200
#define WARM_UP_FORKS 20
#define CALIBRATION_ROUNDS 50000
#define IDLE_GAP_NS 200000
#define START_LIMIT_NS (500 * NS_PER_S)
/* In a deterministic guest, asking takes of the time of who is asked. */
#define START_POLL_NS 10000000

static double instructions(uint64_t ns)
{
	return (double)ns / NS_PER_INSTRUCTION;
}

static void sched_ext_state(char state[32], char name[128])
{
	read_line("/sys/kernel/sched_ext/state", state, 32);
	read_line("/sys/kernel/sched_ext/root/ops", name, 128);
}

static void report(const char *bench, uint64_t ops, uint64_t ns, const char *more)
{
	char state[32], name[128];

	sched_ext_state(state, name);
	printf("bench=%s ops=%lu instructions_per_op=%.1f state=%s ops_name=%s%s\n", bench, ops,
	       instructions(ns) / (double)ops, state, name, more);
}

/* An operation of known length: what the guest's own ticks add to it. */
static void bench_calib(int count)
{
	uint64_t start;
	char more[64];
	int i;

	pin(1);
	start = now_ns();
	for (i = 0; i < count; i++)
		spin(CALIBRATION_ROUNDS);
	snprintf(more, sizeof(more), " useful_per_op=%d", 2 * CALIBRATION_ROUNDS);
	report("calib", count, now_ns() - start, more);
}

static void echo(int from, int to, int count)
{
	char byte;

	while (count--)
		if (read(from, &byte, 1) != 1 || write(to, &byte, 1) != 1)
			_exit(1);
	_exit(0);
}

/* One byte there and back between two processes. */
static void bench_pipe(const char *bench, int count, int pinned)
{
	struct rusage before, after;
	int there[2], back[2];
	uint64_t start = 0;
	char byte = 0, more[64];
	pid_t child;
	int i;

	if (pipe(there) || pipe(back))
		die("pipe");
	if (pinned)
		pin(1);
	child = fork();
	if (child < 0)
		die("fork");
	if (!child)
		echo(there[0], back[1], count + WARM_UP_TRIPS);
	for (i = 0; i < count + WARM_UP_TRIPS; i++) {
		if (i == WARM_UP_TRIPS) {
			getrusage(RUSAGE_SELF, &before);
			start = now_ns();
		}
		if (write(there[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1)
			die("pipe");
	}
	start = now_ns() - start;
	getrusage(RUSAGE_SELF, &after);
	waitpid(child, NULL, 0);
	snprintf(more, sizeof(more), " waits_per_op=%.2f",
		 (double)(after.ru_nvcsw - before.ru_nvcsw) / count);
	report(bench, count, start, more);
}

struct yielder {
	pthread_t thread;
	pthread_barrier_t *barrier;
	int count;
	uint64_t start, end;
	uint64_t switches;
};

static uint64_t switches_of_thread(void)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	return usage.ru_nvcsw + usage.ru_nivcsw;
}

static void *yield_repeatedly(void *argument)
{
	struct yielder *self = argument;
	int i;

	pin(1);
	pthread_barrier_wait(self->barrier);
	self->start = now_ns();
	self->switches = switches_of_thread();
	for (i = 0; i < self->count; i++)
		sched_yield();
	self->switches = switches_of_thread() - self->switches;
	self->end = now_ns();
	return NULL;
}

/* Two threads of one CPU that do nothing but yield. */
static void bench_yield(int count)
{
	struct yielder yielders[2];
	pthread_barrier_t barrier;
	uint64_t start, end;
	char more[64];
	int i;

	pthread_barrier_init(&barrier, NULL, 2);
	for (i = 0; i < 2; i++) {
		yielders[i] = (struct yielder){.barrier = &barrier, .count = count};
		if (pthread_create(&yielders[i].thread, NULL, yield_repeatedly, &yielders[i]))
			die("pthread_create");
	}
	for (i = 0; i < 2; i++)
		pthread_join(yielders[i].thread, NULL);
	start = yielders[0].start < yielders[1].start ? yielders[0].start : yielders[1].start;
	end = yielders[0].end > yielders[1].end ? yielders[0].end : yielders[1].end;
	snprintf(more, sizeof(more), " switches=%lu", yielders[0].switches + yielders[1].switches);
	report("yield", 2ull * count, end - start, more);
}

static struct {
	atomic_uint ask, answer;
	atomic_ullong asked_at;
	int count;
	int moves;
	uint64_t *latency;
} wake;

static void futex_wait(atomic_uint *word, unsigned int old)
{
	while (atomic_load(word) == old)
		syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, old, NULL, NULL, 0);
}

static void futex_wake(atomic_uint *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void *answer_wakes(void *argument)
{
	int i, cpu, last = -1;

	(void)argument;
	pin_away_from(1);
	for (i = 0; i < wake.count; i++) {
		futex_wait(&wake.ask, i);
		wake.latency[i] = now_ns() - atomic_load(&wake.asked_at);
		cpu = sched_getcpu();
		wake.moves += last >= 0 && cpu != last;
		last = cpu;
		atomic_store(&wake.answer, i + 1);
		futex_wake(&wake.answer);
	}
	return NULL;
}

/* From a store and futex wake to the woken thread's first instruction, on an idle CPU. The waker
 * sleeps too, so its way to idle is inside the latency. */
static void bench_futex(int count)
{
	pthread_t thread;
	uint64_t total = 0;
	char more[128];
	int i;

	wake.count = count;
	wake.latency = calloc(count, sizeof(*wake.latency));
	if (!wake.latency)
		die("calloc");
	if (pthread_create(&thread, NULL, answer_wakes, NULL))
		die("pthread_create");
	pin(1);
	for (i = 0; i < count; i++) {
		sleep_ns(IDLE_GAP_NS);
		atomic_store(&wake.asked_at, now_ns());
		atomic_store(&wake.ask, i + 1);
		futex_wake(&wake.ask);
		futex_wait(&wake.answer, i);
	}
	pthread_join(thread, NULL);
	for (i = 0; i < count; i++)
		total += wake.latency[i];
	qsort(wake.latency, count, sizeof(*wake.latency), compare_u64);
	snprintf(more, sizeof(more), " p50=%.0f p99=%.0f max=%.0f moves=%d",
		 instructions(wake.latency[count / 2]),
		 instructions(wake.latency[count * 99 / 100]),
		 instructions(wake.latency[count - 1]), wake.moves);
	report("futex", count, total, more);
}

static void bench_fork(int count)
{
	uint64_t start = 0;
	pid_t child;
	int i;

	for (i = 0; i < count + WARM_UP_FORKS; i++) {
		if (i == WARM_UP_FORKS)
			start = now_ns();
		child = fork();
		if (!child)
			_exit(0);
		if (child < 0 || waitpid(child, NULL, 0) != child)
			die("fork");
	}
	report("fork", count, now_ns() - start, "");
}

static void become_daemon(const char *log, char **command)
{
	int out = open(log, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	int in = open("/dev/null", O_RDONLY);

	if (out < 0 || in < 0)
		die("%s", log);
	dup2(in, 0);
	dup2(out, 1);
	dup2(out, 2);
	setsid();
	execvp(command[0], command);
	die("%s", command[0]);
}

static int start_scheduler(const char *log, char **command)
{
	uint64_t start = now_ns();
	pid_t child = fork();
	char state[32], name[128];
	int status = -1;

	if (child < 0)
		die("fork");
	if (!child)
		become_daemon(log, command);
	while (now_ns() - start < START_LIMIT_NS) {
		sched_ext_state(state, name);
		if (!strcmp(state, "enabled")) {
			printf("start=%d state=%s ops_name=%s after_us=%lu\n", child, state, name,
			       (now_ns() - start) / 1000);
			return 0;
		}
		if (waitpid(child, &status, WNOHANG) == child)
			break;
		sleep_ns(START_POLL_NS);
	}
	printf("start=failed status=%d after_us=%lu\n", status, (now_ns() - start) / 1000);
	return 1;
}

static unsigned long status_kib(const char *status, const char *key)
{
	const char *line = strstr(status, key);

	return line ? strtoul(line + strlen(key), NULL, 10) : 0;
}

static int report_memory(const char *pid)
{
	char path[64], status[4096];
	ssize_t length;
	int fd;

	snprintf(path, sizeof(path), "/proc/%s/status", pid);
	fd = open(path, O_RDONLY);
	length = fd < 0 ? -1 : read(fd, status, sizeof(status) - 1);
	if (length < 0)
		die("%s", path);
	status[length] = 0;
	printf("memory=%s resident_kib=%lu peak_kib=%lu\n", pid, status_kib(status, "VmRSS:"),
	       status_kib(status, "VmHWM:"));
	return 0;
}

static int usage(void)
{
	fprintf(stderr, "bench calib|pipe|pipe-pinned|yield|futex|fork [COUNT]\n"
			"bench start LOG COMMAND...\nbench memory PID\n");
	return 2;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	int count = argc > 2 ? atoi(argv[2]) : 0;

	if (!strcmp(what, "calib"))
		bench_calib(count > 0 ? count : 500);
	else if (!strcmp(what, "pipe"))
		bench_pipe(what, count > 0 ? count : 5000, 0);
	else if (!strcmp(what, "pipe-pinned"))
		bench_pipe(what, count > 0 ? count : 5000, 1);
	else if (!strcmp(what, "yield"))
		bench_yield(count > 0 ? count : 5000);
	else if (!strcmp(what, "futex"))
		bench_futex(count > 0 ? count : 1500);
	else if (!strcmp(what, "fork"))
		bench_fork(count > 0 ? count : 500);
	else if (!strcmp(what, "start") && argc > 3)
		return start_scheduler(argv[2], argv + 3);
	else if (!strcmp(what, "memory") && argc > 2)
		return report_memory(argv[2]);
	else
		return usage();
	return 0;
}
