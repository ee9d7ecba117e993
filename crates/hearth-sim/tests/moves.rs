//! When a task moves to another CPU under a steady policy: when staying has cost as much as moving would
//! (docs/concepts.md).

#![allow(clippy::unwrap_used)]

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use hearth_machine::{CpuSet, Machine};
use hearth_policy::Policy;
use hearth_sim::measure::Stretch;
use hearth_sim::program::Body;
use hearth_sim::{Application, Cpu, CpuStats, Options, RunResult, Simulation};

mod steady;
use steady::*;

/// From when a task first ran on the CPU where it begins until it ran elsewhere.
fn stays(ran: &[Stretch]) -> &[Stretch] {
    let first = ran.iter().position(|stretch| stretch.cpu == HERE).unwrap();
    let count = ran[first..].iter().take_while(|stretch| stretch.cpu == HERE).count();
    &ran[first..first + count]
}

/// One computes on a CPU. Another was there first, wakes each millisecond beside it, and may from then on run on these
/// CPUs, of which others idle.
fn beside_a_spinner(policy: &str, may_run_on: &'static [usize]) -> RunResult {
    run(
        policy,
        vec![
            Box::new(|cpu| {
                only(cpu, &[HERE]);
                spin(cpu, 300);
            }),
            Box::new(move |cpu| {
                only(cpu, &[HERE]);
                only(cpu, may_run_on);
                for _ in 0..100 {
                    cpu.sleep_ns(MS);
                    compute_ns(cpu, 50 * US);
                }
            }),
        ],
    )
}

/// One runs for 400 us at a time on a CPU. Another wakes beside it each time, and waits for it; it may also run on
/// another CPU, which idles. How often it ran where it began before it moved, and what the scheduler counted.
fn beside_short_runs(other: &'static [usize; 2]) -> (usize, CpuStats) {
    const TURNS: usize = 200;
    let result = run(
        "fair",
        vec![
            Box::new(|cpu| {
                only(cpu, &[HERE]);
                // Until the other has computed.
                cpu.sleep_ns(2 * machine().move_costs().node_ns);
                for _ in 0..TURNS {
                    let other = cpu.task() + 1;
                    cpu.wake(other);
                    compute_ns(cpu, 400 * US);
                    cpu.sleep_ns(200 * US);
                }
            }),
            Box::new(move |cpu| {
                only(cpu, &[HERE]);
                // It has gathered what it would leave behind.
                compute_ns(cpu, machine().move_costs().node_ns);
                only(cpu, other);
                for _ in 0..TURNS / 2 {
                    cpu.block();
                    compute_ns(cpu, 50 * US);
                }
            }),
        ],
    );
    (stays(&ran(&result, 1)).len(), result.dispatches[HERE])
}

#[test]
fn waits_that_ended_where_they_began_are_counted() {
    let (ran, counted) = beside_short_runs(&[HERE, THERE]);
    // It begins without a wait. CPUs of the same cache idle, too: masks are not looked at when a wait is collected.
    assert_eq!(counted.stayed_far, 0);
    assert_eq!(counted.stayed_near as usize, ran - 1, "{counted:?}");
    assert!(counted.stayed_ns > counted.stayed_near * 300 * US, "{counted:?}");
}

#[test]
fn many_short_waits_beside_an_idle_cpu_add_up_to_one_move() {
    let costs = machine().move_costs();
    let (near, _) = beside_short_runs(&[HERE, HERE + 1]);
    let (far, _) = beside_short_runs(&[HERE, THERE]);
    // The last wait is expected, and need not be waited for; a task is there before it waits.
    for (ran, cost_ns) in [(near, costs.cpu_ns), (far, costs.node_ns)] {
        let waits = (cost_ns / (400 * US)) as usize;
        assert!(
            (waits / 2..3 * waits + 4).contains(&ran),
            "ran {ran} times before it moved for {waits} waits"
        );
    }
    assert!(near < far);
}

