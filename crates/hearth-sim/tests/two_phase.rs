//! Two-phase locks, the flush of all caches, placed pages, and the marks of a parallel section.

#![allow(clippy::unwrap_used)]

use hearth_hardware::Placement;
use hearth_machine::CpuSet;
use hearth_machine::Machine;
use hearth_policy::Policy;
use hearth_sim::two_phase::BlockingLock;
use hearth_sim::{Application, Flush, Options, RunResult, Simulation};
use proptest::prelude::*;
use std::cell::Cell;
use std::rc::Rc;

fn simulation(options: &Options) -> Simulation {
    let machine = Machine::load("dash-16").unwrap();
    Simulation::new(&machine, &Policy::load("standard").unwrap(), options).unwrap()
}

/// Cycles that a task computes outside of the lock, and inside, again and again.
type Rounds = Vec<(u64, u64)>;

/// Tasks on some CPUs that add to a number under a lock; says what the number is and whether two were ever
/// inside at once.
fn add_under_a_lock(tasks: &[Rounds], cpus: u64, seed: u64) -> (u64, bool, RunResult) {
    let options = Options { seed, audit: true, ticks_in_step: false, ..Options::default() };
    let mut simulation = simulation(&options);
    let words = simulation.memory().array::<u64>(1, Placement::FirstTouch);
    let lock = BlockingLock::new(&words, 0);
    let (number, inside, broken) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)), Rc::new(Cell::new(false)));
    let mut application = Application::new("adders");
    application.cpus = CpuSet::of_word(cpus);
    for (task, rounds) in tasks.iter().enumerate() {
        let (rounds, lock) = (rounds.clone(), lock.clone());
        let (number, inside, broken) = (Rc::clone(&number), Rc::clone(&inside), Rc::clone(&broken));
        application.task(&format!("adder-{task}"), move |cpu| {
            for (outside, within) in rounds {
                cpu.compute(outside);
                lock.acquire(cpu);
                broken.set(broken.get() || inside.replace(1) != 0);
                let before = number.get();
                cpu.compute(within);
                number.set(before + 1);
                inside.set(0);
                lock.release(cpu);
            }
        });
    }
    simulation.add(application);
    let result = simulation.run().unwrap();
    (number.get(), broken.get(), result)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// A lost wake-up would leave a task blocked for ever, which ends the run with an error.
    #[test]
    fn whoever_waits_for_a_lock_gets_it(
        tasks in prop::collection::vec(prop::collection::vec((0..400_000u64, 0..30_000u64), 0..12), 1..20),
        cpus in 1..0x1_0000u64,
        seed in 0..10u64,
    ) {
        let (number, broken, _) = add_under_a_lock(&tasks, cpus, seed);
        prop_assert!(!broken, "two tasks held the lock");
        prop_assert_eq!(number as usize, tasks.iter().map(Vec::len).sum::<usize>());
    }
}

#[test]
fn whoever_waits_long_leaves_the_cpu_to_others() {
    let long = vec![(0, 3_000_000); 10];
    let (_, _, result) = add_under_a_lock(&vec![long; 8], 0xff, 1);
    let busy_ns = result.total.cpu_ns;
    assert!(busy_ns < result.elapsed_ns * 2, "{busy_ns} ns of CPU time in {} ns", result.elapsed_ns);
}

/// One task that reads 128 KiB again and again, and marks all but the first time.
fn read_again(flush: Flush) -> RunResult {
    let mut simulation = simulation(&Options { flush, ..Options::default() });
    let words = simulation.memory().array::<u64>(16 << 10, Placement::FirstTouch);
    let mut application = Application::new("reader");
    application.task("reader", move |cpu| {
        cpu.read_span(words.address(0), words.len() as u64 * 8);
        cpu.mark_parallel(true);
        (0..100).for_each(|_| cpu.read_span(words.address(0), words.len() as u64 * 8));
        cpu.mark_parallel(false);
    });
    simulation.add(application);
    simulation.run().unwrap()
}

#[test]
fn emptied_caches_are_filled_again_each_time() {
    let misses = |flush| read_again(flush).applications[0].parallel.unwrap().counters.misses();
    let (never, each) = (misses(Flush::Never), misses(Flush::Each(20_000_000)));
    let result = read_again(Flush::Each(20_000_000));
    let flushes = result.elapsed_ns / 20_000_000;
    let lines = (128 << 10) / 16;
    assert!(flushes >= 3, "{flushes}");
    let more = each - never;
    assert!(
        more > lines * (flushes - 2) / 2 && more <= (lines + 1000) * flushes,
        "{more} more misses, {flushes}"
    );
}

#[test]
fn a_parallel_section_is_what_was_marked() {
    let result = read_again(Flush::Never);
    let marked = result.applications[0].parallel.unwrap();
    let share = marked.ns as f64 / result.elapsed_ns as f64;
    assert!((0.8..0.99).contains(&share), "{share}");
    assert!(marked.counters.reads >= 100 * (16 << 10) && marked.counters.page_faults == 0);
}

#[test]
fn pages_lie_where_they_were_placed_whoever_touches_them() {
    let mut simulation = simulation(&Options::default());
    let words = simulation.memory().array::<u64>(8 << 9, Placement::FirstTouch);
    let mut application = Application::new("toucher");
    application.cpus = CpuSet::one(0);
    application.task("toucher", move |cpu| {
        // Of eight pages the second and the third, though the range begins and ends within a page.
        cpu.place(words.address(100), 2 * 4096, 15);
        cpu.write_span(words.address(0), words.len() as u64 * 8);
    });
    simulation.add(application);
    let counters = simulation.run().unwrap().total.counters;
    assert_eq!(counters.memory_remote, 2 * 4096 / 16);
}
