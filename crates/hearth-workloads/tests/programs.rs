//! Every program, run on the simulated machine, comes to the right result.

#![allow(clippy::unwrap_used)]

use hearth_machine::Machine;
use hearth_policy::Policy;
use hearth_sim::{Options, RunResult, Simulation};
use hearth_workloads::cool::Sharing;
use hearth_workloads::{Description, WorkloadError, build, build_mix, list};

/// Short, but long enough for every kind of work that each program does.
const SCALE: f64 = 0.02;

/// Those that compute something, and come to an end.
fn programs() -> impl Iterator<Item = &'static Description> {
    list().iter().filter(|program| !["spin", "daemons"].contains(&program.name))
}

fn simulation(policy: &str, seed: u64) -> Simulation {
    let machine = Machine::load("sgi-4d340").unwrap();
    Simulation::new(&machine, &Policy::load(policy).unwrap(), &Options { seed, ..Options::default() })
        .unwrap()
}

fn run(mix: &str, policy: &str, seed: u64) -> RunResult {
    let mut simulation = simulation(policy, seed);
    let mut checks = Vec::new();
    for built in build_mix(mix, &simulation.memory(), SCALE, seed, Sharing::OneByOne).unwrap() {
        built.applications.into_iter().for_each(|application| simulation.add(application));
        checks.push(built.check);
    }
    let result = simulation.run().unwrap();
    for check in checks {
        check().unwrap();
    }
    result
}

#[test]
fn every_program_comes_to_the_right_result() {
    for (program, policy) in programs().zip(["standard", "heavy"].into_iter().cycle()) {
        let result = run(program.name, policy, 1);
        assert!(result.total.cpu_ns > 20_000_000, "{}: {} ns", program.name, result.total.cpu_ns);
    }
}

#[test]
fn programs_that_share_the_machine_still_come_to_the_right_result() {
    run("matrix+cholesky+mp3d", "light", 2);
    run("pmake+oltp", "standard", 3);
}

#[test]
fn a_program_that_has_not_run_has_no_right_result() {
    for program in programs() {
        let simulation = simulation("standard", 1);
        let built = build(program.name, &simulation.memory(), SCALE, 1).unwrap();
        assert!((built.check)().is_err(), "{}", program.name);
    }
}

#[test]
fn the_same_seed_gives_the_same_run_and_another_seed_another() {
    for program in programs() {
        let [first, again, other] = [7, 7, 8].map(|seed| run(program.name, "standard", seed));
        assert_eq!(first, again, "{}", program.name);
        assert_ne!(first.total.counters, other.total.counters, "{}", program.name);
    }
}

#[test]
fn daemons_wake_up_as_often_as_is_said_and_count_for_no_time() {
    // At this scale the probe computes for 0.4 s.
    let mix = ["spin"; 16 * 8].join("+") + "+daemons";
    let result = run(&mix, "standard", 1);
    let seconds = result.elapsed_ns as f64 / 1e9;
    let of = |name: &str| result.applications.iter().find(|application| application.name == name).unwrap();
    let daemons = of("daemons");
    assert!(daemons.is_background && seconds > 10.0, "{seconds} s");
    let a_second = daemons.tally.switches as f64 / seconds;
    assert!((1.8..3.0).contains(&a_second), "{a_second} switches a second");
    let share = daemons.tally.cpu_ns as f64 / result.elapsed_ns as f64;
    assert!(share > 0.0005 && share < 0.01, "{share} of a CPU");
    assert_eq!(result.awaited().count(), 128);
    let mean = result.awaited().map(|(_, application)| application.execution_ns).sum::<u64>() / 128;
    assert_eq!(result.mean_execution_ns, mean);
}

#[test]
fn copies_in_a_mix_are_told_apart() {
    let result = run("matrix+matrix", "standard", 1);
    let names: Vec<&str> = result.applications.iter().map(|application| application.name.as_str()).collect();
    assert_eq!(names, ["matrix#1", "matrix#2"]);
}

#[test]
fn a_scale_that_cannot_be_run_is_refused() {
    let simulation = simulation("standard", 1);
    for scale in [0.0, -1.0, 1.5, f64::NAN] {
        let error = build("matrix", &simulation.memory(), scale, 1).err();
        assert!(matches!(error, Some(WorkloadError::BadScale { .. })), "{scale}");
    }
}
