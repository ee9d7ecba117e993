//! What policies other than `fair` make of the same tasks, in a real kernel.

use hearth_guest::{Kernel, Output};
use hearth_kernel_tests::{Shared, assert_untroubled, first, numbers, records};

const MS: f64 = 1e6;
const TICK_MS: f64 = 4.0;
const QUANTUM_MS: f64 = 30.0;

const SCRIPT: &str = "
for policy in standard light heavy complex attached; do
	section $policy
	start --policy $policy
	tasks spin 4000 0,0,0 1
	section $policy-gathered
	tasks spin 300 0,0,0,0 all 0
	hearth stop
	await disabled
done
";

fn output() -> Option<&'static Output> {
    static GUEST: Shared = Shared::new();
    GUEST.output(SCRIPT, Kernel::Pinned)
}

/// The longest time that a task of one CPU ran at a stretch, in ms.
fn longest_ms(output: &Output, policy: &str) -> f64 {
    let stretches = numbers(&records(output, policy, "nice"), "longest_ns");
    stretches.into_iter().fold(0.0, f64::max) / MS
}

#[test]
fn every_policy_attaches_and_detaches() {
    let Some(output) = output() else { return };
    for policy in ["standard", "light", "heavy", "complex", "attached"] {
        assert_eq!(first(output, policy, "start").text("ops_name"), Some("hearth"), "{policy}");
        let end = first(output, &format!("{policy}-gathered"), "await");
        assert_eq!(end.text("state"), Some("disabled"), "{policy}");
    }
    assert_untroubled(output);
}

#[test]
fn without_credit_a_task_runs_for_a_quantum() {
    let Some(output) = output() else { return };
    let longest = longest_ms(output, "standard");
    // A stranger that ran in between does not end a stretch, but the quantum begins anew.
    assert!((QUANTUM_MS - TICK_MS..2.0 * QUANTUM_MS).contains(&longest), "{longest} ms");
}

#[test]
fn a_warm_task_runs_on_for_its_credit_and_no_longer() {
    let Some(output) = output() else { return };
    for (policy, credit_ms) in [("light", 120.0), ("heavy", 320.0)] {
        let longest = longest_ms(output, policy);
        // Twice, for what it was behind and then ahead, and half as much again, for the halving of usage
        // takes away half of what it is ahead; usage is charged in whole ticks.
        let most = 2.5 * (credit_ms + TICK_MS) + QUANTUM_MS + 2.0 * TICK_MS;
        assert!((credit_ms..=most).contains(&longest), "{policy}: {longest} ms");
    }
}

#[test]
fn credit_costs_no_task_its_share() {
    let Some(output) = output() else { return };
    for (policy, credit_ms) in [("standard", 0.0), ("light", 120.0), ("heavy", 320.0)] {
        let shares = numbers(&records(output, policy, "nice"), "cpu_ns");
        let fair = shares.iter().sum::<f64>() / 3.0;
        for share in &shares {
            let behind_ms = (fair - share) / MS;
            assert!(behind_ms <= 2.0 * credit_ms + QUANTUM_MS + TICK_MS, "{policy}: {shares:?}");
        }
    }
}

#[test]
fn an_attached_task_stays_where_it_first_ran() {
    let Some(output) = output() else { return };
    let moves = numbers(&records(output, "attached-gathered", "nice"), "moves");
    assert_eq!(moves, [0.0; 4]);
    let used: f64 = numbers(&records(output, "attached-gathered", "nice"), "cpu_ns").iter().sum();
    assert!(used < 1.1 * 300.0 * MS, "they used {} ms of one CPU's 300 ms", used / MS);
}

#[test]
fn other_policies_spread_tasks_over_idle_cpus() {
    let Some(output) = output() else { return };
    for policy in ["standard", "light", "heavy", "complex"] {
        let tasks = records(output, &format!("{policy}-gathered"), "nice");
        let used: f64 = numbers(&tasks, "cpu_ns").iter().sum();
        assert!(used > 0.9 * 4.0 * 300.0 * MS, "{policy}: {} ms of 4 CPUs' 300 ms", used / MS);
    }
}
