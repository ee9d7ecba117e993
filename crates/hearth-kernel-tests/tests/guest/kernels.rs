//! Kernels other than the pinned one: older ones with sched_ext, and one without.

use hearth_guest::{Kernel, Output};
use hearth_kernel_tests::{Shared, assert_untroubled, first, line, numbers, records, text};

const SCRIPT: &str = "
section start
start
section settle
settle
section tasks
tasks spin 300 0,0,0,0,0,0,0,0,0,0,0,0
section exits
tasks exits
section forks
tasks forks 100 20
section running-state
state
section stop
hearth stop
await disabled
";

const PLAIN_SCRIPT: &str = "
section start
hearth start
echo status=$?
section status
hearth status
echo status=$?
";

/// On the oldest kernel also a task that waited, was real-time, slept, and came back; and then waited for a moment, as
/// a real-time task held its CPU. And a task that really waits.
const FALSE_WAIT_SCRIPT: &str = "
section false-start
start --watchdog 2s
section false-wait
tasks returned 1 2500 1200 3
section false-log
until_status_says 'has scheduled'
cat /tmp/log
section true-wait
tasks hog 2 4000 &
sleep 0.1
tasks spin 500 0 2
wait
section true-log
until_status_says 'waited at CPU 2'
cat /tmp/log
";

fn check(output: &Output) {
    assert_eq!(first(output, "start", "start").text("ops_name"), Some("hearth"));
    assert_eq!(line(output, "settle"), "", "the planner does not step");
    let used: f64 = numbers(&records(output, "tasks", "nice"), "cpu_ns").iter().sum();
    assert!(used > 0.95 * 8.0 * 300.0 * 1e6, "12 tasks used {} ms of 8 CPUs' 300 ms", used / 1e6);
    assert!(records(output, "exits", "exit").iter().all(|end| end.text("ok") == Some("1")));
    assert_eq!(first(output, "forks", "forks").text("bad"), Some("0"));
    assert_eq!(line(output, "running-state"), "enabled");
    assert_eq!(first(output, "stop", "await").text("state"), Some("disabled"));
}

#[test]
fn an_older_kernel_runs_it() {
    static GUEST: Shared = Shared::new();
    if let Some(output) = GUEST.output(SCRIPT, Kernel::Second) {
        check(output);
        assert_untroubled(output);
    }
}

#[test]
fn the_oldest_kernel_with_sched_ext_runs_it() {
    let Some(output) = floor() else { return };
    check(output);
    // A line of the kernel's for each of the two waits.
    let trouble = output.kernel_trouble();
    assert!(trouble.iter().all(|line| line.contains("runnable task stall")), "{trouble:?}");
    assert!(output.powered_off);
}

fn floor() -> Option<&'static Output> {
    static GUEST: Shared = Shared::new();
    GUEST.output(&format!("{SCRIPT}{FALSE_WAIT_SCRIPT}"), Kernel::Floor)
}

#[test]
fn a_wait_that_the_kernel_counted_and_that_did_not_happen_is_told_as_that_and_hearth_goes_on() {
    let Some(output) = floor() else { return };
    let log = text(output, "false-log");
    assert!(
        log.contains("loading the scheduler again: the kernel counted a wait that did not happen"),
        "{log}"
    );
    let waited = log.split("waited at CPU 3 for ").nth(1).unwrap().split('s').next().unwrap();
    assert!(waited.parse::<f64>().unwrap() < 1.3, "{log}");
    assert!(log.contains("the kernel counted 2.") || log.contains("the kernel counted 3."), "{log}");
    assert!(log.contains("Linux 6.16 and 7.0"), "{log}");
    assert!(!log.contains("the kernel ended") && !log.contains("never="), "{log}");
}

/// The kernel looks once a second for waits of two: it finds one after two to three.
#[test]
fn a_task_that_waits_behind_a_real_time_task_is_found_within_one_and_a_half_of_the_watchdogs_time() {
    let Some(output) = floor() else { return };
    let log = text(output, "true-log");
    let counted = log.rsplit("waited at CPU 2 for ").next().unwrap().split('s').next().unwrap();
    let counted: f64 = counted.parse().unwrap_or_else(|_| panic!("{log}"));
    assert!((2.0..3.3).contains(&counted), "{log}");
    assert!(log.contains("of a real-time class, held that CPU"), "{log}");
}

#[test]
fn a_kernel_without_sched_ext_is_named_as_what_is_wrong() {
    static GUEST: Shared = Shared::new();
    let Some(output) = GUEST.output(PLAIN_SCRIPT, Kernel::Plain) else { return };
    assert_eq!(first(output, "start", "status").text("status"), Some("4"));
    let words = output.section("start").unwrap().lines.join(" ");
    assert!(words.contains("CONFIG_SCHED_CLASS_EXT") && words.contains("6.12"), "{words}");
    assert_eq!(first(output, "status", "status").text("status"), Some("0"));
}
