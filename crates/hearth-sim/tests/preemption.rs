//! Whom a task that wakes preempts under a steady policy, and how far ahead it may be (docs/concepts.md).

#![allow(clippy::unwrap_used)]

use std::cell::Cell;
use std::rc::Rc;

use hearth_machine::Machine;
use hearth_policy::Policy;
use hearth_sim::program::{Body, Cpu, TaskId};

mod steady;
use steady::*;

/// How often a task of a weight is preempted on one CPU, on which another wakes each millisecond. It computes for so long
/// between its own sleeps.
fn preemptions(policy: &str, runs_for: u64, weight: u32) -> usize {
    let result = run(
        policy,
        vec![
            Box::new(move |cpu| {
                only(cpu, &[HERE]);
                cpu.set_weight(cpu.task(), weight);
                for _ in 0..120 * MS / runs_for {
                    compute_ns(cpu, runs_for);
                    cpu.sleep_ns(100 * US);
                }
            }),
            Box::new(|cpu| {
                only(cpu, &[HERE]);
                for _ in 0..100 {
                    cpu.sleep_ns(MS);
                    compute_ns(cpu, 50 * US);
                }
            }),
        ],
    );
    result.dispatches[HERE].preempted as usize
}

#[test]
fn who_wakes_preempts_one_that_computes_and_leaves_one_that_sleeps_its_quantum() {
    let (computes, sleeps) = (preemptions("fair", 120 * MS, 100), preemptions("fair", 2 * MS, 100));
    assert!(computes > 50 && sleeps == 0, "preempted {computes} times, and {sleeps}");
    let without = preemptions("vanilla", 2 * MS, 100);
    assert!(without > 20, "preempted {without} times");
    let light = preemptions("fair", 120 * MS, 2);
    assert!(light > 50, "of little weight preempted {light} times");
    // In a millisecond it is charged for less than the 50 us of the other, so that has had more.
    let heavy = preemptions("fair", 120 * MS, 8877);
    assert!(heavy < 30, "of great weight preempted {heavy} times");
}

