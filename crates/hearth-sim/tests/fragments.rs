//! Data affinity on the simulated machine: where tasks run that declare what they work on.

#![allow(clippy::unwrap_used)]

use hearth_machine::Machine;
use hearth_policy::Policy;
use hearth_sim::measure::Stretch;
use hearth_sim::{Application, Cpu, Options, RunResult, Simulation};
use std::collections::BTreeMap;

const MS: u64 = 1_000_000;
/// Of `sgi-4d340`, which has four CPUs.
const CYCLES_A_MS: u64 = 33_000;

fn spin(cpu: &mut Cpu<'_>, ms: u64) {
    (0..ms).for_each(|_| cpu.compute(CYCLES_A_MS));
}

fn fair(fragment_ns: u64) -> Policy {
    let mut policy = Policy::load("fair").unwrap();
    policy.credit.fragment_ns = fragment_ns;
    policy
}

fn run(policy: &Policy, application: Application) -> RunResult {
    let machine = Machine::load("sgi-4d340").unwrap();
    let options = Options { timeline: true, ..Options::default() };
    let mut simulation = Simulation::new(&machine, policy, &options).unwrap();
    simulation.add(application);
    simulation.run().unwrap_or_else(|error| panic!("{error}"))
}

/// Tasks that each work on a fragment of their own choice, for `ms`.
fn workers(fragments: &[u64], ms: u64) -> Application {
    let mut application = Application::new("workers");
    for &fragment in fragments {
        application.task("worker", move |cpu| {
            cpu.enter(fragment);
            spin(cpu, ms);
            cpu.leave();
        });
    }
    application
}

/// By fragment: when its tasks ran, from `from_ns` on.
fn by_fragment(result: &RunResult, fragments: &[u64], from_ns: u64) -> BTreeMap<u64, Vec<Stretch>> {
    let mut all: BTreeMap<u64, Vec<Stretch>> = BTreeMap::new();
    for stretch in result.timeline.iter().filter(|stretch| stretch.start_ns >= from_ns) {
        all.entry(fragments[stretch.task]).or_default().push(*stretch);
    }
    all
}

fn overlap(one: &Stretch, other: &Stretch) -> bool {
    one.cpu != other.cpu && one.start_ns < other.end_ns && other.start_ns < one.end_ns
}

#[test]
fn tasks_of_one_fragment_run_on_one_cpu() {
    let fragments: Vec<u64> = (0..16).map(|task| 1 + task % 4).collect();
    let result = run(&fair(4 * MS), workers(&fragments, 100));
    for (fragment, stretches) in by_fragment(&result, &fragments, 50 * MS) {
        let first = stretches[0].cpu;
        assert!(stretches.iter().all(|one| one.cpu == first), "fragment {fragment}: {stretches:?}");
    }
}

#[test]
fn tasks_of_a_whole_fragment_never_run_on_two_cpus_at_once() {
    let fragments: Vec<u64> = (0..15).map(|task| 1 + task % 5).collect();
    let result = run(&fair(4 * MS), workers(&fragments, 60));
    for (fragment, stretches) in by_fragment(&result, &fragments, 50 * MS) {
        for (i, one) in stretches.iter().enumerate() {
            assert!(
                !stretches[i + 1..].iter().any(|other| overlap(one, other)),
                "fragment {fragment}: {stretches:?}"
            );
        }
    }
}