#[test]
fn who_wakes_behind_a_computation_goes_to_an_idle_cpu_at_once() {
    for cpus in [&[HERE, HERE + 1], &[HERE, THERE]] {
        let ran = ran(&beside_a_spinner("fair", cpus), 1);
        let (stays, moves) =
            (stays(&ran).len(), ran.windows(2).filter(|pair| pair[0].cpu != pair[1].cpu).count());
        assert!(stays <= 2 && moves <= 4, "ran {stays} times before it moved, and moved {moves} times");
        // From when it first sleeps, which is what is between all others.
        let longest = ran.windows(2).skip(1).map(between_ns).max().unwrap();
        assert!(longest < MS + 100 * US, "waited for {} us", (longest - MS) / US);
    }
}

/// Of twenty equal tasks of a weight that compute on eight CPUs: the longest that one waits, and how much more CPU time
/// one has had than another when the first ends. They begin at different times.
fn unevenness_ns(weight: u32, machine: &Machine) -> (u64, u64) {
    const TASKS: usize = 20;
    const BEGIN: u64 = 100 * MS;
    let task = move |cpu: &mut Cpu<'_>| {
        cpu.set_weight(cpu.task(), weight);
        only(cpu, &[0, 1, 2, 3, 4, 5, 6, 7]);
        cpu.sleep_ns(cpu.task() as u64 * 37 * MS % BEGIN);
        (0..40).for_each(|_| compute_ns(cpu, 20 * MS));
    };
    let result = run_on(machine, "fair", false, (0..TASKS).map(|_| Box::new(task) as Body).collect());
    let all: Vec<_> = (0..TASKS).map(|task| ran(&result, task)).collect();
    let begun =
        |ran: &Vec<Stretch>| ran.iter().skip_while(|stretch| stretch.start_ns < BEGIN).copied().collect();
    let waits = all.iter().map(begun).filter_map(|ran: Vec<_>| ran.windows(2).map(between_ns).max());
    let first_end = all.iter().map(|ran| ran.last().unwrap().end_ns).min().unwrap();
    let had = all.iter().map(|ran| {
        let until = |stretch: &Stretch| stretch.end_ns.min(first_end).saturating_sub(stretch.start_ns);
        ran.iter().map(until).sum::<u64>()
    });
    (waits.max().unwrap(), had.clone().max().unwrap() - had.min().unwrap())
}

/// Four milliseconds of a heavy task's usage are 350 of CPU time.
#[test]
fn equal_tasks_of_high_weight_have_as_even_a_share_as_others() {
    // On the first machine their mask is a part of a cache, on the second it is all there is.
    for machine in [machine(), Machine::load("desktop-8").unwrap()] {
        let common = unevenness_ns(100, &machine);
        for weight in [932, 8877] {
            let heavy = unevenness_ns(weight, &machine);
            let is_as_even = heavy.0 <= 2 * common.0 && heavy.1 <= 2 * common.1;
            assert!(is_as_even, "of weight {weight} {heavy:?} ns, of the common one {common:?}");
        }
    }
}

#[test]
fn where_moves_cost_nothing_a_task_moves_at_once() {
    let ran = ran(&beside_a_spinner("plain", &[HERE, THERE]), 1);
    assert!(stays(&ran).len() <= 2, "ran {} times before it moved", stays(&ran).len());
}

/// Two that wake each other in turn, one of them held to a CPU: how often the other runs in the other cache.
fn partners(is_sync: bool) -> usize {
    const TURNS: usize = 50;
    let result = run(
        "fair",
        vec![
            Box::new(move |cpu| {
                only(cpu, &[HERE]);
                let other = cpu.task() + 1;
                for _ in 0..TURNS {
                    compute_ns(cpu, 20 * US);
                    if is_sync {
                        cpu.wake_and_sleep(other)
                    } else {
                        cpu.wake(other)
                    }
                    cpu.block();
                }
            }),
            Box::new(move |cpu| {
                only(cpu, &[THERE]);
                assert!(cpu.set_mask(cpu.task(), CpuSet::ALL));
                let other = cpu.task() - 1;
                for _ in 0..TURNS {
                    cpu.block();
                    compute_ns(cpu, 20 * US);
                    cpu.wake(other);
                }
            }),
        ],
    );
    ran(&result, 1).iter().filter(|stretch| stretch.cpu >= THERE).count()
}

