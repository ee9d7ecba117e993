//! Properties of the scheduler over random programs, machines and policies.

#![allow(clippy::unwrap_used)]

mod planners;

use hearth_machine::Machine;
use hearth_policy::{Credit, Discipline, Policy};
use hearth_sim::memory::Memory;
use hearth_sim::sync::{Lock, Semaphore};
use hearth_sim::{Application, Cpu, Options, RunResult, Simulation};
use planners::{Who, who};
use proptest::prelude::*;

/// What a random program does, step by step.
#[derive(Clone, Debug)]
enum Step {
    Compute(u64),
    Sleep(u64),
    Io(u64),
    Yield,
    Critical(u64),
    Semaphore,
    Enter(u64),
    Leave,
    Fork(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (1..3_000_000u64).prop_map(Step::Compute),
        1 => (1..30_000_000u64).prop_map(Step::Sleep),
        1 => (1..100_000u64).prop_map(Step::Io),
        1 => Just(Step::Yield),
        1 => (1..100_000u64).prop_map(Step::Critical),
        1 => Just(Step::Semaphore),
        2 => (1..5u64).prop_map(Step::Enter),
        1 => Just(Step::Leave),
        1 => (1..1_000_000u64).prop_map(Step::Fork),
    ]
}

fn policy() -> impl Strategy<Value = Policy> {
    let credit = prop::array::uniform5(prop::sample::select(vec![0u64, 1_000_000, 50_000_000, 320_000_000]));
    (
        credit,
        prop::sample::select(vec![1u64, 3, 10, 30, 100]),
        prop::sample::select(Discipline::ALL.to_vec()),
        0..4u8,
    )
        .prop_map(
            |([time_ns, processor_ns, llc_ns, node_ns, fragment_ns], quantum_ms, discipline, kind)| Policy {
                name: "random".into(),
                quantum_ns: quantum_ms * 1_000_000,
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

fn machine() -> impl Strategy<Value = Machine> {
    let presets = prop::sample::select(vec!["sgi-4d340", "dash-16", "t1-dual", "server-2s"]);
    presets.prop_map(|name| Machine::load(name).unwrap())
}

/// Nodes, and caches of several CPUs, in numbers that are no powers of two.
fn odd_machine() -> impl Strategy<Value = Machine> {
    (prop::sample::select(vec![(1, 1), (3, 1), (4, 2), (3, 3), (6, 3), (10, 5)]), 2..5usize).prop_map(
        |((cpus, shared_by), nodes)| {
            let text = hearth_machine::presets().iter().find(|(name, _)| *name == "server-2s").unwrap().1;
            let text = text
                .replace("count = 2", &format!("count = {nodes}"))
                .replace("32 GiB", "8 GiB")
                .replace("cpus = 16", &format!("cpus = {cpus}"))
                .replace("shared_by = 16", &format!("shared_by = {shared_by}"));
            Machine::parse(&text, "odd").unwrap()
        },
    )
}

#[derive(Clone)]
struct Shared {
    lock: Lock,
    semaphore: Semaphore,
}

fn run_steps(cpu: &mut Cpu<'_>, steps: &[Step], shared: &Shared) {
    for step in steps {
        match *step {
            Step::Compute(cycles) => cpu.compute(cycles),
            Step::Sleep(ns) => cpu.sleep_ns(ns),
            Step::Io(bytes) => cpu.io(bytes),
            Step::Yield => cpu.yield_now(),
            Step::Critical(cycles) => {
                shared.lock.acquire(cpu);
                cpu.compute(cycles);
                shared.lock.release(cpu);
            }
            Step::Semaphore => {
                shared.semaphore.wait(cpu);
                shared.semaphore.post(cpu);
            }
            Step::Enter(fragment) => cpu.enter(fragment),
            Step::Leave => cpu.leave(),
            Step::Fork(cycles) => {
                cpu.fork("child", move |cpu| cpu.compute(cycles));
            }
        }
    }
}

fn run(machine: &Machine, policy: &Policy, programs: &[Vec<Step>], who: Who) -> RunResult {
    let longest_idle_ns = if who.confines() { u64::MAX } else { 0 };
    let options = Options { audit: true, longest_idle_ns, ..Options::default() };
    let mut simulation = Simulation::new(machine, policy, &options).unwrap();
    if let Some(controller) = who.controller() {
        simulation.plan_with(controller).unwrap();
    }
    let memory: Memory = simulation.memory();
    let shared = Shared { lock: Lock::new(&memory), semaphore: Semaphore::new(1) };
    let mut application = Application::new("random");
    for steps in programs {
        let (steps, shared) = (steps.clone(), shared.clone());
        application.task("task", move |cpu| run_steps(cpu, &steps, &shared));
    }
    simulation.add(application);
    simulation.run().unwrap_or_else(|error| panic!("{error}"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// The audit ends a run in which a task is lost or run twice, or a CPU idles beside work.
    #[test]
    fn no_task_is_lost_and_no_cpu_idles_beside_work(
        machine in machine(),
        policy in policy(),
        programs in prop::collection::vec(prop::collection::vec(step(), 1..20), 1..14),
        who in who(),
    ) {
        let result = run(&machine, &policy, &programs, who);
        prop_assert_eq!(&run(&machine, &policy, &programs, who), &result, "the same seed gives the same result");
    }

    /// The kernel's own class follows no plan, and lets a CPU idle beside work.
    #[test]
    fn no_task_is_lost_under_the_kernels_own_class(
        machine in prop_oneof![machine(), odd_machine()],
        programs in prop::collection::vec(prop::collection::vec(step(), 1..20), 1..40),
    ) {
        let policy = Policy::load("kernel").unwrap();
        let result = run(&machine, &policy, &programs, Who::Nobody);
        prop_assert_eq!(&run(&machine, &policy, &programs, Who::Nobody), &result, "the same seed gives the same result");
    }

    /// A task that always wants a CPU is behind none by more than its credits and a slice, whatever its CPU did
    /// before, and whatever the tasks' weights, as long as none deserves more than a CPU.
    #[test]
    fn no_task_falls_behind_by_more_than_its_credits_and_a_slice(
        mut policy in policy().prop_filter("attached tasks may", |policy| !policy.attached),
        before_ms in prop::collection::vec(1..1500u64, 0..6),
        gap_ms in 0..100u64,
        weights in prop_oneof![
            prop::collection::vec(Just(100), 5..12),
            prop::collection::vec(prop::sample::select(vec![50u32, 100, 200]), 9..16),
        ],
    ) {
        policy.discipline = Discipline::Fair;
        let machine = Machine::load("sgi-4d340").unwrap();
        prop_assume!(weights.iter().all(|weight| weight * machine.cpus() as u32 <= weights.iter().sum::<u32>()));
        let options = Options { sample_ns: 50_000_000, ..Options::default() };
        let mut simulation = Simulation::new(&machine, &policy, &options).unwrap();
        let compute_ms = |cpu: &mut Cpu<'_>, ms: u64| (0..ms * 33).for_each(|_| cpu.compute(1000));
        for &ms in &before_ms {
            let mut application = Application::new("before");
            application.task("spin", move |cpu| compute_ms(cpu, ms));
            simulation.add(application);
        }
        let start_ns = (before_ms.iter().copied().max().unwrap_or(0) + gap_ms) * 1_000_000;
        for &weight in &weights {
            let mut application = Application::new("after");
            application.start_ns = start_ns;
            application.task("spin", move |cpu| {
                cpu.set_weight(cpu.task(), weight);
                compute_ms(cpu, 3000);
            });
            simulation.add(application);
        }
        let result = simulation.run().unwrap();
        let slice_ns = policy.quantum_ns.max(machine.kernel.tick_ns) + machine.kernel.tick_ns;
        let least_weight = u64::from(*weights.iter().min().unwrap());
        // An interval under way is not in the samples: one more slice for each side of the difference.
        let bound_ns = policy.on(machine.move_costs()).credit.sum_ns() + 3 * slice_ns * 100 / least_weight;
        // Where CPUs had something to do before, a task begins where that left its CPU's clock, the bound away from
        // another. Of tasks of unequal weight one may fall further behind while both run: until the other is the
        // bound ahead of a third that waits, which is no further ahead of the first.
        let is_even = before_ms.is_empty() && weights.iter().all(|weight| weight == &weights[0]);
        let bound_ns = if is_even { bound_ns } else { 2 * bound_ns };
        let after = before_ms.len();
        let first_end_ns = start_ns + result.applications[after..].iter().map(|application| application.execution_ns).min().unwrap();
        for sample in result.samples.iter().filter(|sample| sample.at_ns < first_end_ns) {
            let cpu_ns = sample.cpu_ns[after..].iter();
            let usages = cpu_ns.zip(&weights).map(|(ns, &weight)| ns * 100 / u64::from(weight));
            let (least, most) = (usages.clone().min().unwrap(), usages.max().unwrap());
            prop_assert!(most - least <= bound_ns, "{} ns behind, bound {bound_ns}", most - least);
        }
    }
}
