//! No task is forgotten however callbacks of different CPUs interleave.

#![allow(clippy::unwrap_used)]

use hearth_machine::Machine;
use hearth_policy::Policy;
use hearth_races::{Outcome, Setting, Violation, run};

const MS: u64 = 1_000_000;
const TICK_NS: u64 = 4 * MS;
/// Of 24 tasks on four CPUs in slices of 240 ms, which a credit of 120 ms makes, and one slice more.
const LONGEST_ROUND_NS: u64 = 24 / 4 * 240 * MS + 240 * MS + 30 * MS;

fn run_one(machine: &str, policy: &str, setting: Setting) -> Result<Outcome, Violation> {
    let mut machine = Machine::load(machine).unwrap();
    machine.kernel.tick_ns = TICK_NS;
    run(&machine, &Policy::load(policy).unwrap(), setting).unwrap()
}

fn setting(seed: u64) -> Setting {
    Setting::new(24, 2000 * MS, seed)
}

/// 24 tasks that sleep, yield and change each other's masks, and then spin for longer than a second.
fn check(machine: &str, policy: &str, seeds: std::ops::Range<u64>) {
    for seed in seeds {
        let outcome = run_one(machine, policy, setting(seed));
        let outcome = outcome.unwrap_or_else(|violation| {
            panic!("{policy} on {machine}, seed {seed}: {violation}");
        });
        assert!(outcome.rests > 30, "the CPUs came to rest only {} times", outcome.rests);
    }
}

#[test]
fn under_fair_no_task_starves_and_no_cpu_idles_beside_work() {
    check("dash-16", "fair", 0..48);
    check("sgi-4d340", "fair", 0..48);
}

#[test]
fn under_decay_no_task_starves_and_no_cpu_idles_beside_work() {
    check("dash-16", "standard", 0..16);
    check("dash-16", "both", 16..32);
    check("dash-16", "bsd", 32..40);
    check("dash-16", "fixed", 40..48);
}

#[test]
fn with_credits_of_each_task_no_task_starves_and_no_cpu_idles_beside_work() {
    check("dash-16", "complex", 0..16);
}

#[test]
fn an_attached_task_does_not_wait_beside_its_idle_cpu() {
    check("dash-16", "attached", 0..16);
}

/// Weights from 1 to 10,000, tasks that leave for a higher class and come back, CPUs that a higher class
/// takes, and ticks in step in every second run.
fn check_unequal(policy: &str, seeds: std::ops::Range<u64>) {
    for seed in seeds {
        // More turns between switches: it is time that shows here, and less so order.
        let setting = Setting { switch_one_in: 512, ..Setting::unequal(16, 12_000 * MS, seed) };
        let outcome = run_one("sgi-4d340", policy, setting);
        outcome.unwrap_or_else(|violation| panic!("{policy}, unequal, seed {seed}: {violation}"));
    }
}

#[test]
fn under_fair_no_wait_is_half_of_the_watchdogs_whatever_the_weights() {
    check_unequal("fair", 0..6);
}

#[test]
fn under_decay_no_wait_is_half_of_the_watchdogs_whatever_the_weights() {
    for policy in ["standard", "light", "heavy", "both", "complex", "attached", "unix", "bsd", "fixed"] {
        check_unequal(policy, 0..3);
    }
}

/// CPUs go away and come back every second or so, and the scheduler begins anew while tasks go on.
#[test]
fn no_task_is_lost_when_cpus_go_away_and_come_back() {
    let mut restarts = 0;
    for (policy, seeds) in [("fair", 0..8), ("standard", 8..12), ("complex", 12..14), ("attached", 14..16)] {
        for seed in seeds {
            let equal = Setting { hotplug: true, longest_wait_ns: LONGEST_ROUND_NS, ..setting(seed) };
            let unequal = Setting { hotplug: true, ..Setting::unequal(16, 4000 * MS, seed) };
            for setting in [equal, unequal] {
                let outcome = run_one("sgi-4d340", policy, setting);
                let outcome = outcome.unwrap_or_else(|violation| {
                    panic!("{policy}, CPUs come and go, {setting:?}: {violation}");
                });
                restarts += outcome.restarts;
            }
        }
    }
    assert!(restarts > 32, "CPUs came or went only {restarts} times");
}

