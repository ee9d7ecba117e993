//! The same programs in the simulated kernel and in a real one: the same policy makes the same of
//! them.

use std::cell::Cell;
use std::rc::Rc;

use hearth_guest::{Kernel, Output};
use hearth_kernel_tests::{Shared, first, line, numbers, records};
use hearth_machine::Machine;
use hearth_policy::Policy;
use hearth_sim::sync::Semaphore;
use hearth_sim::{Application, Options, RunResult, Simulation};

const MS: f64 = 1e6;
const TICK_MS: f64 = 4.0;
const POLICIES: [&str; 4] = ["fair", "standard", "quantum-10", "light"];
/// Those without credit, where the order of equal tasks is determined.
const IN_ORDER: [&str; 2] = ["standard", "quantum-10"];
const SPINNERS: usize = 3;
const TRIPS: u64 = 500;
const YIELDS: u64 = 500;
const YIELDERS: usize = 3;

/// The policy `fair` with numbers of its own: what moves cost is not the same in the guest and on the simulated machine.
macro_rules! fair {
    () => {
        "fair:credit.time=2ms:credit.processor=1ms:credit.llc=2ms:credit.node=1ms"
    };
}

fn load(policy: &str) -> Policy {
    Policy::load(if policy == "fair" { fair!() } else { policy }).unwrap()
}

const SCRIPT: &str = concat!(
    "
idle() {
	read up rest </proc/uptime
	read cpu user nice system idle rest </proc/stat
	echo up_s=$up idle_hundredths=$idle
}
EVENTS=/sys/kernel/sched_ext/root/events
for policy in fair standard quantum-10 light; do
	section $policy-start
	case $policy in
	fair) start --policy ",
    fair!(),
    " ;;
	*) start --policy $policy ;;
	esac
	section $policy-refills
	grep REFILL_SLICE_DFL $EVENTS
	section $policy-spin
	tasks spin $([ $policy = light ] && echo 6000 || echo 2000) 0,0,0 1
	section $policy-many
	tasks spin 500 0,0,0,0,0,0,0,0,0,0,0,0
	section $policy-idle
	tasks spin 1000 0,0,0,0,0,0,0,0,0,0,0,0 >/dev/null &
	sleep 0.1; idle; sleep 0.15; idle
	wait $!
	section $policy-pingpong
	tasks pingpong 500 1
	section $policy-yield
	tasks yielders 3 500 1
	section $policy-refills-then
	grep REFILL_SLICE_DFL $EVENTS
	hearth stop
	await disabled
done
"
);

fn output() -> Option<&'static Output> {
    static GUEST: Shared = Shared::new();
    GUEST.output(SCRIPT, Kernel::Pinned)
}

/// A machine whose nodes have `cpus` CPUs each, two to a last-level cache, as the guest's.
fn machine(nodes: u32, cpus: u32) -> Machine {
    let mut machine = Machine::load("server-2s").unwrap();
    machine.nodes.truncate(nodes as usize);
    machine.nodes.iter_mut().for_each(|node| node.cpus = cpus as _);
    machine.caches.last_mut().unwrap().shared_by = cpus.min(2) as _;
    machine
}

fn simulate(machine: &Machine, policy: &str, applications: Vec<Application>) -> RunResult {
    let policy = load(policy);
    let options = Options { timeline: true, ..Options::default() };
    let mut simulation = Simulation::new(machine, &policy, &options).unwrap();
    applications.into_iter().for_each(|application| simulation.add(application));
    simulation.run().unwrap()
}

fn spinners(count: usize, ms: u64) -> Application {
    let mut application = Application::new("spin");
    for _ in 0..count {
        application.task("spin", move |cpu| (0..ms).for_each(|_| cpu.compute(2_500_000)));
    }
    application
}

/// Stretches as (task, length in ms); those that follow each other without another between are one.
type Stretches = Vec<(u64, f64)>;

