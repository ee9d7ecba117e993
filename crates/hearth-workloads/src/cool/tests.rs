//! The runtime: every task is done once, whatever the schedule, and process control keeps to the number.

use super::process::Process;
use super::team::Team;
use super::{Application, Invocation};
use crate::spin;
use hearth_machine::CpuSet;
use hearth_machine::Machine;
use hearth_policy::Policy;
use hearth_sim::memory::Memory;
use hearth_sim::program::Cpu;
use hearth_sim::{Options, RunResult, Simulation};
use proptest::prelude::*;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// A task: where it belongs, how long it computes, and how many tasks of half that length it puts in.
#[derive(Clone, Copy, Debug)]
struct Plan {
    home: usize,
    cycles: u64,
    children: usize,
}

fn plans() -> impl Strategy<Value = Vec<Plan>> {
    let plan = (0..64usize, 1..60_000u64, 0..4usize);
    prop::collection::vec(plan.prop_map(|(home, cycles, children)| Plan { home, cycles, children }), 0..40)
}

fn invocation() -> impl Strategy<Value = Invocation> {
    let told = prop::option::of(0..20usize);
    let patience = prop_oneof![Just(0), Just(4_000), Just(u64::MAX), 0..400_000u64];
    (1..17usize, 1..0x1_0000u64, any::<bool>(), any::<bool>(), told, patience).prop_map(
        |(processes, cpus, attached, distributed, told, patience_cycles)| Invocation {
            processes,
            cpus: CpuSet::of_word(cpus),
            attached,
            distributed,
            told,
            asks: None,
            patience_cycles,
        },
    )
}

/// Who did each task, in order.
type Done = Rc<RefCell<Vec<usize>>>;

fn spawn(cpu: &mut Cpu<'_>, process: &Process, plan: Plan, done: &Done) {
    let (home, done) = (plan.home % process.processes(), Rc::clone(done));
    let work = move |cpu: &mut Cpu<'_>, process: &Process| {
        cpu.compute(plan.cycles);
        for child in 0..plan.children {
            let plan = Plan { home: plan.home + child, cycles: plan.cycles / 2, children: 0 };
            spawn(cpu, process, plan, &done);
        }
        done.borrow_mut().push(process.number());
    };
    process.spawn(cpu, home, Box::new(work));
}

struct Outcome {
    result: RunResult,
    done: Vec<usize>,
    team: Rc<Team>,
}

/// Runs rounds of tasks, with a serial stretch before each, while others spin on the same CPUs, and while the
/// program is told other numbers of CPUs, one each two milliseconds.
fn run(invocation: &Invocation, rounds: Vec<Vec<Plan>>, numbers: Vec<usize>, spinners: usize) -> Outcome {
    let machine = Machine::load("dash-16").unwrap();
    let options = Options { audit: true, longest_idle_ns: 20_000_000, ..Options::default() };
    let mut simulation = Simulation::new(&machine, &Policy::load("standard").unwrap(), &options).unwrap();
    let memory: Memory = simulation.memory();
    let team = Rc::new(Team::new(&memory, "tasks", invocation));
    let done = Done::default();
    let over = Rc::new(Cell::new(false));
    let mut application = Application::new("tasks");
    application.cpus = invocation.cpus;
    let (of_master, of_tasks, ends) = (Rc::clone(&team), Rc::clone(&done), Rc::clone(&over));
    application.task("tasks-0", move |cpu| {
        let master = move |cpu: &mut Cpu<'_>, master: &Process| {
            for plans in rounds {
                cpu.compute(50_000);
                plans.into_iter().for_each(|plan| spawn(cpu, master, plan, &of_tasks));
                master.wait(cpu);
            }
            ends.set(true);
        };
        Process::first(&of_master, cpu, Box::new(master));
    });
    simulation.add(application);
    let (told, ended) = (Rc::clone(&team), Rc::clone(&over));
    let mut kernel = Application::new("kernel");
    kernel.task("kernel", move |cpu| {
        for number in numbers.into_iter().take_while(|_| !ended.get()) {
            cpu.sleep_ns(2_000_000);
            told.allot(number);
            assert!(told.active() >= 1, "all are suspended");
        }
    });
    simulation.add(kernel);
    for _ in 0..spinners {
        spin::build(&memory, 0.01, 1).applications.into_iter().for_each(|other| simulation.add(other));
    }
    let result = simulation.run().unwrap();
    Outcome { result, done: done.take(), team }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// A task that is lost, or a process that sleeps beside one, ends the run with an error or not at all.
    #[test]
    fn every_task_is_done_once(
        invocation in invocation(),
        rounds in prop::collection::vec(plans(), 1..4),
        numbers in prop::collection::vec(0..20usize, 0..10),
        spinners in 0..6usize,
    ) {
        let tasks: usize = rounds.iter().flatten().map(|plan| 1 + plan.children).sum();
        let first = run(&invocation, rounds.clone(), numbers.clone(), spinners);
        prop_assert_eq!(first.done.len(), tasks);
        let again = run(&invocation, rounds, numbers, spinners);
        prop_assert_eq!(first.done, again.done);
        prop_assert_eq!(first.result, again.result);
    }
}

fn even(tasks: usize, cycles: u64) -> Vec<Plan> {
    (0..tasks).map(|home| Plan { home, cycles, children: 0 }).collect()
}

fn alone() -> Invocation {
    Invocation { cpus: CpuSet::of_word(0xffff), attached: true, distributed: true, ..Invocation::default() }
}

#[test]
fn processes_with_a_cpu_each_do_their_own_tasks() {
    let outcome = run(&alone(), vec![even(16, 100_000); 20], Vec::new(), 0);
    for process in 0..16 {
        let own = outcome.done.iter().filter(|&&by| by == process).count();
        assert!((18..=22).contains(&own), "process {process} did {own} of 20 rounds' tasks");
    }
}

#[test]
fn tasks_that_all_belong_to_one_process_are_shared() {
    let plans = vec![Plan { home: 3, cycles: 400_000, children: 0 }; 64];
    let done = run(&alone(), vec![plans], Vec::new(), 0).done;
    let most = (0..16).map(|process| done.iter().filter(|&&by| by == process).count()).max();
    assert!(most.is_some_and(|most| most < 16), "{done:?}");
}

#[test]
fn tasks_that_wait_for_their_own_process_for_ever_are_taken_by_no_other() {
    let plans = vec![Plan { home: 3, cycles: 400_000, children: 0 }; 16];
    let patient = Invocation { patience_cycles: u64::MAX, ..alone() };
    assert_eq!(run(&patient, vec![plans], Vec::new(), 0).done, [3; 16]);
}

#[test]
fn a_program_that_is_told_a_number_comes_to_it_and_follows_it() {
    let told = |told| Invocation { cpus: CpuSet::of_word(0xff), told: Some(told), ..Invocation::default() };
    for number in [1, 4, 8, 16, 20] {
        let outcome = run(&told(number), vec![even(64, 100_000); 4], Vec::new(), 0);
        assert_eq!(outcome.team.active(), number.min(16));
        assert_eq!(outcome.done.len(), 256);
    }
    let rounds = vec![even(64, 100_000); 10];
    assert_eq!(run(&told(4), rounds.clone(), vec![4, 12], 0).team.active(), 12);
    assert_eq!(run(&told(12), rounds, vec![12, 3], 0).team.active(), 3);
}

#[test]
fn a_program_that_is_told_nothing_keeps_all_its_processes() {
    let outcome = run(&Invocation::default(), vec![even(64, 100_000); 4], vec![2; 4], 0);
    assert_eq!(outcome.team.active(), 16);
}
