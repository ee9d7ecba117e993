//! Tasks that compute, sleep and wake by the clock, and when and where each ran: what tests of steady policies share.

#![allow(dead_code, clippy::unwrap_used)]

use hearth_machine::{CpuSet, Machine};
use hearth_policy::Policy;
use hearth_sim::measure::Stretch;
use hearth_sim::program::Body;
use hearth_sim::{Application, Cpu, Options, RunResult, Simulation};

pub const US: u64 = 1_000;
pub const MS: u64 = 1_000_000;
/// Of the first cache of `server-2s`, and of the other.
pub const HERE: usize = 0;
pub const THERE: usize = 16;

pub fn machine() -> Machine {
    Machine::load("server-2s").unwrap()
}

pub fn run(policy: &str, tasks: Vec<Body>) -> RunResult {
    run_on(&machine(), policy, true, tasks)
}

pub fn run_on(machine: &Machine, policy: &str, audit: bool, tasks: Vec<Body>) -> RunResult {
    let options = Options { audit, timeline: true, time_limit_ns: 10_000 * MS, ..Options::default() };
    let mut simulation = Simulation::new(machine, &Policy::load(policy).unwrap(), &options).unwrap();
    let mut application = Application::new("moves");
    tasks.into_iter().for_each(|task| application.tasks.push(("task".into(), task)));
    simulation.add(application);
    simulation.run().unwrap_or_else(|error| panic!("{error}"))
}

/// When and where a task ran.
pub fn ran(result: &RunResult, task: usize) -> Vec<Stretch> {
    result.timeline.iter().filter(|stretch| stretch.task == task).copied().collect()
}

/// How long it was between two stretches.
pub fn between_ns(pair: &[Stretch]) -> u64 {
    pair[1].start_ns - pair[0].end_ns
}

pub fn compute_ns(cpu: &mut Cpu<'_>, ns: u64) {
    cpu.compute(ns * machine().clock_hz / 1_000_000_000);
}

pub fn spin(cpu: &mut Cpu<'_>, ms: u64) {
    (0..ms).for_each(|_| compute_ns(cpu, MS));
}

pub fn only(cpu: &mut Cpu<'_>, cpus: &[usize]) {
    let mask = cpus.iter().fold(CpuSet::default(), |mask, cpu| mask.with(*cpu));
    assert!(cpu.set_mask(cpu.task(), mask));
    cpu.compute(1);
}
