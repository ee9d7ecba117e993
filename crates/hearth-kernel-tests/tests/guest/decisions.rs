//! What Hearth decides in a real kernel, with virtual time (policy `fair`), counted exactly.

use hearth_guest::{Kernel, Output};
use hearth_kernel_tests::{Shared, assert_untroubled, first, line, numbers, records, text};

const MS: f64 = 1e6;
const TICK_NS: f64 = 4.0 * MS;
/// Of policy `fair`.
const QUANTUM_NS: f64 = 3.0 * MS;
const TIME_CREDIT_NS: f64 = 2.0 * MS;
/// A running task may be ahead of the others by its credit, after it was as much behind.
const LONGEST_STRETCH_NS: f64 = 2.0 * TIME_CREDIT_NS + QUANTUM_NS + 2.0 * TICK_NS;

const SCRIPT: &str = "
section start
start
section equal
tasks spin 1000 0,0,0,0 1
section weights
tasks spin 2000 0,5,-5 1
section more-tasks-than-cpus
tasks spin 1000 0,0,0,0,0,0,0,0,0,0,0,0
section gathered
tasks spin 500 0,0,0,0,0,0,0,0 all 0
section sleepers
tasks sleepers 8 1000 12
section idle-sleepers
tasks sleepers 4 500 0
section yielders
tasks yielders 3 2000 1
section pingpong
tasks pingpong 1000 1
section forks
tasks forks 500 50
section exits
tasks exits
section affinity
tasks affinity 12 600
section status
hearth status --json
section running-state
state
section stop
hearth stop; echo status=$?
section stopped-state
state
section after
tasks spin 200 0,0 1
section left
ls /sys/fs/bpf; ps | grep '[h]earth'
";

fn output() -> Option<&'static Output> {
    static GUEST: Shared = Shared::new();
    GUEST.output(SCRIPT, Kernel::Pinned)
}

fn sum(numbers: &[f64]) -> f64 {
    numbers.iter().sum()
}

/// The largest over the smallest.
fn spread(numbers: &[f64]) -> f64 {
    let largest = numbers.iter().copied().fold(f64::MIN, f64::max);
    largest / numbers.iter().copied().fold(f64::MAX, f64::min)
}

#[test]
fn it_attaches_and_stays_to_the_end() {
    let Some(output) = output() else { return };
    assert_eq!(first(output, "start", "start").text("ops_name"), Some("hearth"));
    assert_eq!(line(output, "running-state"), "enabled");
    assert_untroubled(output);
}

#[test]
fn it_detaches_cleanly() {
    let Some(output) = output() else { return };
    assert_eq!(line(output, "stop").trim_end(), "The kernel's own scheduler runs again");
    assert_eq!(line(output, "stopped-state"), "disabled");
    assert_eq!(records(output, "after", "nice").len(), 2, "tasks went on under the kernel's scheduler");
    assert_eq!(output.section("left").unwrap().lines, Vec::<String>::new());
    assert_eq!(output.status, 1, "the last command finds no process of Hearth");
}

#[test]
fn equal_tasks_of_a_cpu_have_equal_shares() {
    let Some(output) = output() else { return };
    let shares = numbers(&records(output, "equal", "nice"), "cpu_ns");
    assert!(spread(&shares) < 1.1, "{shares:?}");
}

#[test]
fn a_warm_task_runs_on_for_its_credit_and_no_longer() {
    let Some(output) = output() else { return };
    let stretches = numbers(&records(output, "equal", "nice"), "longest_ns");
    for longest in &stretches {
        assert!(*longest > QUANTUM_NS, "credit kept none: {stretches:?}");
        assert!(*longest < LONGEST_STRETCH_NS, "{stretches:?}");
    }
}

#[test]
fn a_task_waits_no_longer_than_the_others_may_run() {
    let Some(output) = output() else { return };
    let waits = numbers(&records(output, "equal", "nice"), "longest_wait_ns");
    assert!(waits.iter().all(|wait| *wait < 3.0 * LONGEST_STRETCH_NS), "{waits:?}");
}

