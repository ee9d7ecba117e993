//! Whom a task that wakes preempts under a steady policy, and how far ahead it may be (docs/concepts.md).

#![allow(clippy::unwrap_used)]

use hearth_machine::Machine;
use hearth_policy::Policy;

mod steady;
use steady::*;

/// How often a task of a weight is preempted on one CPU, on which another wakes each millisecond. It computes for so long
/// between its own sleeps.
fn preemptions(policy: &str, runs_for: u64, weight: u32) -> usize {
    let result = run(
        policy,
        vec![
            Box::new(move |cpu| {
                only(cpu, &[HERE]);
                cpu.set_weight(cpu.task(), weight);
                for _ in 0..120 * MS / runs_for {
                    compute_ns(cpu, runs_for);
                    cpu.sleep_ns(100 * US);
                }
            }),
            Box::new(|cpu| {
                only(cpu, &[HERE]);
                for _ in 0..100 {
                    cpu.sleep_ns(MS);
                    compute_ns(cpu, 50 * US);
                }
            }),
        ],
    );
    result.dispatches[HERE].preempted as usize
}

#[test]
fn who_wakes_preempts_one_that_computes_and_leaves_one_that_sleeps_its_quantum() {
    let (computes, sleeps) = (preemptions("fair", 120 * MS, 100), preemptions("fair", 2 * MS, 100));
    assert!(computes > 50 && sleeps == 0, "preempted {computes} times, and {sleeps}");
    let without = preemptions("vanilla", 2 * MS, 100);
    assert!(without > 20, "preempted {without} times");
    let light = preemptions("fair", 120 * MS, 2);
    assert!(light > 50, "of little weight preempted {light} times");
    // In a millisecond it is charged for less than the 50 us of the other, so that has had more.
    let heavy = preemptions("fair", 120 * MS, 8877);
    assert!(heavy < 30, "of great weight preempted {heavy} times");
}

/// One computes on a CPU. When it has for long, another of so much weight wakes there again and again, for 80 us in 100.
/// How much more CPU time that one had had when it first waited for a millisecond.
fn lead_ns(machine: &Machine, weight: u32) -> u64 {
    let result = run_on(
        machine,
        "fair",
        true,
        vec![
            Box::new(move |cpu| {
                only(cpu, &[HERE]);
                cpu.set_weight(cpu.task(), weight);
                spin(cpu, 150);
            }),
            Box::new(move |cpu| {
                only(cpu, &[HERE]);
                cpu.set_weight(cpu.task(), weight);
                cpu.sleep_ns(60 * MS);
                for _ in 0..800 {
                    compute_ns(cpu, 80 * US);
                    cpu.sleep_ns(20 * US);
                }
            }),
        ],
    );
    let wakes: Vec<_> = ran(&result, 1).into_iter().filter(|one| one.start_ns > 60 * MS).collect();
    let waits_at = wakes.windows(2).position(|pair| between_ns(pair) > MS).unwrap();
    let (from_ns, until_ns) = (wakes[0].start_ns, wakes[waits_at].end_ns);
    let answered: u64 = wakes[..=waits_at].iter().map(|one| one.end_ns - one.start_ns).sum();
    2 * answered - (until_ns - from_ns)
}

#[test]
fn who_wakes_beside_a_computation_may_be_ahead_by_more_than_a_quantum_and_less_than_all_credits() {
    let quantum_ns = Policy::load("fair").unwrap().quantum_ns;
    for machine in [machine(), Machine::load("desktop-8").unwrap()] {
        let credits_ns = 2 * quantum_ns + machine.move_costs().node_ns;
        for weight in [100, 400] {
            let lead = lead_ns(&machine, weight);
            assert!((quantum_ns..credits_ns).contains(&lead), "{}, weight {weight}: {lead} ns", machine.name);
        }
    }
}
