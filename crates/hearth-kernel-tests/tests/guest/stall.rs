//! A scheduler whose tasks do not run is thrown out by the kernel, and Hearth says why.
//!
//! Once a real-time task holds a CPU, nothing of which is left for others, and a task is bound to it: as
//! far as the kernel can tell, the scheduler has forgotten the task; its watchdog looks each second for tasks that have waited
//! for two.
//! And once it has.

use hearth_guest::{Kernel, Output};
use hearth_kernel_tests::{Shared, first, line, records, text};

const SCRIPT: &str = "
section start
start --watchdog 2s
echo -1 >/proc/sys/kernel/sched_rt_runtime_us
for server in fair ext; do
	echo 0 >/sys/kernel/debug/sched/${server}_server/cpu2/runtime
done
section tasks
tasks spin 1000 0 2 &
tasks hog 2 5000
wait
section state
state
section log
cat /tmp/log
section dumps
ls /var/lib/hearth/dumps
section dump
grep hearth: /var/lib/hearth/dumps/*
section again
start
hearth stop
await disabled
section stalling
# Who waits for the start may be forgotten, too, and miss it: then again.
for try in 1 2 3; do
	bench start /tmp/log hearth start --foreground --pages none --watchdog 2s --stall && break
	cat /tmp/log
	grep -q 'the kernel ended the scheduler' /tmp/log || exit 1
done
tasks spin 4000 0,0,0,0,0,0,0,0,0,0,0,0 >/tmp/spinners &
while state | grep -q enabled; do usleep 10000; done
hearth start --pages none >/tmp/next 2>&1
echo next=$?
hearth stop >/dev/null
wait
grep nice= /tmp/spinners
section stalling-log
cat /tmp/log
section next
cat /tmp/next
";

fn output() -> Option<&'static Output> {
    static GUEST: Shared = Shared::new();
    GUEST.output(SCRIPT, Kernel::Pinned)
}

#[test]
fn the_kernel_ends_a_scheduler_that_lets_a_task_wait_too_long() {
    let Some(output) = output() else { return };
    assert_eq!(line(output, "state"), "disabled");
    let told = output.kernel_trouble().join("\n");
    assert!(told.contains("runnable task stall"), "{told}");
}

#[test]
fn hearth_names_the_task_that_waited_and_the_hog() {
    let Some(output) = output() else { return };
    let log = text(output, "log");
    assert!(log.contains("the kernel ended the scheduler: tasks (task "), "{log}");
    assert!(log.contains(", of a real-time class, held that CPU"), "{log}");
}

#[test]
fn the_kernels_account_is_saved() {
    let Some(output) = output() else { return };
    let dumps = &output.section("dumps").unwrap().lines;
    assert_eq!(dumps.len(), 1, "{dumps:?}");
}

#[test]
fn the_account_has_what_the_scheduler_knows_of_the_machine_its_cpus_and_tasks() {
    let Some(output) = output() else { return };
    let dump = text(output, "dump");
    assert!(dump.contains("wait in a queue of all CPUs"), "{dump}");
    // CPU 2 is held: the spinner waits in its pinned queue, whether or not it has run there.
    assert!(dump.contains("in the pinned one: 0 may run elsewhere"), "{dump}");
    assert!(dump.contains("held by a higher class 1"), "{dump}");
    assert!(dump.lines().any(|line| line.contains("weight 100; queue 514")), "{dump}");
}

#[test]
fn tasks_go_on_after_the_scheduler_was_ended() {
    let Some(output) = output() else { return };
    assert_eq!(records(output, "tasks", "nice").len(), 1);
    assert!(first(output, "tasks", "hog").get::<u64>("cpu_ns").unwrap() > 0);
}

#[test]
fn it_starts_again_after_it_was_ended() {
    let Some(output) = output() else { return };
    assert_eq!(first(output, "again", "start").text("state"), Some("enabled"));
    assert_eq!(first(output, "again", "await").text("state"), Some("disabled"));
}

#[test]
fn a_scheduler_that_forgets_tasks_is_ended_and_no_task_is_lost() {
    let Some(output) = output() else { return };
    let log = text(output, "stalling-log");
    let told = log.contains("did not get to run") || log.contains("without running");
    assert!(log.contains("the kernel ended the scheduler:") && told, "{log}");
    assert!(!log.contains("eal-time"), "nobody else is to blame: {log}");
    assert_eq!(records(output, "stalling", "nice").len(), 12);
}

#[test]
fn a_start_right_after_the_kernel_ended_a_scheduler_waits_for_the_process_that_held_it() {
    let Some(output) = output() else { return };
    let said = text(output, "next");
    assert_eq!(first(output, "stalling", "next").text("next"), Some("0"), "{said}");
    assert!(said.contains("Hearth schedules this machine"), "{said}");
}