fn joined(stretches: impl Iterator<Item = (u64, f64)>) -> Stretches {
    let mut all = Stretches::new();
    for (task, ms) in stretches {
        match all.last_mut() {
            Some((last, length)) if *last == task => *length += ms,
            _ => all.push((task, ms)),
        }
    }
    all
}

fn simulated_spin(policy: &str) -> Stretches {
    // As in the script: long stretches are few, and the mean of few is chance.
    let ms = if policy == "light" { 6000 } else { 2000 };
    let result = simulate(&machine(1, 1), policy, vec![spinners(SPINNERS, ms)]);
    let stretches = result.timeline.iter();
    joined(stretches.map(|one| (one.task as u64, (one.end_ns - one.start_ns) as f64 / MS)))
}

fn real_spin(output: &Output, policy: &str) -> Stretches {
    let stretches = records(output, &format!("{policy}-spin"), "stretch");
    joined(stretches.iter().map(|one| {
        let (start, end): (f64, f64) = (one.get("start_ns").unwrap(), one.get("end_ns").unwrap());
        (one.get("task").unwrap(), (end - start) / MS)
    }))
}

fn longest(stretches: &Stretches) -> f64 {
    middle(stretches).iter().map(|(_, ms)| *ms).fold(0.0, f64::max)
}

/// Without the first and the last of each task: not all of them are there, and some of them had had
/// more than others before they began to spin.
fn middle(stretches: &Stretches) -> &[(u64, f64)] {
    &stretches[SPINNERS..stretches.len() - SPINNERS]
}

fn mean(stretches: &Stretches) -> f64 {
    let middle = middle(stretches);
    middle.iter().map(|(_, ms)| ms).sum::<f64>() / middle.len() as f64
}

/// Share of the rounds in which every task has one stretch.
fn in_turn(stretches: &Stretches) -> f64 {
    let middle = middle(stretches);
    let windows = middle.windows(SPINNERS);
    let total = windows.len() as f64;
    let all_differ = |window: &&[(u64, f64)]| {
        (1..window.len()).all(|at| window[..at].iter().all(|(task, _)| *task != window[at].0))
    };
    windows.filter(all_differ).count() as f64 / total
}

#[test]
fn stretches_of_equal_tasks_are_as_long() {
    let Some(output) = output() else { return };
    for policy in POLICIES {
        let (real, simulated) = (real_spin(output, policy), simulated_spin(policy));
        let given = load(policy);
        let (quantum_ms, credit_ms) = (given.quantum_ns as f64 / MS, given.credit.time_ns as f64 / MS);
        // A halving of usage within a stretch gives back half the credit, and when they come is chance. A
        // task of the kernel that runs in between is not seen, and the quantum begins anew after it.
        let (a, b) = (longest(&real), longest(&simulated));
        let slack = credit_ms / 2.0 + 2.0 * TICK_MS;
        assert!(
            (b - slack..=b + slack + quantum_ms).contains(&a),
            "{policy}: longest {a} ms, simulated {b} ms"
        );
        // It also ends the time credit, which is for a task that nothing has run after.
        let (a, b) = (mean(&real), mean(&simulated));
        assert!((a - b).abs() <= TICK_MS + 0.2 * b, "{policy}: mean {a} ms, simulated {b} ms");
    }
}

/// It does so with tasks that a scheduler did not say it would take: such as may not leave their CPU for
/// a moment, or that exit.
#[test]
fn the_kernel_gives_no_task_a_slice_of_its_own() {
    let Some(output) = output() else { return };
    let refills = |policy: &str, when: &str| {
        line(output, &format!("{policy}-refills{when}"))
            .split_whitespace()
            .last()
            .unwrap()
            .parse::<u64>()
            .unwrap()
    };
    for policy in POLICIES {
        assert_eq!(refills(policy, "-then"), refills(policy, ""), "{policy}");
    }
}

