//! The scheduler on the simulated machine, with programs whose schedule is known.

#![allow(clippy::unwrap_used)]

use hearth_hardware::Placement;
use hearth_machine::CpuSet;
use hearth_machine::Machine;
use hearth_policy::Policy;
use hearth_sim::sync::Semaphore;
use hearth_sim::{Application, Options, RunResult, SimError, Simulation};
use std::cell::RefCell;
use std::rc::Rc;

const TICK_MS: f64 = 10.0;

fn machine() -> Machine {
    Machine::load("sgi-4d340").unwrap()
}

fn simulation(policy: &Policy, options: &Options) -> Simulation {
    Simulation::new(&machine(), policy, options).unwrap()
}

/// Eight tasks that compute for `seconds` each, in two applications.
fn spin(policy: &Policy, seconds: u64) -> RunResult {
    let mut simulation = simulation(policy, &Options::default());
    for name in ["a", "b"] {
        let mut application = Application::new(name);
        for task in 0..4 {
            application.task(&format!("{name}{task}"), move |cpu| {
                (0..seconds * 33_000).for_each(|_| cpu.compute(1000));
            });
        }
        simulation.add(application);
    }
    simulation.run().unwrap()
}

fn without_decay(policy: Policy) -> Policy {
    Policy { decay_ns: 1 << 62, ..policy }
}

#[test]
fn spinning_tasks_share_the_machine_and_leave_no_cpu_idle() {
    for policy in ["standard", "light", "heavy", "complex", "fair"] {
        let result = spin(&Policy::load(policy).unwrap(), 3);
        assert!(result.idle_share < 0.05, "{policy}: idle {}", result.idle_share);
        let ideal_ns = 2 * 3_000_000_000;
        assert!(result.elapsed_ns < ideal_ns * 106 / 100, "{policy}: {} ns", result.elapsed_ns);
    }
}

/// By how much equal tasks may be apart on the machine of these tests: the credits, a slice, which ends at a tick, and a
/// tick.
fn apart_ms(policy: &Policy) -> u64 {
    let machine = machine();
    let credit = policy.on(machine.move_costs()).credit;
    (credit.sum_ns() - credit.fragment_ns + 2 * machine.kernel.tick_ns) / 1_000_000
}

/// The clock of a CPU that was busy for long is far ahead of the others'.
#[test]
fn equal_tasks_are_served_alike_whatever_their_cpus_did_before() {
    let policy = Policy::load("fair").unwrap();
    let compute = |application: &mut Application, ms: u64| {
        application.task("spin", move |cpu| (0..ms * 33).for_each(|_| cpu.compute(1000)));
    };
    for (before_ms, tasks) in [(50, 5), (400, 5), (400, 7), (2_000, 6), (2_000, 9)] {
        let mut simulation = simulation(&policy, &Options::default());
        let mut before = Application::new("before");
        compute(&mut before, before_ms);
        simulation.add(before);
        for number in 0..tasks {
            let mut application = Application::new(&format!("after{number}"));
            application.start_ns = (before_ms + 20) * 1_000_000;
            compute(&mut application, 500);
            simulation.add(application);
        }
        let result = simulation.run().unwrap();
        let times = result.applications[1..].iter().map(|application| application.execution_ns / 1_000_000);
        let (least, most) = (times.clone().min().unwrap(), times.max().unwrap());
        assert!(
            most - least <= apart_ms(&policy),
            "{tasks} tasks after {before_ms} ms: {least} to {most} ms"
        );
    }
}