#[test]
fn who_is_woken_by_who_is_about_to_sleep_goes_to_its_cache() {
    let (followed, stayed) = (partners(true), partners(false));
    assert!(followed <= 4, "ran {followed} times in the other cache");
    assert!(stayed > 40, "ran {stayed} times in the other cache");
}

/// Who wakes it runs on another CPU.
#[test]
fn a_task_that_is_placed_on_an_idle_cpu_is_counted_there() {
    const TURNS: u64 = 50;
    for policy in ["fair", "both"] {
        let result = run(
            policy,
            vec![
                Box::new(|cpu| {
                    only(cpu, &[HERE]);
                    let other = cpu.task() + 1;
                    for _ in 0..TURNS {
                        compute_ns(cpu, 100 * US);
                        cpu.wake(other);
                    }
                }),
                Box::new(|cpu| {
                    only(cpu, &[THERE]);
                    for _ in 0..TURNS - 5 {
                        cpu.block();
                        compute_ns(cpu, 20 * US);
                    }
                }),
            ],
        );
        let [here, there] = [HERE, THERE].map(|cpu| result.dispatches[cpu].direct);
        assert!(here <= 5 && there >= TURNS - 10, "{policy}: {here} here, {there} there");
    }
}

/// On one CPU of two a task computes, and another sleeps for a moment again and again. So many more begin on the other
/// CPU, and wake there as often. When the first CPU, which is never idle, drew one of them.
fn draws_of_a_busy_cpu(crowd: usize) -> Vec<u64> {
    const UNTIL_NS: u64 = 300 * MS;
    let machine = Machine::load("xeon-smp2").unwrap();
    let beside = |computes_us, sleeps_us| -> Body {
        Box::new(move |cpu| {
            only(cpu, &[0]);
            while cpu.now_ns() < UNTIL_NS {
                compute_ns(cpu, computes_us * US);
                if sleeps_us > 0 {
                    cpu.sleep_ns(sleeps_us * US);
                }
            }
        })
    };
    let crowded = |_| -> Body {
        Box::new(|cpu| {
            only(cpu, &[1]);
            only(cpu, &[0, 1]);
            while cpu.now_ns() < UNTIL_NS {
                compute_ns(cpu, 60 * US);
                cpu.sleep_ns(30 * US);
            }
        })
    };
    let tasks = [beside(1000, 0), beside(20, 50)].into_iter().chain((0..crowd).map(crowded)).collect();
    let result = run_on(&machine, "fair", true, tasks);
    let is_drawn = |pair: &&[Stretch]| (pair[0].cpu, pair[1].cpu) == (1, 0) && pair[1].start_ns < UNTIL_NS;
    let times = |task| -> Vec<_> {
        ran(&result, task).windows(2).filter(is_drawn).map(|pair| pair[1].start_ns).collect()
    };
    let mut draws: Vec<_> = (2..2 + crowd).flat_map(times).collect();
    draws.sort_unstable();
    draws
}

#[test]
fn a_busy_cpu_draws_what_waits_elsewhere_once_a_quantum_at_most() {
    let quantum_ns = Policy::load("fair").unwrap().quantum_ns;
    for crowd in [8, 16, 32] {
        let draws = draws_of_a_busy_cpu(crowd);
        let soonest = draws.windows(2).map(|pair| pair[1] - pair[0]).min().unwrap();
        // From the look until the task runs it takes a switch, more or less.
        assert!(soonest > quantum_ns - 100 * US, "of {crowd} one after {soonest} ns: {draws:?}");
    }
}