#[test]
fn equal_tasks_take_turns_in_the_same_order() {
    let Some(output) = output() else { return };
    for policy in IN_ORDER {
        for (kernel, stretches) in
            [("real", real_spin(output, policy)), ("simulated", simulated_spin(policy))]
        {
            let share = in_turn(&stretches);
            assert!(share > 0.9, "{policy}, {kernel}: {share} in turn: {stretches:?}");
        }
    }
}

#[test]
fn no_cpu_idles_beside_work_in_either() {
    let Some(output) = output() else { return };
    for policy in POLICIES {
        let real: f64 = numbers(&records(output, &format!("{policy}-many"), "nice"), "cpu_ns").iter().sum();
        let idle = records(output, &format!("{policy}-idle"), "up_s");
        let [up_s, idle_s] = [("up_s", 1.0), ("idle_hundredths", 0.01)].map(|(key, unit)| {
            let at = numbers(&idle, key);
            (at[1] - at[0]) * unit
        });
        println!("{policy}: {idle_s} s idle in {up_s} s of 8 CPUs");
        assert!((0.1..0.8).contains(&up_s), "{policy}: looked after {up_s} s");
        assert!(idle_s < 0.02 * 8.0 * up_s, "{policy}: {idle_s} s idle in {up_s} s of 8 CPUs");
        // What is not theirs others had: Hearth's own threads and the kernel's.
        assert!(real > 0.95 * 8.0 * 500.0 * MS, "{policy}: {} ms of 4000 ms", real / MS);
        let simulated = simulate(&machine(2, 4), policy, vec![spinners(16, 300)]);
        assert!(simulated.idle_share < 0.03, "{policy}: {} idle", simulated.idle_share);
    }
}

fn simulated_pingpong(policy: &str) -> f64 {
    let (there, back) = (Semaphore::new(0), Semaphore::new(0));
    let mut application = Application::new("pingpong");
    let (ask, answer) = (there.clone(), back.clone());
    application.task("ping", move |cpu| {
        for _ in 0..TRIPS {
            ask.post(cpu);
            answer.wait(cpu);
        }
    });
    application.task("pong", move |cpu| {
        for _ in 0..TRIPS {
            there.wait(cpu);
            back.post(cpu);
        }
    });
    simulate(&machine(1, 1), policy, vec![application]).total.switches as f64 / TRIPS as f64
}

#[test]
fn a_round_trip_on_one_cpu_costs_as_many_switches() {
    let Some(output) = output() else { return };
    for policy in POLICIES {
        let switches: f64 = first(output, &format!("{policy}-pingpong"), "pingpong").get("switches").unwrap();
        let (real, simulated) = (switches / TRIPS as f64, simulated_pingpong(policy));
        assert!((real - simulated).abs() < 0.2, "{policy}: {real} a trip, simulated {simulated}");
    }
}

/// Turns that went to the task that had yielded.
fn simulated_repeats(policy: &str) -> u64 {
    let (last, repeats, finished) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)), Rc::new(Cell::new(false)));
    let mut application = Application::new("yield");
    for me in 1..=YIELDERS {
        let (last, repeats, finished) = (last.clone(), repeats.clone(), finished.clone());
        application.task("yield", move |cpu| {
            for _ in 0..YIELDS {
                if last.replace(me) == me && !finished.get() {
                    repeats.set(repeats.get() + 1);
                }
                cpu.compute(2500);
                cpu.yield_now();
            }
            finished.set(true);
        });
    }
    simulate(&machine(1, 1), policy, vec![application]);
    repeats.get()
}

#[test]
fn a_task_that_yields_makes_way_in_both() {
    let Some(output) = output() else { return };
    for policy in POLICIES {
        let real: u64 = first(output, &format!("{policy}-yield"), "yielders").get("repeats").unwrap();
        let turns = YIELDERS as u64 * YIELDS;
        assert!(real < turns / 50, "{policy}: {real} of {turns} turns");
        let simulated = simulated_repeats(policy);
        assert!(simulated < turns / 50, "{policy}: {simulated} of {turns} turns, simulated");
    }
}
