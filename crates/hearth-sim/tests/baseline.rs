//! The kernel's own class on the simulated machine (`bpf/baseline/`): what is known of it without measuring.

#![allow(clippy::unwrap_used)]

use hearth_machine::{CpuSet, Machine};
use hearth_policy::Policy;
use hearth_sim::sync::Semaphore;
use hearth_sim::{Application, Cpu, Options, RunResult, Simulation};
use proptest::prelude::*;

const MS: u64 = 1_000_000;
const SAMPLE_NS: u64 = 50 * MS;
/// On `sgi-4d340`: requests are shorter than a tick, so slices are ticks.
const SLICE_NS: u64 = 10 * MS;

fn simulation(machine: &str) -> Simulation {
    let options = Options { audit: true, sample_ns: SAMPLE_NS, ..Options::default() };
    let policy = Policy::load("kernel").unwrap();
    Simulation::new(&Machine::load(machine).unwrap(), &policy, &options).unwrap()
}

fn compute_ms(cpu: &mut Cpu<'_>, ms: u64) {
    (0..ms * 33).for_each(|_| cpu.compute(1000));
}

/// Tasks of these weights that compute on `sgi-4d340`, on CPU 0 or anywhere.
fn spin(weights: &[u32], cpus: CpuSet, ms: u64) -> RunResult {
    let mut simulation = simulation("sgi-4d340");
    for &weight in weights {
        let mut application = Application::new("spin");
        application.task("spin", move |cpu| {
            cpu.set_mask(cpu.task(), cpus);
            cpu.set_weight(cpu.task(), weight);
            compute_ms(cpu, ms);
        });
        simulation.add(application);
    }
    simulation.run().unwrap()
}

/// CPU time of each task by the last sample at which all were there.
fn shares(result: &RunResult) -> (u64, &[u64]) {
    let first_end_ns = result.applications.iter().map(|application| application.execution_ns).min().unwrap();
    let sample = result.samples.iter().rfind(|sample| sample.at_ns < first_end_ns).unwrap();
    (sample.at_ns, &sample.cpu_ns)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20))]

    /// A task is ahead or behind by a request and a tick (`update_entity_lag`), and what it runs when the sample is
    /// taken does not count yet.
    #[test]
    fn tasks_of_one_cpu_share_it_by_weight(weights in prop::collection::vec(50..200u32, 2..8)) {
        let result = spin(&weights, CpuSet::one(0), 1500);
        let (at_ns, shares) = shares(&result);
        let sum: u32 = weights.iter().sum();
        for (&share, &weight) in shares.iter().zip(&weights) {
            let fair_ns = at_ns * u64::from(weight) / u64::from(sum);
            prop_assert!(share.abs_diff(fair_ns) <= 4 * SLICE_NS, "{share} of {fair_ns} ns, {weights:?}");
        }
    }

    #[test]
    fn every_task_of_a_crowd_comes_to_run(tasks in 2..16usize) {
        let result = spin(&vec![100; tasks], CpuSet::one(0), 600);
        let two_rounds = (2 * tasks as u64 * SLICE_NS).div_ceil(SAMPLE_NS) as usize + 1;
        let first_end_ns = result.applications.iter().map(|application| application.execution_ns).min().unwrap();
        let samples: Vec<_> = result.samples.iter().filter(|sample| sample.at_ns < first_end_ns).collect();
        for (before, after) in samples.iter().zip(samples.iter().skip(two_rounds)) {
            for (before, after) in before.cpu_ns.iter().zip(&after.cpu_ns) {
                prop_assert!(after > before, "one did not run from {} ns on", before);
            }
        }
    }

    /// Periodic balancing needs some ticks at first, and a task sees late that its time is over.
    #[test]
    fn as_many_tasks_as_cpus_or_more_keep_all_cpus_busy(tasks in 4..20usize) {
        let mut simulation = simulation("sgi-4d340");
        let mut application = Application::new("spin");
        for _ in 0..tasks {
            application.task("spin", |cpu| {
                while cpu.now_ns() < 2000 * MS {
                    compute_ms(cpu, 1);
                }
            });
        }
        simulation.add(application);
        let result = simulation.run().unwrap();
        prop_assert!(result.idle_share < 0.03, "{} idle", result.idle_share);
    }
}

#[test]
fn tasks_that_begin_together_begin_on_cpus_of_their_own() {
    let result = spin(&[100; 4], CpuSet::first(4), 300);
    assert_eq!(result.total.cpu_moves, 0);
    assert!(result.elapsed_ns < 320 * MS, "{} ns", result.elapsed_ns);
}

/// `select_idle_sibling` looks within the cache of the waker or of where the task ran.
#[test]
fn two_tasks_that_wake_each_other_stay_within_a_cache() {
    for machine in ["chiplet-64", "server-2s"] {
        let mut simulation = simulation(machine);
        let (ping, pong) = (Semaphore::new(0), Semaphore::new(0));
        let mut application = Application::new("pair");
        let pair = [(ping.clone(), pong.clone()), (pong, ping.clone())];
        for (number, (mine, other)) in pair.into_iter().enumerate() {
            application.task("talks", move |cpu| {
                for turn in 0..2000 {
                    if number == 0 || turn > 0 {
                        other.post(cpu);
                    }
                    mine.wait(cpu);
                    cpu.compute(3000);
                }
                other.post(cpu);
            });
        }
        simulation.add(application);
        let result = simulation.run().unwrap();
        // Where they began is another matter.
        assert!(result.total.domain_moves <= 2, "{machine}: {} moves", result.total.domain_moves);
        assert!(result.total.wakeups > 4000, "{machine}: {} wake-ups", result.total.wakeups);
    }
}

/// One cache is full and all others idle: the running tasks themselves are pushed away (`active_load_balance_cpu_stop`).
#[test]
fn tasks_that_run_are_spread_over_caches() {
    let mut simulation = simulation("chiplet-64");
    let mut application = Application::new("spin");
    for _ in 0..8 {
        application.task("spin", |cpu| {
            cpu.set_mask(cpu.task(), CpuSet::first(8));
            cpu.compute(1000);
            cpu.set_mask(cpu.task(), CpuSet::first(64));
            cpu.compute(3_000_000_000);
        });
    }
    simulation.add(application);
    let result = simulation.run().unwrap();
    assert!((1..=24).contains(&result.total.domain_moves), "{} moves", result.total.domain_moves);
}
