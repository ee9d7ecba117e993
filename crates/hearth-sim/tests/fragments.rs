//! Data affinity on the simulated machine: where tasks run that declare what they work on.

#![allow(clippy::unwrap_used)]

use hearth_machine::Machine;
use hearth_policy::Policy;
use hearth_policy::fragments::partition::{greatest_load, optimal};
use hearth_sim::measure::Stretch;
use hearth_sim::{Application, Cpu, Options, RunResult, Simulation};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

const MS: u64 = 1_000_000;
/// Of `sgi-4d340`, which has four CPUs.
const CYCLES_A_MS: u64 = 33_000;
const CPUS: usize = 4;

fn spin(cpu: &mut Cpu<'_>, ms: u64) {
    (0..ms).for_each(|_| cpu.compute(CYCLES_A_MS));
}

/// A steady policy: a fragment's tasks come to wait at its home, and idle CPUs take them from there when it pays.
fn fair() -> Policy {
    Policy::load("fair").unwrap()
}

/// One that is not steady: fragments stay whole.
fn whole() -> Policy {
    Policy::load("plain:credit.fragment=4ms").unwrap()
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
    const DEALT_NS: u64 = 150 * MS;
    for policy in [whole(), fair()] {
        let result = run(&policy, workers(&fragments, 100));
        let first_end = (0..fragments.len()).filter_map(|task| {
            result.timeline.iter().filter(|stretch| stretch.task == task).map(|stretch| stretch.end_ns).max()
        });
        let first_end = first_end.min().unwrap();
        for (fragment, stretches) in by_fragment(&result, &fragments, DEALT_NS) {
            // Then a CPU idles, and may take what waits at another.
            let mut while_busy = stretches.iter().take_while(|one| one.end_ns < first_end);
            let first = while_busy.next().unwrap().cpu;
            assert!(while_busy.all(|one| one.cpu == first), "{}, {fragment}: {stretches:?}", policy.name);
        }
    }
}

/// Not only the CPU where it lives: the others idle.
#[test]
fn a_fragment_that_is_alone_has_all_cpus_when_that_pays() {
    const MS_EACH: u64 = 200;
    let result = run(&fair(), workers(&[1; 8], MS_EACH));
    let end_ns = result.timeline.iter().map(|stretch| stretch.end_ns).max().unwrap();
    let least_ns = 8 * MS_EACH / CPUS as u64 * MS;
    assert!(end_ns < 5 * least_ns / 4, "it took {} ms, and could {}", end_ns / MS, least_ns / MS);
}

#[test]
fn what_idle_cpus_take_of_a_fragment_that_runs_at_its_home_is_counted() {
    let result = run(&whole(), workers(&[1; 8], 200));
    let counted: u64 = result.dispatches.iter().map(|of_cpu| of_cpu.fragments).sum();
    assert!(counted > 0);
}

#[test]
fn tasks_of_a_whole_fragment_never_run_on_two_cpus_at_once() {
    let fragments: Vec<u64> = (0..15).map(|task| 1 + task % 5).collect();
    let result = run(&whole(), workers(&fragments, 60));
    for (fragment, stretches) in by_fragment(&result, &fragments, 50 * MS) {
        for (i, one) in stretches.iter().enumerate() {
            assert!(
                !stretches[i + 1..].iter().any(|other| overlap(one, other)),
                "fragment {fragment}: {stretches:?}"
            );
        }
    }
}

/// Fragments with so many tasks each that compute without end, but for those that soon leave the others to an
/// uneven machine: the most tasks that a CPU has to run when there was time to even them out.
fn greatest_load_of(fragments: &[(u64, bool)]) -> u64 {
    const LEAVE_MS: u64 = 100;
    const LOOK_MS: u64 = 600;
    const LOOK_FOR_MS: u64 = 150;
    let mut application = Application::new("workers");
    for (number, &(tasks, stays)) in (1..).zip(fragments) {
        for _ in 0..tasks {
            application.task("worker", move |cpu| {
                cpu.enter(number);
                let until_ms = if stays { LOOK_MS + LOOK_FOR_MS } else { LEAVE_MS };
                while cpu.now_ns() < until_ms * MS {
                    cpu.compute(CYCLES_A_MS);
                }
            });
        }
    }
    let result = run(&whole(), application);
    let mut tasks: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
    for stretch in &result.timeline {
        if stretch.end_ns > LOOK_MS * MS && stretch.start_ns < (LOOK_MS + LOOK_FOR_MS) * MS {
            tasks.entry(stretch.cpu).or_default().insert(stretch.task);
        }
    }
    tasks.values().map(|tasks| tasks.len() as u64).max().unwrap_or_default()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(50))]

    /// Where no single move helps, the greatest load is at most 2 - 2 / (CPUs + 1) times the least possible
    /// (Finn and Horowitz, "A linear time approximation algorithm for multiprocessor scheduling", 1979), and one
    /// task more is not moved for.
    #[test]
    fn whole_fragments_are_dealt_nearly_as_evenly_as_they_can_be(
        fragments in prop::collection::vec((1..7u64, any::<bool>()), 8..24),
    ) {
        let left: Vec<u64> = fragments.iter().filter(|(_, stays)| *stays).map(|(tasks, _)| *tasks).collect();
        let best = optimal(&left, CPUS).into_iter().zip(left.iter().copied());
        let (best, dealt) = (greatest_load(best, CPUS), greatest_load_of(&fragments));
        prop_assert!(5 * dealt <= 8 * best + 5, "{} tasks on a CPU where {} can be", dealt, best);
    }
}