/// CPU 0 was crowded by masks and never idle, so its clock is far behind; then one of its tasks is left.
#[test]
fn a_cpu_that_was_crowded_takes_what_waits_at_others_when_it_has_one_task() {
    let mut simulation = simulation(&Policy::load("fair").unwrap(), &Options::default());
    let mut compute = |name: &str, start_ms: u64, cpus: u64, ms: u64| {
        let mut application = Application::new(name);
        application.start_ns = start_ms * 1_000_000;
        application.task("spin", move |cpu| {
            cpu.set_mask(cpu.task(), CpuSet::of_word(cpus));
            (0..ms * 33).for_each(|_| cpu.compute(1000));
        });
        simulation.add(application);
    };
    for (name, ms) in [("crowd0", 200), ("crowd1", 200), ("crowd2", 200), ("stays", 1000)] {
        compute(name, 0, 1, ms);
    }
    (1..4).for_each(|cpu| compute("elsewhere", 0, 1 << cpu, 2000));
    (0..9).for_each(|_| compute("late", 900, 15, 200));
    let result = simulation.run().unwrap();
    // Thirteen tasks on four CPUs.
    let apart_ms = apart_ms(&Policy::load("fair").unwrap());
    for late in &result.applications[7..] {
        let ms = late.execution_ns / 1_000_000;
        assert!((ms * 4).abs_diff(200 * 13) <= apart_ms * 13, "{ms} ms");
    }
}

#[test]
fn the_time_credit_is_half_the_effective_slice() {
    for points in [3, 6, 12, 16] {
        let mean_ms = spin(&without_decay(Policy::affinity(points, points)), 20).total.slices.mean_ms();
        let law_ms = 40.0 * f64::from(points);
        assert!((mean_ms / law_ms - 1.0).abs() < 0.15, "a_t {points}: {mean_ms} ms, law {law_ms} ms");
    }
}

#[test]
fn a_task_moves_only_when_it_has_had_less_by_the_processor_credit() {
    for points in [3, 6, 12] {
        let policy = without_decay(Policy::affinity(0, points));
        let mut simulation = simulation(&policy, &Options::default());
        for task in 0..5 {
            let mut application = Application::new(&format!("task{task}"));
            application.task("spin", |cpu| (0..660_000).for_each(|_| cpu.compute(1000)));
            simulation.add(application);
        }
        let moves = simulation.run().unwrap().total.displacements;
        assert!(moves.count > 0, "a_p {points}: five tasks on four CPUs must move");
        let lack_ms = moves.least_ns().unwrap() as f64 / 1e6;
        assert!(lack_ms > 20.0 * f64::from(points) - TICK_MS, "a_p {points}: moved for {lack_ms} ms");
    }
}

/// On dash-16, whose nodes have four CPUs, with who makes it on each of the sixteen.
#[test]
fn a_new_task_begins_on_the_node_of_who_made_it_while_a_cpu_idles_there() {
    let dash = Machine::load("dash-16").unwrap();
    for maker in 0..16 {
        let began = Rc::new(RefCell::new(Vec::new()));
        let mut simulation =
            Simulation::new(&dash, &Policy::load("fair").unwrap(), &Options::default()).unwrap();
        let mut application = Application::new("family");
        let children = Rc::clone(&began);
        application.task("maker", move |cpu| {
            cpu.set_mask(cpu.task(), CpuSet::one(maker));
            cpu.compute(100_000);
            cpu.set_mask(cpu.task(), CpuSet::of_word(0xffff));
            assert_eq!(cpu.number(), maker);
            for _ in 0..6 {
                let children = Rc::clone(&children);
                cpu.fork("child", move |cpu| {
                    children.borrow_mut().push(cpu.number());
                    cpu.compute(10_000_000);
                });
            }
        });
        simulation.add(application);
        simulation.run().unwrap();
        let near = began.borrow().iter().filter(|&&cpu| cpu / 4 == maker / 4).count();
        assert_eq!((began.borrow().len(), near), (6, 3), "made on CPU {maker}: began on {began:?}");
    }
}

#[test]
fn an_attached_task_never_moves() {
    let result = spin(&Policy::load("attached").unwrap(), 2);
    assert_eq!(result.total.cpu_moves, 0);
}

#[test]
fn a_task_that_yields_lets_another_run() {
    let policy = Policy::load("heavy").unwrap();
    let mut simulation = simulation(&policy, &Options::default());
    let turns = Rc::new(RefCell::new(Vec::new()));
    for task in 0..8 {
        let turns = Rc::clone(&turns);
        let mut application = Application::new(&format!("task{task}"));
        application.task("yields", move |cpu| {
            for _ in 0..50 {
                turns.borrow_mut().push((cpu.number(), task));
                cpu.compute(1000);
                cpu.yield_now();
            }
        });
        simulation.add(application);
    }
    simulation.run().unwrap();
    let turns = turns.borrow();
    for cpu in 0..4 {
        let order: Vec<usize> = turns.iter().filter(|turn| turn.0 == cpu).map(|turn| turn.1).collect();
        let repeats = order.windows(2).filter(|pair| pair[0] == pair[1]).count();
        assert!(repeats * 10 < order.len(), "CPU {cpu}: {repeats} of {} turns were repeats", order.len());
    }
}

