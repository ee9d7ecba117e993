//! Runs of tasks beside the same others, as planners are told of them, and programs in the background.

#![allow(clippy::unwrap_used)]

use hearth_hardware::Placement;
use hearth_machine::CpuSet;
use hearth_machine::Machine;
use hearth_policy::planners::Planner;
use hearth_policy::snapshot::{Class, Run};
use hearth_policy::{Controller, Plan, Policy, Snapshot};
use hearth_sim::{Application, Options, RunResult, Simulation};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

const LINE: u64 = 64;

/// Reads lines of a region in turn; for ever, if it has no end.
fn walker(simulation: &Simulation, name: &str, lines: u64, reads: Option<u64>, cpus: u64) -> Application {
    let region = simulation.memory().segment(lines * LINE, Placement::FirstTouch);
    let mut application = Application::new(name);
    application.cpus = CpuSet::of_word(cpus);
    application.is_background = reads.is_none();
    application.task(name, move |cpu| {
        for read in 0..reads.unwrap_or(u64::MAX) {
            cpu.read(region.base + read % lines * LINE);
            cpu.compute(20);
        }
    });
    application
}

fn simulation(options: &Options) -> Simulation {
    Simulation::new(&Machine::load("t1-dual").unwrap(), &Policy::load("fair").unwrap(), options).unwrap()
}

/// A principal with a background program on its CPU, and one of many misses beside it.
fn run_beside(options: &Options, planner: Option<Controller>) -> RunResult {
    let mut simulation = simulation(options);
    if let Some(planner) = planner {
        simulation.plan_with(planner).unwrap();
    }
    let mut principal = walker(&simulation, "principal", 4000, Some(4_000_000), 1);
    principal.class = Some(Class::CacheFair);
    for application in [
        principal,
        walker(&simulation, "turns", 2000, None, 1),
        walker(&simulation, "beside", 60_000, None, 2),
    ] {
        simulation.add(application);
    }
    simulation.run().unwrap()
}

#[test]
fn what_runs_in_the_background_ends_with_the_others() {
    let result = run_beside(&Options::default(), None);
    let [principal, turns, beside] = &result.applications[..] else { panic!("three") };
    assert_eq!(principal.execution_ns, result.elapsed_ns);
    assert_eq!((turns.execution_ns, beside.execution_ns), (result.elapsed_ns, result.elapsed_ns));
    assert!(beside.tally.cpu_ns > result.elapsed_ns * 9 / 10, "{}", beside.tally.cpu_ns);
    assert!(result.idle_share < 0.01 && turns.tally.cpu_ns > principal.tally.cpu_ns / 2);
}

#[test]
fn runs_tell_all_that_a_task_did_and_what_was_done_beside_it() {
    let result = run_beside(&Options { record_runs: true, ..Options::default() }, None);
    assert!(result.runs.len() > 10);
    for (index, application) in result.applications.iter().enumerate() {
        let own: Vec<&Run> = result.runs.iter().filter(|run| run.group == index as u64 + 1).collect();
        let sum = |what: fn(&Run) -> u64| own.iter().map(|run| what(run)).sum::<u64>() as f64;
        let counters = application.tally.counters;
        for (runs, all) in [
            (sum(|run| run.instructions), counters.instructions()),
            (sum(|run| run.misses), counters.misses()),
            (sum(|run| run.transfers), counters.transfers()),
            (sum(|run| run.cycles) / 0.992, application.tally.cpu_ns),
        ] {
            assert!((runs / all as f64 - 1.0).abs() < 0.01, "{}: {runs} of {all}", application.name);
        }
    }
    let of_cpu = |cpu| result.runs.iter().filter(move |run| run.cpu == cpu);
    let beside: u64 = of_cpu(0).map(|run| run.others_misses).sum();
    let did: u64 = of_cpu(1).map(|run| run.misses).sum();
    assert!((beside as f64 / did as f64 - 1.0).abs() < 0.01, "{beside} beside, {did} done");
    assert!(result.runs.iter().all(|run| run.others <= 1) && did > 500_000);
}

/// What a planner is told: runs, and the classes of groups.
type Told = (Vec<Run>, BTreeMap<u64, Class>);

/// Keeps what it is told.
struct Listener(Arc<Mutex<Told>>);

impl Planner for Listener {
    fn name(&self) -> &'static str {
        "listener"
    }

    fn plan(&mut self, snapshot: &Snapshot, _: &mut Plan) {
        let mut told = self.0.lock().unwrap();
        told.0.extend(&snapshot.runs);
        told.1.clone_from(&snapshot.classes);
    }
}

#[test]
fn a_planner_is_told_each_run_once_and_the_classes() {
    let told = Arc::new(Mutex::new(Told::default()));
    let listener = || Some(Controller::new(vec![Box::new(Listener(Arc::clone(&told)))]));
    let recorded = run_beside(&Options { record_runs: true, ..Options::default() }, listener()).runs;
    let (runs, classes) = std::mem::take(&mut *told.lock().unwrap());
    assert_eq!(classes, BTreeMap::from([(1, Class::CacheFair)]));
    assert!(runs.len() > 10 && recorded.starts_with(&runs), "{} of {}", runs.len(), recorded.len());
    run_beside(&Options::default(), listener());
    assert_eq!(told.lock().unwrap().0, runs, "recorded or not");
}
