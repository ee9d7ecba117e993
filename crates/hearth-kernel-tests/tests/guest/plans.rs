//! Plans in a real kernel: they come, they hold, and without them scheduling is plain.

use hearth_guest::{Kernel, Output};
use hearth_kernel_tests::{Shared, records, text};

const SCRIPT: &str = "
plan() {
	hearth status | grep ^Planner
}
# Until the plan says so, at most 30 s.
plan_says() {
	for try in $(seq 300); do
		plan | grep -q \"$1\" && break
		usleep 100000
	done
	plan
}
section begins
hearth start --pages none; echo status=$?
plan_says holds

section parts
tasks spin 60000 0,0,0,0,0,0 0-3 >/tmp/low &
tasks spin 60000 0,0,0,0,0,0 4-7 >/tmp/high &
plan_says '2 parts'
hearth explain --for 100ms $! | head -n 1
killall -TERM tasks
wait
grep -h ^task /tmp/low /tmp/high

section stuck
hearth stop; echo status=$?
hearth start --pages none --stall-planner; echo status=$?
plan_says 'holds no longer'
tasks spin 400 0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0 | grep ^task
state

section none
hearth stop
hearth start --pages none --planner none; echo status=$?
sleep 0.5
hearth status | grep -c ^Planner
state
";

fn output() -> Option<&'static Output> {
    static GUEST: Shared = Shared::new();
    GUEST.output(SCRIPT, Kernel::Pinned)
}

#[test]
fn a_start_has_plans_soon_and_says_how_old_they_are() {
    let Some(output) = output() else { return };
    let text = text(output, "begins");
    assert!(text.contains("status=0"), "{text}");
    assert!(text.contains("Planners masks,sets,gangs: last step ") && text.contains(" ago, took "), "{text}");
    assert!(text.contains("holds: the machine is undivided"), "{text}");
}

#[test]
fn masks_part_the_machine_and_all_tasks_run() {
    let Some(output) = output() else { return };
    let text = text(output, "parts");
    assert!(text.contains("2 parts, CPUs 0-3 | 4-7"), "{text}");
    assert_eq!(records(output, "parts", "task").len(), 12, "{text}");
}

#[test]
fn a_planner_that_does_not_return_leaves_plain_scheduling() {
    let Some(output) = output() else { return };
    let text = text(output, "stuck");
    assert!(text.contains("its plan holds no longer"), "{text}");
    assert_eq!(records(output, "stuck", "task").len(), 16, "{text}");
    assert!(text.ends_with("enabled"), "{text}");
}

#[test]
fn a_start_without_a_planner_has_none() {
    let Some(output) = output() else { return };
    let text = text(output, "none");
    assert!(text.contains("status=0") && text.contains("\n0\n") && text.ends_with("enabled"), "{text}");
}
