//! How long tasks wait in a real kernel, whatever their weights and classes.

use hearth_guest::{Kernel, Output};
use hearth_kernel_tests::{Shared, assert_untroubled, first, line, numbers, records, text};

const MS: f64 = 1e6;
/// Half of the time after which the kernel's watchdog is to end the scheduler; and where nothing was said of it,
/// as under policies whose slices alone are a good part of two seconds.
const BOUND_NS: f64 = 1000.0 * MS;
const DEFAULT_BOUND_NS: f64 = 5000.0 * MS;

/// Each on a CPU of its own, side by side: what one does is not to disturb the others.
const SCRIPT: &str = "
section start
start --watchdog 2s
tasks spin 4000 19,-20 1 >/tmp/nice &
tasks spin 5000 19,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0 2 >/tmp/crowd &
tasks demoted 2000 3000 3 >/tmp/demoted &
wait
section nice
cat /tmp/nice
section crowd
cat /tmp/crowd
section demoted
cat /tmp/demoted
section released
(sleep 0.2; tasks hog 4 1500) &
tasks spin 2000 0 all 4
wait
section state
state
section status
hearth status --json
hearth stop
section light-start
start --policy light
tasks spin 9000 0,-15 1 >/tmp/light &
wait
section light
cat /tmp/light
section light-state
state
hearth stop
section heavy-start
start --policy heavy
tasks spin 9000 0,20,-10 1 >/tmp/heavy &
wait
section heavy
cat /tmp/heavy
section heavy-state
state
hearth stop
";

fn output() -> Option<&'static Output> {
    static GUEST: Shared = Shared::new();
    GUEST.output(SCRIPT, Kernel::Pinned)
}

fn longest_ns(output: &Output, section: &str, key: &str) -> f64 {
    let waits = numbers(&records(output, section, key), "longest_wait_ns");
    assert!(!waits.is_empty(), "nothing ran in section {section}");
    waits.into_iter().fold(0.0, f64::max)
}

fn check(section: &str, bound_ns: f64) {
    let Some(output) = output() else { return };
    let longest = longest_ns(output, section, "nice");
    assert!(longest < bound_ns, "{section}: a task waited {} ms", longest / MS);
}

#[test]
fn nice_19_beside_nice_minus_20_runs_within_the_bound() {
    check("nice", BOUND_NS);
}

#[test]
fn nice_19_in_a_crowd_runs_within_the_bound() {
    check("crowd", BOUND_NS);
}

#[test]
fn unequal_tasks_under_policies_with_large_credits_run_within_the_bound() {
    check("light", DEFAULT_BOUND_NS);
    check("heavy", DEFAULT_BOUND_NS);
}

#[test]
fn shares_still_follow_weights_where_the_bound_allows() {
    let Some(output) = output() else { return };
    let shares = numbers(&records(output, "nice", "nice"), "cpu_ns");
    assert!(shares[1] > 100.0 * shares[0], "nice 19 and -20 had {shares:?}");
    let shares = numbers(&records(output, "light", "nice"), "cpu_ns");
    assert!(shares[1] > 5.0 * shares[0], "nice 0 and -15 had {shares:?}");
}

#[test]
fn what_a_task_ran_in_a_real_time_class_is_not_held_against_it() {
    let Some(output) = output() else { return };
    let demoted = first(output, "demoted", "demoted");
    let wait: f64 = demoted.get("longest_wait_ns").unwrap();
    assert!(wait < 200.0 * MS, "it waited {} ms beside two spinners", wait / MS);
    let share: f64 = demoted.get::<f64>("cpu_ns").unwrap() / (3000.0 * MS);
    assert!((0.25..0.42).contains(&share), "it had {share} of a CPU for three");
}

#[test]
fn a_task_whose_cpu_a_real_time_task_takes_goes_on_elsewhere() {
    let Some(output) = output() else { return };
    let longest = longest_ns(output, "released", "nice");
    assert!(longest < 100.0 * MS, "it waited {} ms beside idle CPUs", longest / MS);
}

#[test]
fn tasks_that_were_late_are_counted() {
    let Some(output) = output() else { return };
    let text = text(output, "status");
    let late = text.lines().filter_map(|line| line.trim().strip_prefix("\"late\": "));
    let sum: u64 = late.map(|count| count.trim_end_matches(',').parse::<u64>().unwrap()).sum();
    assert!(sum > 0, "nobody was late:\n{text}");
}

#[test]
fn the_kernel_does_not_end_the_scheduler() {
    let Some(output) = output() else { return };
    for section in ["state", "light-state", "heavy-state"] {
        assert_eq!(line(output, section), "enabled", "{section}");
    }
    assert_untroubled(output);
}