/// Each CPU computes. Half as many tasks, which begin on one of them, wake now and then for a little: how often these moved
/// in 40 runs each.
fn moves_among_computations() -> usize {
    let machine = machine();
    let cpus = machine.cpus();
    let computes = |_| -> Body { Box::new(|cpu| spin(cpu, 80)) };
    let wakes = |task: u64| -> Body {
        Box::new(move |cpu| {
            only(cpu, &[HERE]);
            spin(cpu, 2);
            assert!(cpu.set_mask(cpu.task(), CpuSet::ALL));
            for wake in 40..80 {
                let at_ns = wake * MS + wake * (task + 3) * 7919 % 13 * 17 * US;
                cpu.sleep_ns(at_ns.saturating_sub(cpu.now_ns()));
                compute_ns(cpu, 100 * US);
            }
        })
    };
    let tasks = (0..cpus).map(computes).chain((0..cpus as u64 / 2).map(wakes)).collect();
    let result = run_on(&machine, "fair", false, tasks);
    let moves = |task| ran(&result, task).windows(2).filter(|pair| pair[0].cpu != pair[1].cpu).count();
    (cpus..cpus + cpus / 2).map(moves).sum()
}

#[test]
fn who_wakes_for_a_little_stays_where_it_is_though_others_have_asked_for_a_quantum() {
    let moves = moves_among_computations();
    assert!(moves < 100, "{moves} moves in 640 runs");
}

/// One thread has work for a pool of others as soon as they have answered, 10,000 times: when a thread moves to another
/// CPU, from the first of these on, as far as the timeline knows. Where threads are held to the first CPUs until then,
/// each has run for longer there than any move costs.
fn moves_of_a_pool(machine: &Machine, workers: usize, held_to: Option<usize>) -> Vec<u64> {
    const ANSWERS: usize = 10_000;
    const HELD_MS: u64 = 4;
    let (free, is_over) = (Rc::new(RefCell::new(VecDeque::from_iter(0..workers))), Rc::new(Cell::new(false)));
    let options = Options { timeline: true, time_limit_ns: 10_000 * MS, ..Options::default() };
    let mut simulation = Simulation::new(machine, &Policy::load("fair").unwrap(), &options).unwrap();
    let mut application = Application::new("pool");
    let begin_ns = held_to.map_or(0, |_| workers as u64 * HELD_MS * MS);
    application.task("sender", move |cpu| {
        let sender = cpu.task();
        let threads: Vec<_> = (0..workers)
            .map(|worker| {
                let (free, is_over) = (free.clone(), is_over.clone());
                let thread = cpu.fork("worker", move |cpu| {
                    if let Some(count) = held_to {
                        only(cpu, &Vec::from_iter(0..count));
                        spin(cpu, HELD_MS);
                        assert!(cpu.set_mask(cpu.task(), CpuSet::ALL));
                    }
                    cpu.block();
                    while !is_over.get() {
                        compute_ns(cpu, (20 + 5 * (worker as u64 % 5)) * US);
                        free.borrow_mut().push_back(worker);
                        cpu.wake(sender);
                        cpu.block();
                    }
                });
                compute_ns(cpu, 20 * US);
                thread
            })
            .collect();
        cpu.sleep_ns(begin_ns.saturating_sub(cpu.now_ns()));
        for _ in 0..ANSWERS {
            while free.borrow().is_empty() {
                cpu.block();
            }
            let worker = free.borrow_mut().pop_front().unwrap();
            cpu.wake(threads[worker]);
            compute_ns(cpu, US);
        }
        is_over.set(true);
        threads.into_iter().for_each(|thread| cpu.wake(thread));
    });
    simulation.add(application);
    let result = simulation.run().unwrap();
    (0..=workers)
        .flat_map(|task| {
            let ran = ran(&result, task);
            let moves = ran.windows(2).filter(|pair| pair[0].cpu != pair[1].cpu);
            Vec::from_iter(moves.filter_map(|pair| pair[1].start_ns.checked_sub(begin_ns)))
        })
        .collect()
}