/// One never sleeps, and wakes a reader elsewhere each 100 us, as `wake` does it; another wakes on its CPU each
/// millisecond. How often that one preempts, and how long it is at most between two of its runs, after 20 ms.
fn beside_a_writer(wake: fn(&mut Cpu<'_>, TaskId)) -> (usize, u64) {
    let result = run(
        "fair",
        vec![
            Box::new(move |cpu| {
                only(cpu, &[HERE]);
                let is_done = Rc::new(Cell::new(false));
                let seen = is_done.clone();
                let reader = cpu.fork("reader", move |cpu| {
                    only(cpu, &[THERE, THERE + 1]);
                    while !seen.get() {
                        cpu.block();
                    }
                });
                for sent in 1..=1_200 {
                    compute_ns(cpu, 100 * US);
                    is_done.set(sent == 1_200);
                    wake(cpu, reader);
                }
            }),
            Box::new(|cpu| {
                only(cpu, &[HERE]);
                for _ in 0..100 {
                    cpu.sleep_ns(MS);
                    compute_ns(cpu, 50 * US);
                }
            }),
        ],
    );
    let runs: Vec<_> = ran(&result, 1).into_iter().filter(|one| one.start_ns > 20 * MS).collect();
    let between = runs.windows(2).map(between_ns).max();
    (result.dispatches[HERE].preempted as usize, between.unwrap())
}

#[test]
fn who_says_that_it_is_about_to_sleep_is_left_its_quantum_and_no_more() {
    let (writes, between_ns) = beside_a_writer(|cpu, reader| cpu.wake_and_sleep(reader));
    let most_ns = MS + Policy::load("fair").unwrap().quantum_ns + 100 * US;
    assert!(
        writes == 0 && (2 * MS..most_ns).contains(&between_ns),
        "preempted {writes} times; {between_ns} ns"
    );
    let (wakes, between_ns) = beside_a_writer(|cpu, reader| cpu.wake(reader));
    assert!(wakes > 50 && between_ns < 2 * MS, "preempted {wakes} times; {between_ns} ns");
}

/// One computes on a CPU. When it has for long, another of so much weight wakes there again and again, for 80 us in 100.
/// How much more CPU time that one had had when it first waited for a millisecond.
fn lead_ns(machine: &Machine, weight: u32) -> u64 {
    let result = run_on(
        machine,
        "fair",
        true,
        vec![
            Box::new(move |cpu| {
                only(cpu, &[HERE]);
                cpu.set_weight(cpu.task(), weight);
                spin(cpu, 150);
            }),
            Box::new(move |cpu| {
                only(cpu, &[HERE]);
                cpu.set_weight(cpu.task(), weight);
                cpu.sleep_ns(60 * MS);
                for _ in 0..800 {
                    compute_ns(cpu, 80 * US);
                    cpu.sleep_ns(20 * US);
                }
            }),
        ],
    );
    let wakes: Vec<_> = ran(&result, 1).into_iter().filter(|one| one.start_ns > 60 * MS).collect();
    let waits_at = wakes.windows(2).position(|pair| between_ns(pair) > MS).unwrap();
    let (from_ns, until_ns) = (wakes[0].start_ns, wakes[waits_at].end_ns);
    let answered: u64 = wakes[..=waits_at].iter().map(|one| one.end_ns - one.start_ns).sum();
    2 * answered - (until_ns - from_ns)
}

#[test]
fn who_wakes_beside_a_computation_may_be_ahead_by_more_than_a_quantum_and_less_than_all_credits() {
    let quantum_ns = Policy::load("fair").unwrap().quantum_ns;
    for machine in [machine(), Machine::load("desktop-8").unwrap()] {
        let credits_ns = 2 * quantum_ns + machine.move_costs().node_ns;
        for weight in [100, 400] {
            let lead = lead_ns(&machine, weight);
            assert!((quantum_ns..credits_ns).contains(&lead), "{}, weight {weight}: {lead} ns", machine.name);
        }
    }
}

/// How often a CPU goes on with the task that it ran, of some that each yield 400 times in 40 ms on CPUs of their own.
fn kept(tasks: usize) -> u64 {
    let yields = |cpu_of: usize| -> Body {
        Box::new(move |cpu| {
            only(cpu, &[cpu_of]);
            for _ in 0..400 {
                compute_ns(cpu, 100 * US);
                cpu.yield_now();
            }
        })
    };
    let result = run("fair", (0..tasks).map(yields).collect());
    result.dispatches.iter().map(|of_cpu| of_cpu.kept).sum()
}

#[test]
fn who_yields_and_nobody_waits_goes_on_without_a_look_until_the_next_tick() {
    for tasks in [1, 3, machine().cpus()] {
        // In 40 ms there are ten ticks.
        let (kept, most) = (kept(tasks), 20 * tasks as u64);
        assert!((1..most).contains(&kept), "{tasks} tasks went on {kept} times");
    }
}

/// For how long, at most, a task waits that wakes on one CPU now and then, beside one that computes and one of so much
/// weight. The one that computes yields at times, so that the other runs though it may have had more.
fn longest_wait_ns(weight: u32) -> u64 {
    const SLEEPS: u64 = 5 * MS;
    let result = run(
        "fair",
        vec![
            Box::new(|cpu| {
                only(cpu, &[HERE]);
                cpu.sleep_ns(100 * MS);
                for _ in 0..60 {
                    compute_ns(cpu, 50 * US);
                    cpu.sleep_ns(SLEEPS);
                }
            }),
            Box::new(|cpu| {
                only(cpu, &[HERE]);
                for _ in 0..20 {
                    spin(cpu, 20);
                    cpu.yield_now();
                }
            }),
            Box::new(move |cpu| {
                only(cpu, &[HERE]);
                cpu.set_weight(cpu.task(), weight);
                spin(cpu, 200);
            }),
        ],
    );
    let wakes: Vec<_> = ran(&result, 0).into_iter().filter(|one| one.start_ns > 90 * MS).collect();
    wakes.windows(2).map(|pair| between_ns(pair).saturating_sub(SLEEPS)).max().unwrap()
}

#[test]
fn a_light_task_that_runs_though_it_has_had_more_makes_nobody_late() {
    let (alike, light) = (longest_wait_ns(100), longest_wait_ns(1));
    assert!(alike < 5 * MS && light < 5 * MS, "{alike} ns, beside a light one {light}");
}

/// How long 50 ms of computing take on one CPU, beside so many tasks that yield until it is done.
fn beside_yielding_ns(yielding: usize) -> u64 {
    let done_ns = Rc::new(Cell::new(0));
    let computes = Rc::clone(&done_ns);
    let mut tasks: Vec<Body> = vec![Box::new(move |cpu| {
        only(cpu, &[HERE]);
        spin(cpu, 50);
        computes.set(cpu.now_ns());
    })];
    tasks.extend((0..yielding).map(|_| -> Body {
        let done_ns = Rc::clone(&done_ns);
        Box::new(move |cpu| {
            only(cpu, &[HERE]);
            while done_ns.get() == 0 {
                compute_ns(cpu, 5 * US);
                cpu.yield_now();
            }
        })
    }));
    run("fair", tasks);
    done_ns.get()
}

#[test]
fn tasks_that_yield_leave_the_cpu_to_one_that_computes() {
    for yielding in [1, 2, 3, 6, 20] {
        let (took_ns, most_ns) = (beside_yielding_ns(yielding), 55 * MS);
        assert!(took_ns <= most_ns, "beside {yielding} that yield 50 ms took {took_ns} ns");
    }
}