#[test]
fn a_wake_up_that_comes_first_is_not_lost() {
    let mut simulation = simulation(&Policy::load("standard").unwrap(), &Options::default());
    let (full, empty) = (Semaphore::new(0), Semaphore::new(1));
    let mut application = Application::new("ping-pong");
    let (mine, other) = (full.clone(), empty.clone());
    application.task("producer", move |cpu| {
        for _ in 0..1000 {
            other.wait(cpu);
            mine.post(cpu);
        }
    });
    application.task("consumer", move |cpu| {
        for _ in 0..1000 {
            full.wait(cpu);
            empty.post(cpu);
        }
    });
    simulation.add(application);
    let result = simulation.run().unwrap();
    assert!(result.total.wakeups > 0);
}

#[test]
fn tasks_that_wait_for_each_other_are_reported() {
    let mut simulation = simulation(&Policy::load("light").unwrap(), &Options::default());
    let mut application = Application::new("stuck");
    let semaphore = Semaphore::new(0);
    application.task("waiter", move |cpu| semaphore.wait(cpu));
    simulation.add(application);
    let error = simulation.run().unwrap_err();
    assert!(matches!(error, SimError::Deadlock { tasks: 1, .. }), "{error}");
}

fn hogs(policy: &Policy, options: &Options) -> Result<RunResult, SimError> {
    let mut simulation = simulation(policy, options);
    let mut application = Application::new("hogs");
    for task in 0..5 {
        application.task(&format!("hog{task}"), |cpu| (0..660_000).for_each(|_| cpu.compute(1000)));
    }
    simulation.add(application);
    simulation.run()
}

#[test]
fn a_runnable_task_that_does_not_run_for_ten_seconds_is_a_stall() {
    let options = Options { stalls: true, ..Options::default() };
    let error = hogs(&Policy::affinity(0, 0), &options).unwrap_err().to_string();
    assert!(error.contains("runnable task stall (hog4[5] failed to run for"), "{error}");
}

#[test]
fn a_quantum_that_would_stall_others_is_cut() {
    let endless = Policy { quantum_ns: 60_000_000_000, ..Policy::affinity(0, 0) };
    let result = hogs(&endless, &Options::default()).unwrap();
    assert!(result.total.slices.count > 20, "{} slices of 100 s", result.total.slices.count);
}

/// Tasks that share some lines and keep others to themselves, one for each CPU: what differs is the
/// memory system alone, not who runs when.
fn sharing(options: &Options) -> RunResult {
    let mut simulation = simulation(&Policy::load("standard").unwrap(), options);
    let memory = simulation.memory();
    let shared = memory.array::<u64>(512, Placement::FirstTouch);
    let mut application = Application::new("sharing");
    for task in 0..4usize {
        let shared = shared.clone();
        let private = memory.array::<u64>(8192, Placement::FirstTouch);
        application.task(&format!("task{task}"), move |cpu| {
            for round in 0..60_000usize {
                let value = private.get(cpu, round * 7 % 8192);
                private.set(cpu, round * 13 % 8192, value + 1);
                if round % 64 == 0 {
                    let index = (round / 64 * 5 + task) % 512;
                    let value = shared.get(cpu, index);
                    shared.set(cpu, index, value + 1);
                }
                cpu.compute(10);
            }
        });
    }
    simulation.add(application);
    simulation.run().unwrap()
}

