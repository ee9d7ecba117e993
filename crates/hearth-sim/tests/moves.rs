//! When a task moves to another CPU under a steady policy: when staying has cost as much as moving would
//! (docs/concepts.md).

#![allow(clippy::unwrap_used)]

use hearth_machine::{CpuSet, Machine};
use hearth_policy::Policy;
use hearth_sim::program::Body;
use hearth_sim::{Application, Cpu, Options, RunResult, Simulation};

const US: u64 = 1_000;
const MS: u64 = 1_000_000;
/// Of the first cache of `server-2s`, and of the other.
const HERE: usize = 0;
const THERE: usize = 16;

fn machine() -> Machine {
    Machine::load("server-2s").unwrap()
}

fn run(policy: &str, tasks: Vec<Body>) -> RunResult {
    let options = Options { audit: true, timeline: true, time_limit_ns: 10_000 * MS, ..Options::default() };
    let mut simulation = Simulation::new(&machine(), &Policy::load(policy).unwrap(), &options).unwrap();
    let mut application = Application::new("moves");
    tasks.into_iter().for_each(|task| application.tasks.push(("task".into(), task)));
    simulation.add(application);
    simulation.run().unwrap_or_else(|error| panic!("{error}"))
}

fn compute_ns(cpu: &mut Cpu<'_>, ns: u64) {
    cpu.compute(ns * machine().clock_hz / 1_000_000_000);
}

fn spin(cpu: &mut Cpu<'_>, ms: u64) {
    (0..ms).for_each(|_| compute_ns(cpu, MS));
}

fn only(cpu: &mut Cpu<'_>, cpus: &[usize]) {
    let mask = cpus.iter().fold(CpuSet::default(), |mask, cpu| mask.with(*cpu));
    assert!(cpu.set_mask(cpu.task(), mask));
    cpu.compute(1);
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

/// Of the second task: how often it ran where it began before it was elsewhere for the first time, and how often it
/// changed caches.
fn stays_and_moves(result: &RunResult) -> (usize, usize) {
    let ran: Vec<_> =
        result.timeline.iter().filter(|stretch| stretch.task == 1).map(|stretch| stretch.cpu).collect();
    let first = ran.iter().position(|cpu| *cpu == HERE).unwrap();
    let stays = ran[first..].iter().take_while(|cpu| **cpu == HERE).count();
    let moves = ran.windows(2).filter(|pair| (pair[0] < THERE) != (pair[1] < THERE)).count();
    (stays, moves)
}

/// One runs for 400 us at a time on a CPU. Another wakes beside it each time, and waits for it; it may also run on
/// another CPU, which idles. How often it ran where it began before it moved.
fn beside_short_runs(other: &'static [usize; 2]) -> usize {
    const TURNS: usize = 200;
    let result = run(
        "fair",
        vec![
            Box::new(|cpu| {
                only(cpu, &[HERE]);
                for _ in 0..TURNS {
                    let other = cpu.task() + 1;
                    cpu.wake(other);
                    compute_ns(cpu, 400 * US);
                    cpu.sleep_ns(200 * US);
                }
            }),
            Box::new(move |cpu| {
                only(cpu, &[HERE]);
                only(cpu, other);
                for _ in 0..TURNS / 2 {
                    cpu.block();
                    compute_ns(cpu, 50 * US);
                }
            }),
        ],
    );
    let ran = result.timeline.iter().filter(|stretch| stretch.task == 1).map(|stretch| stretch.cpu);
    ran.skip_while(|cpu| *cpu != HERE).take_while(|cpu| *cpu == HERE).count()
}

#[test]
fn many_short_waits_beside_an_idle_cpu_add_up_to_one_move() {
    let costs = machine().move_costs();
    let near = beside_short_runs(&[HERE, HERE + 1]);
    let far = beside_short_runs(&[HERE, THERE]);
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
    for idle in [HERE + 1, THERE] {
        let cpus: &'static [usize] = if idle == THERE { &[HERE, THERE] } else { &[HERE, HERE + 1] };
        let result = beside_a_spinner("fair", cpus);
        let ran = result.timeline.iter().filter(|stretch| stretch.task == 1).map(|stretch| stretch.cpu);
        let stays = ran.clone().skip_while(|cpu| *cpu != HERE).take_while(|cpu| *cpu == HERE).count();
        let moves = ran.collect::<Vec<_>>().windows(2).filter(|pair| pair[0] != pair[1]).count();
        // It is there for what made it a task of this CPU, and may find the spinner at the beginning of a slice.
        assert!(stays <= 4 && moves <= 4, "ran {stays} times before it moved, and moved {moves} times");
    }
}

/// The longest that one of ten equal tasks waits that compute on two CPUs.
fn longest_wait_ns(weight: u32) -> u64 {
    let task = move |cpu: &mut Cpu<'_>| {
        cpu.set_weight(cpu.task(), weight);
        only(cpu, &[HERE, HERE + 1]);
        spin(cpu, 200);
    };
    let result = run("fair", (0..10).map(|_| Box::new(task) as Body).collect());
    let waits = (0..10).map(|task| {
        let ran: Vec<_> = result.timeline.iter().filter(|stretch| stretch.task == task).collect();
        ran.windows(2).map(|pair| pair[1].start_ns - pair[0].end_ns).max().unwrap_or(0)
    });
    waits.max().unwrap()
}

#[test]
fn equal_tasks_of_high_weight_wait_no_longer_than_others() {
    let (common, heavy) = (longest_wait_ns(100), longest_wait_ns(8877));
    assert!(heavy <= 2 * common, "{} ms, and {} ms of common weight", heavy / MS, common / MS);
}

#[test]
fn where_moves_cost_nothing_a_task_moves_at_once() {
    let (stays, _) = stays_and_moves(&beside_a_spinner("plain", &[HERE, THERE]));
    assert!(stays <= 2, "ran {stays} times before it moved");
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
    result.timeline.iter().filter(|stretch| stretch.task == 1 && stretch.cpu >= THERE).count()
}

#[test]
fn who_is_woken_by_who_is_about_to_sleep_goes_to_its_cache() {
    let (followed, stayed) = (partners(true), partners(false));
    assert!(followed <= 4, "ran {followed} times in the other cache");
    assert!(stayed > 40, "ran {stayed} times in the other cache");
}

/// How often a task is preempted that computes beside one which wakes each millisecond, on one CPU.
fn preemptions(policy: &str) -> usize {
    let result = beside_a_spinner(policy, &[HERE]);
    let spinner = result.timeline.iter().filter(|stretch| stretch.task == 0);
    spinner.filter(|stretch| stretch.end_ns - stretch.start_ns < 2 * MS).count()
}

#[test]
fn who_wakes_waits_until_who_runs_has_had_its_slice() {
    let (steady, other) = (preemptions("fair"), preemptions("vanilla"));
    assert!(steady < 5 && other > 20, "preempted {steady} times, and {other}");
}
