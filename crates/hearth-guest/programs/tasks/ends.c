// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tasks that begin and end.
 *
 *   tasks forks COUNT AT-ONCE
 *       forks=COUNT reaped=N bad=N
 *   tasks exits
 *       exit=STATE ok=0|1       for children that end while running, sleeping, stopped, traced,
 *                               with running threads, by exec of a thread, before they ran, and
 *                               as orphans
 */
#include "tasks.h"

#include <pthread.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#define SETTLE_NS (5 * NS_PER_MS)

static atomic_bool *to_be_told;

static void tell(int signal)
{
	(void)signal;
	atomic_store(to_be_told, true);
}

void end_when_told(atomic_bool *told)
{
	to_be_told = told;
	if (sigaction(SIGTERM, &(struct sigaction){.sa_handler = tell, .sa_flags = SA_RESTART},
		      NULL))
		die("sigaction");
}

int command_forks(int argc, char **argv)
{
	int count = number(argc, argv, 0, 1000), at_once = number(argc, argv, 1, 50);
	int started = 0, reaped = 0, bad = 0, status;
	pid_t child;

	while (reaped < count) {
		while (started < count && started - reaped < at_once) {
			child = fork();
			if (child < 0)
				die("fork");
			if (!child) {
				spin(20000);
				_exit(started & 63);
			}
			started++;
		}
		if (wait(&status) < 0)
			die("wait");
		reaped++;
		bad += !WIFEXITED(status);
	}
	printf("forks=%d reaped=%d bad=%d\n", count, reaped, bad);
	return bad ? 1 : 0;
}

static void run_forever(void)
{
	for (;;)
		spin(1000);
}

static void sleep_forever(void)
{
	for (;;)
		pause();
}

static void stop_oneself(void)
{
	raise(SIGSTOP);
	_exit(1);
}

static void be_traced(void)
{
	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
		_exit(1);
	raise(SIGTRAP);
	_exit(1);
}

static void *thread_runs_forever(void *argument)
{
	run_forever();
	return argument;
}

static void *thread_execs(void *argument)
{
	execl("/proc/self/exe", "tasks", "pingpong", "3", NULL);
	return argument;
}

static void start_threads(int count, void *(*body)(void *))
{
	pthread_t thread;

	while (count--)
		if (pthread_create(&thread, NULL, body, NULL))
			_exit(1);
}

static void end_with_running_threads(void)
{
	start_threads(4, thread_runs_forever);
	sleep_ns(SETTLE_NS);
	_exit(0);
}

static void exec_from_a_thread(void)
{
	int null = open("/dev/null", O_WRONLY);

	dup2(null, 1);
	start_threads(2, thread_runs_forever);
	start_threads(1, thread_execs);
	sleep_forever();
}

static void leave_an_orphan(void)
{
	if (!fork()) {
		sleep_ns(2 * SETTLE_NS);
		_exit(0);
	}
	_exit(0);
}

static const struct {
	const char *state;
	void (*body)(void);
	bool stops;
	bool is_killed;
	bool at_once;
} ends[] = {
	{"running", run_forever, false, true, false},
	{"sleeping", sleep_forever, false, true, false},
	{"stopped", stop_oneself, true, true, false},
	{"traced", be_traced, true, true, false},
	{"not-yet-run", run_forever, false, true, true},
	{"running-threads", end_with_running_threads, false, false, false},
	{"thread-exec", exec_from_a_thread, false, false, false},
	{"orphan", leave_an_orphan, false, false, false},
};

static bool end_in(int which)
{
	pid_t child = fork();
	int status;

	if (child < 0)
		die("fork");
	if (!child) {
		ends[which].body();
		_exit(1);
	}
	if (ends[which].stops &&
	    (waitpid(child, &status, WUNTRACED) != child || !WIFSTOPPED(status)))
		return false;
	if (ends[which].is_killed) {
		if (!ends[which].at_once)
			sleep_ns(SETTLE_NS);
		kill(child, SIGKILL);
	}
	if (waitpid(child, &status, 0) != child)
		return false;
	if (ends[which].is_killed)
		return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
	return WIFEXITED(status) && !WEXITSTATUS(status);
}

int command_exits(int argc, char **argv)
{
	int bad = 0;
	size_t i;

	(void)argc;
	(void)argv;
	for (i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		bool ok = end_in((int)i);

		printf("exit=%s ok=%d\n", ends[i].state, ok);
		fflush(stdout);
		bad += !ok;
	}
	return bad ? 1 : 0;
}
