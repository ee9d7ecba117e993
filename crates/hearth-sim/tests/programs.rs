//! Parallel programs that ask to be scheduled as one: what planners are told of them, and they of plans.

#![allow(clippy::unwrap_used)]

use hearth_machine::Machine;
use hearth_policy::{Controller, Policy};
use hearth_sim::program::{Asked, Asks};
use hearth_sim::{Application, Options, RunResult, Simulation};
use proptest::prelude::*;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

const MS: u64 = 1_000_000;
const CYCLES_A_MS: u64 = 33_000;
const CPUS: usize = 16;

/// The numbers of CPUs that a program was told, in order.
type Told = Rc<RefCell<Vec<usize>>>;

/// A program of so many tasks, each of which computes for so long.
fn program(name: &str, tasks: usize, ms: u64, start_ms: u64, asks: Asks) -> (Application, Told) {
    let told = Told::default();
    let mut application = Application::new(name);
    application.start_ns = start_ms * MS;
    (0..tasks).for_each(|_| {
        application.task("spin", move |cpu| (0..ms).for_each(|_| cpu.compute(CYCLES_A_MS)));
    });
    let note = Rc::clone(&told);
    let tell: Box<dyn Fn(usize)> = Box::new(move |cpus| note.borrow_mut().push(cpus));
    application.asked = Some(Asked { asks, cpus: tasks, told: Some(tell) });
    (application, told)
}

fn run(planner: &str, applications: Vec<Application>) -> RunResult {
    let machine = Machine::load("dash-16").unwrap();
    let policy = Policy::load("standard").unwrap();
    let options = Options { timeline: true, ..Options::default() };
    let mut simulation = Simulation::new(&machine, &policy, &options).unwrap();
    simulation.plan_with(Controller::named(planner).unwrap()).unwrap();
    applications.into_iter().for_each(|application| simulation.add(application));
    simulation.run().unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn programs_have_sets_of_their_own_and_know_how_large_they_are() {
    let (long, long_told) = program("long", 16, 1500, 0, Asks::Set);
    let (short, short_told) = program("short", 16, 300, 500, Asks::Set);
    let result = run("sets", vec![long, short]);
    let sizes = |told: Told| {
        let mut sizes = told.take();
        sizes.dedup();
        sizes
    };
    assert_eq!(sizes(long_told), [16, 8, 16], "alone, beside the other, and alone again");
    assert_eq!(sizes(short_told).first(), Some(&8));
    let places = &result.planned.unwrap().places[0].places;
    assert_eq!(places.iter().map(|place| place.cpus.len()).collect::<Vec<_>>(), [8, 8]);
    let end_ns = result.applications[1].start_ns + result.applications[1].execution_ns;
    // From when the plan is followed by all until the shorter program's first task may have ended.
    let beside = |at_ns: u64| (800 * MS..end_ns - 100 * MS).contains(&at_ns);
    let stretches: Vec<_> = result.timeline.iter().filter(|stretch| beside(stretch.start_ns)).collect();
    assert!(stretches.len() > 20, "{}", stretches.len());
    for stretch in stretches {
        let own = &places[result.tasks[stretch.task].application].cpus;
        assert!(own.contains(&stretch.cpu), "{stretch:?}");
    }
}

#[test]
fn gangs_have_rows_of_their_own() {
    let applications = ["one", "other"].map(|name| program(name, 16, 1000, 0, Asks::Gang).0);
    let result = run("gangs", applications.into());
    let places = result.planned.unwrap().places;
    let widest = places.iter().max_by_key(|places| places.places.len()).unwrap();
    assert_eq!(widest.rows, 2);
    let rows: Vec<(usize, Option<usize>, usize)> =
        widest.places.iter().map(|place| (place.application, place.row, place.cpus.len())).collect();
    assert_eq!(rows, [(0, Some(0), 16), (1, Some(1), 16)]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn sets_are_never_empty_never_overlap_and_are_what_programs_are_told(
        programs in prop::collection::vec((1..20usize, 50..400u64, 0..600u64), 1..6),
    ) {
        let asked = programs.iter().map(|&(tasks, ms, start_ms)| program("p", tasks, ms, start_ms, Asks::Set));
        let (applications, told): (Vec<_>, Vec<_>) = asked.unzip();
        let planned = run("sets", applications).planned.unwrap();
        prop_assert_eq!(planned.failure, None);
        for now in &planned.places {
            let mut taken = BTreeSet::new();
            for place in &now.places {
                prop_assert!(!place.cpus.is_empty());
                prop_assert!(place.cpus.iter().all(|&cpu| cpu < CPUS && taken.insert(cpu)), "{:?}", now);
            }
        }
        for (application, told) in told.iter().enumerate() {
            let had = planned.places.iter().flat_map(|now| &now.places);
            let had = had.filter(|place| place.application == application).map(|place| place.cpus.len());
            let sizes: BTreeSet<usize> = had.chain([CPUS]).collect();
            prop_assert!(told.borrow().iter().all(|size| sizes.contains(size)), "{:?} of {:?}", told, sizes);
        }
    }
}