#[test]
fn shares_follow_nice_values() {
    let Some(output) = output() else { return };
    let tasks = records(output, "weights", "nice");
    let shares = numbers(&tasks, "cpu_ns");
    // Linux: weights of nice 0, 5 and -5.
    for (share, weight) in shares.iter().zip([1024.0, 335.0, 3121.0]) {
        let expected = sum(&shares) * weight / (1024.0 + 335.0 + 3121.0);
        assert!((share / expected - 1.0).abs() < 0.1, "{share} against {expected}: {shares:?}");
    }
}

#[test]
fn a_cpu_never_idles_beside_work() {
    let Some(output) = output() else { return };
    let used = sum(&numbers(&records(output, "more-tasks-than-cpus", "nice"), "cpu_ns"));
    assert!(used > 0.98 * 8.0 * 1000.0 * MS, "12 tasks used {} ms of 8 CPUs' 1000 ms", used / MS);
}

#[test]
fn tasks_of_all_cpus_have_equal_shares() {
    let Some(output) = output() else { return };
    let shares = numbers(&records(output, "more-tasks-than-cpus", "nice"), "cpu_ns");
    assert!(spread(&shares) < 1.1, "{shares:?}");
}

#[test]
fn idle_cpus_take_what_gathered_on_one() {
    let Some(output) = output() else { return };
    let used = sum(&numbers(&records(output, "gathered", "nice"), "cpu_ns"));
    assert!(used > 0.95 * 8.0 * 500.0 * MS, "8 tasks used {} ms of 8 CPUs' 500 ms", used / MS);
}

#[test]
fn a_sleeper_runs_soon_after_it_wakes_up() {
    let Some(output) = output() else { return };
    let beside_spinners = first(output, "sleepers", "sleepers");
    assert!(beside_spinners.get::<u32>("fewest_wakes").unwrap() >= 199);
    let latency: f64 = beside_spinners.get("p99_ns").unwrap();
    assert!(latency < LONGEST_STRETCH_NS, "p99 {} ms", latency / MS);
    let on_idle_cpus: f64 = first(output, "idle-sleepers", "sleepers").get("p99_ns").unwrap();
    assert!(on_idle_cpus < MS, "p99 {} ms on idle CPUs", on_idle_cpus / MS);
}

#[test]
fn tasks_that_yield_take_turns() {
    let Some(output) = output() else { return };
    let yielders = first(output, "yielders", "yielders");
    let turns: u32 = yielders.get("turns").unwrap();
    let repeats: u32 = yielders.get("repeats").unwrap();
    assert!(repeats < turns / 100, "{repeats} of {turns} turns went to the task that had yielded");
}

#[test]
fn a_fork_storm_loses_no_task() {
    let Some(output) = output() else { return };
    let forks = first(output, "forks", "forks");
    assert_eq!(forks.get::<u32>("reaped").unwrap(), 500);
    assert_eq!(forks.get::<u32>("bad").unwrap(), 0);
}

#[test]
fn a_task_may_end_in_every_state() {
    let Some(output) = output() else { return };
    let ends = records(output, "exits", "exit");
    assert_eq!(ends.len(), 8);
    assert!(ends.iter().all(|end| end.text("ok") == Some("1")), "{ends:?}");
}

#[test]
fn masks_that_change_under_load_hold_and_starve_no_task() {
    let Some(output) = output() else { return };
    let affinity = first(output, "affinity", "affinity");
    assert_eq!(affinity.get::<u32>("outside").unwrap(), 0, "tasks ran outside their mask");
    assert_eq!(affinity.get::<u32>("stuck").unwrap(), 0, "tasks did not run for a second");
}

#[test]
fn statistics_move() {
    let Some(output) = output() else { return };
    let text = text(output, "status");
    for counter in ["direct", "domain", "foreign", "idle", "kept", "own", "preempted"] {
        let moved = text.lines().any(|line| {
            let value = line.trim().trim_end_matches(',').strip_prefix(&format!("\"{counter}\": "));
            value.is_some_and(|value| value != "0")
        });
        assert!(moved, "{counter} is 0 on every CPU:\n{text}");
    }
}