#[test]
fn a_pool_of_threads_settles_where_each_has_a_cpu() {
    // Fewer than CPUs, and more than those of a cache; what they would leave behind is little at first.
    for (name, workers) in [("chiplet-64", 9), ("chiplet-64", 20), ("server-2s", 20), ("desktop-8", 6)] {
        let last_ns =
            moves_of_a_pool(&Machine::load(name).unwrap(), workers, None).into_iter().max().unwrap_or(0);
        assert!(last_ns < 3 * MS, "one of {workers} threads on {name} moves after {} us", last_ns / US);
    }
}

#[test]
fn moves_within_a_cache_do_not_keep_a_task_in_it() {
    // Of a cache of eight.
    let moves = moves_of_a_pool(&Machine::load("chiplet-64").unwrap(), 12, Some(8));
    let last_ns = moves.into_iter().max().unwrap();
    assert!(last_ns < 8 * MS, "a thread moves after {} us", last_ns / US);
}

#[test]
fn where_each_cpu_is_anothers_between_two_runs_threads_stay() {
    // One more than CPUs, with who sends.
    let moves = moves_of_a_pool(&Machine::load("desktop-8").unwrap(), 8, None).len();
    assert!(moves < 500, "{moves} moves for 10,000 answers");
}

/// One wakes behind a computation, beside an idle CPU whose own task is back each millisecond, and others on which nobody
/// runs: how often it runs on the former.
fn runs_between_anothers(machine: &Machine) -> usize {
    const COMPUTES: usize = 0;
    const OWNED: usize = 1;
    const NOBODYS: [usize; 2] = [2, 3];
    let us = machine.clock_hz / 1_000_000;
    let tasks: Vec<Body> = vec![
        Box::new(move |cpu| {
            only(cpu, &[COMPUTES]);
            (0..60).for_each(|_| cpu.compute(1_000 * us));
        }),
        Box::new(move |cpu| {
            only(cpu, &[OWNED]);
            for _ in 0..50 {
                cpu.sleep_ns(MS);
                cpu.compute(100 * us);
            }
        }),
        Box::new(move |cpu| {
            only(cpu, &[COMPUTES]);
            cpu.sleep_ns(20 * MS);
            only(cpu, &[COMPUTES, OWNED, NOBODYS[0], NOBODYS[1]]);
            for _ in 0..10 {
                cpu.sleep_ns(500 * US);
                cpu.compute(100 * us);
            }
        }),
    ];
    let ran = ran(&run_on(machine, "fair", true, tasks), 2);
    assert!(ran.iter().any(|stretch| stretch.cpu != COMPUTES), "it moves");
    ran.iter().filter(|stretch| stretch.cpu == OWNED).count()
}

#[test]
fn of_idle_cpus_the_one_that_has_idled_for_longest_is_taken() {
    // CPUs of one cache, and with one each.
    for name in ["desktop-8", "dash-16"] {
        let ran = runs_between_anothers(&Machine::load(name).unwrap());
        assert_eq!(ran, 0, "runs on {name} where another is about to be back");
    }
}

/// Moves of so many tasks that compute for as long, on eight CPUs, one of which had a single task for long.
fn moves_of_a_crowd(tasks: usize) -> u64 {
    let alone: Body = Box::new(|cpu| {
        only(cpu, &[HERE]);
        spin(cpu, 100);
    });
    let crowd = (0..tasks).map(|_| -> Body {
        Box::new(|cpu| {
            cpu.sleep_ns(50 * MS);
            spin(cpu, 100);
        })
    });
    let all = std::iter::once(alone).chain(crowd).collect();
    run_on(&Machine::load("desktop-8").unwrap(), "fair", true, all).total.cpu_moves
}

/// By clocks alone it drew until its clock was even with the others', had too many by then, and they drew in turn: 22, 33,
/// 52 and 65 moves.
#[test]
fn a_cpu_that_was_ahead_draws_no_more_than_its_share() {
    for tasks in [16, 24, 32, 40] {
        let moves = moves_of_a_crowd(tasks);
        assert!(moves * 4 <= tasks as u64 * 5, "{tasks} tasks moved {moves} times");
    }
}
