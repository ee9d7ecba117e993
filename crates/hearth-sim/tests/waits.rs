//! No task waits for too long, none is lost and no CPU idles beside work, whatever changes: weights, masks,
//! classes, CPUs; with ticks in step and out of step; under every policy that is shipped, and random ones;
//! whoever plans.

#![allow(clippy::unwrap_used)]

mod planners;

use hearth_machine::CpuSet;
use hearth_machine::Machine;
use hearth_policy::{Credit, Discipline, Policy};
use hearth_sim::{Application, Class, Cpu, Options, SimError, Simulation};
use planners::{Who, who};
use proptest::prelude::*;

const MS: u64 = 1_000_000;
/// Half of the time after which the kernel's watchdog ends the scheduler.
const LONGEST_WAIT_NS: u64 = 5_000 * MS;
/// Some ticks: where tasks have masks, an idle CPU is found at one; a real-time task's CPU has none.
const LONGEST_IDLE_NS: u64 = 100 * MS;
/// Spinners go on until then, long enough for a wait to be too long.
const END_NS: u64 = 12_000 * MS;
const CYCLES_A_MS: u64 = 33_000;
/// A real-time task that held its CPU for longer would starve others by itself.
const LONGEST_BURST_MS: u64 = 40;

/// What a program does, step by step; other tasks are meant by a number that is taken modulo theirs.
#[derive(Clone, Debug)]
enum Step {
    Compute(u64),
    Sleep(u64),
    Yield,
    /// Declares what it works on; 0 for nothing more.
    Enter(u64),
    Weigh(usize, u32),
    Mask(usize, u64),
    /// A task goes to the real-time class, and soon back; another may be asked to go meanwhile.
    Burst(u64),
    Boost(usize, u64),
    /// A CPU goes away, and after some time comes back.
    Unplug(usize, u64),
}

/// As many light ones as heavy ones.
fn weight() -> impl Strategy<Value = u32> {
    (0..5u32, 1..10u32).prop_map(|(decade, digit)| (10u32.pow(decade) * digit).min(10_000))
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (1..60u64).prop_map(Step::Compute),
        3 => (1..60u64).prop_map(Step::Sleep),
        1 => Just(Step::Yield),
        3 => (0..4u64).prop_map(Step::Enter),
        2 => (any::<usize>(), weight()).prop_map(|(task, weight)| Step::Weigh(task, weight)),
        2 => (any::<usize>(), 1..16u64).prop_map(|(task, cpus)| Step::Mask(task, cpus)),
        1 => (1..LONGEST_BURST_MS).prop_map(Step::Burst),
        1 => (any::<usize>(), 1..LONGEST_BURST_MS).prop_map(|(task, ms)| Step::Boost(task, ms)),
        1 => (0..4usize, 1..200u64).prop_map(|(cpu, ms)| Step::Unplug(cpu, ms)),
    ]
}

/// A task: how it begins, what it does, and whether it spins until the end.
#[derive(Clone, Debug)]
struct Program {
    weight: u32,
    cpus: u64,
    steps: Vec<Step>,
    spins: bool,
}

fn program() -> impl Strategy<Value = Program> {
    // Most are bound, and most of these to one CPU, which so becomes crowded.
    let cpus = prop_oneof![3 => Just(1u64), 2 => (0..4u32).prop_map(|cpu| 1 << cpu), 2 => 1..16u64];
    (weight(), cpus, prop::collection::vec(step(), 0..24), any::<bool>())
        .prop_map(|(weight, cpus, steps, spins)| Program { weight, cpus, steps, spins })
}

fn random_policy() -> impl Strategy<Value = Policy> {
    let credit = prop::array::uniform5(prop::sample::select(vec![0, MS, 50 * MS, 320 * MS, 900 * MS]));
    (
        credit,
        prop::sample::select(vec![1u64, 10, 30, 100]),
        prop::sample::select(Discipline::ALL.to_vec()),
        0..4u8,
    )
        .prop_map(
            |([time_ns, processor_ns, llc_ns, node_ns, fragment_ns], quantum_ms, discipline, kind)| Policy {
                name: "random".into(),
                quantum_ns: quantum_ms * MS,
                credit: Credit { time_ns, processor_ns, llc_ns, node_ns, fragment_ns },
                discipline,
                complex: discipline.has_run_queue() && kind == 0,
                fade_permille: if discipline.has_run_queue() && kind == 0 { 2000 } else { 0 },
                attached: discipline.has_run_queue() && kind == 1,
                saturation_ns: (kind == 2).then_some(800_000_000),
                ..Policy::affinity(0, 0)
            },
        )
}