/// As on kernels from 7.1 that are asked to: who cannot run at once does not wait on a CPU.
#[test]
fn no_task_starves_where_what_cannot_run_at_once_is_enqueued_anew() {
    for (policy, seeds) in [("fair", 0..8), ("both", 8..12), ("complex", 12..14), ("attached", 14..16)] {
        for seed in seeds {
            let equal = Setting { immediate: true, longest_wait_ns: LONGEST_ROUND_NS, ..setting(seed) };
            let unequal = Setting { immediate: true, ..Setting::unequal(16, 4000 * MS, seed) };
            for setting in [equal, unequal] {
                let outcome = run_one("sgi-4d340", policy, setting);
                outcome.unwrap_or_else(|violation| panic!("{policy}, {setting:?}: {violation}"));
            }
        }
    }
}

#[test]
fn a_run_follows_from_its_setting() {
    let outcomes = [1, 1, 2].map(|seed| run_one("dash-16", "fair", setting(seed)).unwrap());
    assert_eq!(outcomes[0], outcomes[1]);
    assert_ne!(outcomes[0], outcomes[2]);
}

#[test]
fn a_scheduler_that_takes_nothing_out_of_its_queues_is_found_out() {
    let outcome = run_one("dash-16", "fair", Setting { stalls: true, ..setting(1) });
    assert!(matches!(outcome, Err(Violation::IdleBesideWork { .. })), "{outcome:?}");
}

#[test]
fn what_cannot_be_run_is_refused() {
    let policy = Policy::load("fair").unwrap();
    let [mut large, small] = ["chiplet-64", "dash-16"].map(|name| Machine::load(name).unwrap());
    large.nodes[0].cpus += 8;
    for (machine, setting, what) in [
        (&large, setting(1), "chiplet-64 has 72 CPUs; name a machine of at most 64"),
        (&small, Setting { tasks: 0, ..setting(1) }, "no tasks"),
        (&small, Setting { switch_one_in: 0, ..setting(1) }, "one in 0 accesses"),
    ] {
        let error = run(machine, &policy, setting).unwrap_err().to_string();
        assert!(error.contains(what), "{error}");
    }
}

/// Fragments come, move, are split and go, with plans or without, and whatever the weights.
#[test]
fn no_task_starves_that_declares_what_it_works_on() {
    for seed in 0..32 {
        let equal = Setting { fragments: true, hotplug: seed % 4 == 0, ..setting(seed) };
        let unequal = Setting { fragments: true, ..Setting::unequal(16, 4000 * MS, seed) };
        let setting = if seed % 3 == 0 { unequal } else { equal };
        let setting = if seed % 5 == 0 { setting.with_plans() } else { setting };
        let machine = if seed % 2 == 0 { "dash-16" } else { "sgi-4d340" };
        let outcome = run_one(machine, "fair", setting);
        outcome.unwrap_or_else(|violation| panic!("{machine}, {setting:?}: {violation}"));
    }
}

/// Whatever comes together: each seed is another mixture.
#[test]
fn all_of_it_may_come_at_once() {
    for seed in 0..64 {
        let has = |bit: u64| seed >> bit & 1 == 1;
        let tasks = 6 + 5 * (seed as usize % 7);
        let make = if has(0) { Setting::unequal } else { Setting::new };
        let made = make(tasks, 2000 * MS, seed);
        let setting = Setting { hotplug: has(1), fragments: has(2), immediate: has(4), ..made };
        let setting = if has(3) { setting.with_plans() } else { setting };
        let machine = if has(5) { "sgi-4d340" } else { "dash-16" };
        let outcome = run_one(machine, "fair", setting);
        outcome.unwrap_or_else(|violation| panic!("{machine}, {setting:?}: {violation}"));
    }
}

#[test]
fn plans_may_come_and_go_in_the_middle_of_anything() {
    for (policy, machine, seeds) in
        [("fair", "dash-16", 0..24), ("fair", "sgi-4d340", 24..40), ("both", "dash-16", 40..48)]
    {
        for seed in seeds {
            let setting = Setting { hotplug: seed % 4 == 0, ..setting(seed).with_plans() };
            let outcome = run_one(machine, policy, setting);
            outcome.unwrap_or_else(|violation| panic!("{policy} on {machine}, seed {seed}: {violation}"));
        }
    }
}

#[test]
fn plans_may_come_and_go_under_unequal_tasks() {
    for seed in 0..8 {
        let setting = Setting { switch_one_in: 512, ..Setting::unequal(16, 12_000 * MS, seed).with_plans() };
        let outcome = run_one("dash-16", "fair", setting);
        outcome.unwrap_or_else(|violation| panic!("seed {seed}: {violation}"));
    }
}
