//! Whom `hearth neighbours` would blame, where it can be tried without them: on the simulated machine.

#![allow(clippy::unwrap_used)]

use hearth_experiments::{Job, Policies, Run, Workload, run_one};
use hearth_machine::Machine;
use hearth_policy::isolation::blame::{Victim, blame};
use hearth_policy::isolation::side_by_side::{Sample, Who};
use hearth_policy::snapshot;
use hearth_sim::Options;
use std::sync::Arc;

const SCALE: f64 = 0.5;
const PROGRAMS: &str = "twolf+mcf+crafty+vortex+gzip";
/// As they stand there, from 1.
const MCF: Who = 2;
const CRAFTY: Who = 3;

fn run(workload: Workload) -> Run {
    let job = Job {
        machine: Arc::new(Machine::load("t1-dual").unwrap()),
        workload,
        policies: Policies::load("fixed").unwrap(),
        scale: SCALE,
        seed: 1,
        options: Options { record_runs: true, ..Options::default() },
        sampled: None,
    };
    run_one(&job, None).unwrap()
}

/// Runs of two CPUs, which end together, as samples of programs beside each other.
fn samples(runs: &[snapshot::Run]) -> Vec<Sample> {
    let side_by_side = runs.windows(2).filter(|pair| pair[0].cpu < pair[1].cpu && pair[0].others == 1);
    let sample = |own: &snapshot::Run, other: &snapshot::Run| Sample {
        who: own.group as Who,
        cycles: own.cycles as f64,
        instructions: own.instructions as f64,
        misses: own.misses as f64,
        beside: vec![(other.group as Who, other.misses as f64)],
        // The time is that of the order in which they come.
        ..Sample::default()
    };
    let both = side_by_side.flat_map(|pair| [sample(&pair[0], &pair[1]), sample(&pair[1], &pair[0])]);
    both.filter(|sample| sample.cycles > 0.0 && sample.instructions > 0.0).collect()
}

/// How much a neighbour slows a program whenever it is beside it, as a part.
fn beside(victim: &Victim, neighbour: Who, samples: &[Sample]) -> f64 {
    let cycles = |is_counted: &dyn Fn(&Sample) -> bool| {
        let own = samples.iter().filter(|sample| sample.who == victim.who && is_counted(sample));
        own.map(|sample| sample.cycles).sum::<f64>()
    };
    let share = cycles(&|sample| sample.beside.iter().any(|(who, _)| *who == neighbour)) / cycles(&|_| true);
    let slowing = victim.by.iter().find(|(who, _)| *who == neighbour).unwrap().1.unwrap();
    slowing.percent / 100.0 / share
}

/// The CPU time that twolf takes with a program always on the other CPU.
fn twolf_beside(neighbour: &str) -> f64 {
    let run = run(Workload::parse(&format!("twolf beside vortex and {neighbour} after 1 s")).unwrap());
    run.result.applications[0].tally.cpu_ns as f64
}

#[test]
fn who_is_blamed_in_a_crowd_slows_as_much_by_itself() {
    let crowd = run(Workload::Sampled(PROGRAMS.into()));
    let samples = samples(&crowd.result.runs);
    let victims = blame(&samples);
    let twolf = victims.iter().find(|victim| victim.who == 1).unwrap();
    assert_eq!(twolf.by[0].0, MCF, "it misses most: {twolf:?}");
    assert!(twolf.by[0].1.unwrap().is_sure(), "{twolf:?}");
    let blamed = (1.0 + beside(twolf, MCF, &samples)) / (1.0 + beside(twolf, CRAFTY, &samples));
    let truth = twolf_beside("mcf") / twolf_beside("crafty");
    println!("twolf beside mcf over beside crafty: blamed {blamed:.3}, tried {truth:.3}");
    assert!(truth > 1.02, "{truth}");
    assert!(((blamed - 1.0) / (truth - 1.0) - 1.0).abs() < 0.5, "blamed {blamed:.3}, tried {truth:.3}");
}