#[test]
fn the_window_changes_results_by_less_than_two_percent() {
    let results =
        [100, 1000, 4000].map(|window_cycles| sharing(&Options { window_cycles, ..Options::default() }));
    for other in &results[1..] {
        let time = other.mean_execution_ns as f64 / results[0].mean_execution_ns as f64;
        let misses = other.total.counters.misses() as f64 / results[0].total.counters.misses() as f64;
        assert!((time - 1.0).abs() < 0.02, "time {time}");
        assert!((misses - 1.0).abs() < 0.02, "misses {misses}");
    }
}

#[test]
fn causes_are_all_that_is_missing_where_they_are_not_counted() {
    let with = sharing(&Options::default());
    let without = sharing(&Options { causes: false, ..Options::default() });
    assert!(with.total.counters.causes.iter().sum::<u64>() > 0);
    assert_eq!(without.total.counters, hearth_hardware::Counters { causes: [0; 5], ..with.total.counters });
    assert_eq!(without.mean_execution_ns, with.mean_execution_ns);
}

#[test]
fn stretches_of_one_cpu_follow_each_other() {
    let options = Options { timeline: true, ..Options::default() };
    let mut simulation = simulation(&Policy::load("heavy").unwrap(), &options);
    let mut application = Application::new("mixed");
    application.task("long", |cpu| (0..400).for_each(|_| cpu.compute(100_000)));
    for task in 0..8 {
        application.task(&format!("short{task}"), |cpu| {
            for _ in 0..200 {
                cpu.compute(10_000);
                cpu.yield_now();
            }
        });
    }
    simulation.add(application);
    let result = simulation.run().unwrap();
    for cpu in 0..4 {
        let of_cpu: Vec<_> = result.timeline.iter().filter(|stretch| stretch.cpu == cpu).collect();
        assert!(of_cpu.windows(2).all(|pair| pair[0].end_ns <= pair[1].start_ns), "CPU {cpu}");
    }
    assert!(result.timeline.iter().any(|stretch| stretch.end_ns - stretch.start_ns > 300_000_000));
}

#[test]
fn every_statistic_of_a_dispatch_moves() {
    let mut simulation = simulation(&Policy::load("light").unwrap(), &Options::default());
    let mut application = Application::new("mixed");
    for task in 0..9usize {
        application.task(&format!("task{task}"), move |cpu| {
            for _ in 0..40 {
                cpu.compute(if task < 5 { 3_000_000 } else { 30_000 });
                if task >= 5 {
                    cpu.io(1000);
                }
            }
        });
    }
    simulation.add(application);
    let result = simulation.run().unwrap();
    let sum = |field: fn(&hearth_sim::CpuStats) -> u64| result.dispatches.iter().map(field).sum::<u64>();
    assert!(sum(|stats| stats.kept) > 0, "kept");
    assert!(sum(|stats| stats.own) > 0, "own");
    assert!(sum(|stats| stats.foreign) > 0, "foreign");
    assert!(sum(|stats| stats.direct) > 0, "direct");
    assert!(sum(|stats| stats.preempted) > 0, "preempted");
    assert!(sum(|stats| stats.idle) > 0, "idle");
    assert!(result.total.counters.causes.iter().sum::<u64>() == result.total.counters.misses());
}

#[test]
fn tasks_that_wait_behind_more_than_elsewhere_are_taken_and_counted() {
    let mut simulation = simulation(&Policy::load("fair").unwrap(), &Options::default());
    let mut application = Application::new("strays");
    let mut task = |first: CpuSet, then: CpuSet| {
        application.task("spin", move |cpu| {
            for mask in [first, then] {
                assert!(cpu.set_mask(cpu.task(), mask));
                cpu.compute(33_000);
            }
            (0..500).for_each(|_| cpu.compute(33_000));
        });
    };
    let both = CpuSet::one(0).with(1);
    (0..5).for_each(|_| task(CpuSet::one(0), both));
    task(CpuSet::one(1), CpuSet::one(1));
    simulation.add(application);
    let result = simulation.run().unwrap();
    let taken: Vec<u64> = result.dispatches.iter().map(|of_cpu| of_cpu.strays).collect();
    assert!(taken[1] > 0, "{taken:?}");
    assert_eq!((taken[2], taken[3]), (0, 0));
    assert!(result.elapsed_ns < 1_700_000_000, "3 s of work on two CPUs took {} ns", result.elapsed_ns);
}
