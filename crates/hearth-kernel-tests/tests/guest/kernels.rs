//! Kernels other than the pinned one: older ones with sched_ext, and one without.

use hearth_guest::{Kernel, Output};
use hearth_kernel_tests::{Shared, assert_untroubled, first, line, numbers, records};

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

fn check(output: &Output) {
    assert_eq!(first(output, "start", "start").text("ops_name"), Some("hearth"));
    assert_eq!(line(output, "settle"), "", "the planner does not step");
    let used: f64 = numbers(&records(output, "tasks", "nice"), "cpu_ns").iter().sum();
    assert!(used > 0.95 * 8.0 * 300.0 * 1e6, "12 tasks used {} ms of 8 CPUs' 300 ms", used / 1e6);
    assert!(records(output, "exits", "exit").iter().all(|end| end.text("ok") == Some("1")));
    assert_eq!(first(output, "forks", "forks").text("bad"), Some("0"));
    assert_eq!(line(output, "running-state"), "enabled");
    assert_eq!(first(output, "stop", "await").text("state"), Some("disabled"));
    assert_untroubled(output);
}

#[test]
fn an_older_kernel_runs_it() {
    static GUEST: Shared = Shared::new();
    if let Some(output) = GUEST.output(SCRIPT, Kernel::Second) {
        check(output);
    }
}

#[test]
fn the_oldest_kernel_with_sched_ext_runs_it() {
    static GUEST: Shared = Shared::new();
    if let Some(output) = GUEST.output(SCRIPT, Kernel::Floor) {
        check(output);
    }
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
