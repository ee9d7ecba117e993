//! CPUs with many tasks beside CPUs with few: where masks keep tasks from spreading, and where they do not.

#![allow(clippy::unwrap_used)]

mod common;

use common::{Shared, assert_untroubled, first, line, numbers, records};
use hearth_guest::{Kernel, Output};

const MS: f64 = 1e6;
/// Ten rounds of four others that run for 8 ms each.
const LONGEST_WAIT_NS: f64 = 10.0 * 4.0 * 8.0 * MS;

const SCRIPT: &str = "
section start
start
section alone
tasks spin 1500 0 1
section even
tasks spin 1000 0,0,0,0,0,0,0,0,0,0,0,0 all 1
section newcomers
tasks newcomers 2000 4
section state
state
hearth stop
section again
start
section affinity
tasks affinity 24 2000
section state-again
state
";

fn output() -> Option<&'static Output> {
    static GUEST: Shared = Shared::new();
    GUEST.output(SCRIPT, Kernel::Pinned)
}

fn check_wait(key: &str) {
    let Some(output) = output() else { return };
    let wait: f64 = first(output, "newcomers", "newcomers").get(key).unwrap();
    assert!(wait < LONGEST_WAIT_NS, "it waited {} ms beside 4 spinners", wait / MS);
}

#[test]
fn a_new_task_of_a_crowded_cpu_does_not_pay_for_what_others_had_elsewhere() {
    check_wait("new_wait_ns");
}

#[test]
fn a_task_that_had_a_cpu_alone_soon_runs_on_a_crowded_one() {
    check_wait("busy_wait_ns");
}

#[test]
fn equal_tasks_share_alike_though_one_cpu_was_busy_for_long_before() {
    let Some(output) = output() else { return };
    assert_eq!(records(output, "alone", "nice").len(), 1);
    let used = numbers(&records(output, "even", "nice"), "cpu_ns");
    let (least, most) =
        used.iter().fold((f64::MAX, 0.0f64), |(least, most), &ns| (least.min(ns), most.max(ns)));
    assert_eq!(used.len(), 12);
    // Twice the credits and two ticks, and a slice under way on either side.
    assert!(most - least < 40.0 * MS, "{used:?}");
}

#[test]
fn masks_that_change_under_heavy_load_starve_no_task() {
    let Some(output) = output() else { return };
    let affinity = first(output, "affinity", "affinity");
    assert_eq!(affinity.text("outside"), Some("0"), "tasks ran outside their mask");
    assert_eq!(affinity.text("stuck"), Some("0"), "tasks did not run for a second");
}

#[test]
fn the_kernel_does_not_end_the_scheduler() {
    let Some(output) = output() else { return };
    assert_eq!(line(output, "state"), "enabled");
    assert_eq!(line(output, "state-again"), "enabled");
    assert_untroubled(output);
}