/// Of Hearth's scheduler. The kernel's own class has no bound on waits.
fn policy() -> impl Strategy<Value = Policy> {
    let shipped: Vec<Policy> = hearth_policy::presets()
        .iter()
        .map(|(name, _)| Policy::load(name).unwrap())
        .filter(|policy| policy.discipline != Discipline::Kernel)
        .collect();
    prop_oneof![prop::sample::select(shipped), random_policy()]
}

/// Computes, and then is no real-time task, whoever may have made it one.
fn compute_ms(cpu: &mut Cpu<'_>, ms: u64) {
    cpu.compute(ms * CYCLES_A_MS);
    cpu.set_class(cpu.task(), Class::Normal);
}

fn take_step(cpu: &mut Cpu<'_>, step: &Step, tasks: usize) {
    match *step {
        Step::Compute(ms) => compute_ms(cpu, ms),
        Step::Sleep(ms) => cpu.sleep_ns(ms * MS),
        Step::Yield => cpu.yield_now(),
        Step::Enter(0) => cpu.leave(),
        Step::Enter(fragment) => cpu.enter(fragment),
        Step::Weigh(task, weight) => cpu.set_weight(task % tasks, weight),
        Step::Mask(task, cpus) => {
            cpu.set_mask(task % tasks, CpuSet::of_word(cpus));
        }
        Step::Burst(ms) => {
            cpu.set_class(cpu.task(), Class::RealTime);
            compute_ms(cpu, ms);
        }
        Step::Boost(task, ms) => {
            cpu.set_class(task % tasks, Class::RealTime);
            cpu.sleep_ns(ms * MS);
            cpu.set_class(task % tasks, Class::Normal);
        }
        Step::Unplug(number, ms) => {
            cpu.set_online(number, false);
            cpu.sleep_ns(ms * MS);
            cpu.set_online(number, true);
        }
    }
}

fn run(policy: &Policy, programs: &[Program], who: Who, options: &Options) -> Result<(), SimError> {
    let machine = Machine::load("sgi-4d340").unwrap();
    let mut simulation = Simulation::new(&machine, policy, options).unwrap();
    if let Some(controller) = who.controller() {
        simulation.plan_with(controller)?;
    }
    let tasks = programs.len();
    let mut application = Application::new("random");
    for Program { weight, cpus, steps, spins } in programs.iter().cloned() {
        application.task("task", move |cpu| {
            cpu.set_weight(cpu.task(), weight);
            cpu.set_mask(cpu.task(), CpuSet::of_word(cpus));
            steps.iter().for_each(|step| take_step(cpu, step, tasks));
            while spins && cpu.now_ns() < END_NS {
                compute_ms(cpu, 5);
            }
        });
    }
    simulation.add(application);
    simulation.run().map(drop)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// The audit ends a run in which a task waits for too long, is lost or runs twice, or a CPU idles
    /// for long beside work that it may do.
    #[test]
    fn no_task_waits_for_half_of_the_watchdogs_time_and_none_is_lost(
        policy in policy(),
        programs in prop::collection::vec(program(), 2..24),
        ticks_in_step: bool,
        who in who(),
        seed in 0..1000u64,
    ) {
        let options = Options {
            audit: true,
            longest_wait_ns: LONGEST_WAIT_NS,
            longest_idle_ns: if who.confines() { u64::MAX } else { LONGEST_IDLE_NS },
            ticks_in_step,
            seed,
            window_cycles: CYCLES_A_MS,
            ..Options::default()
        };
        if let Err(error) = run(&policy, &programs, who, &options) {
            prop_assert!(false, "{} under {}", error, policy.name);
        }
    }

    /// The kernel's own class promises no bound on waits, and follows no plan.
    #[test]
    fn none_is_lost_under_the_kernels_own_class(
        programs in prop::collection::vec(program(), 2..24),
        ticks_in_step: bool,
        seed in 0..1000u64,
    ) {
        let options = Options {
            audit: true,
            longest_wait_ns: u64::MAX,
            ticks_in_step,
            seed,
            window_cycles: CYCLES_A_MS,
            ..Options::default()
        };
        if let Err(error) = run(&Policy::load("kernel").unwrap(), &programs, Who::Nobody, &options) {
            prop_assert!(false, "{}", error);
        }
    }
}
