//! What programs may change: weights, masks, classes, CPUs.

#![allow(clippy::unwrap_used)]

use hearth_machine::CpuSet;
use hearth_machine::Machine;
use hearth_policy::Policy;
use hearth_sim::program::Body;
use hearth_sim::{Application, Class, Cpu, Options, RunResult, Simulation};

const MS: u64 = 1_000_000;
const CYCLES_A_MS: u64 = 33_000;

/// Runs tasks under `fair` on four CPUs, audited.
fn run(tasks: Vec<Body>, options: &Options) -> RunResult {
    let machine = Machine::load("sgi-4d340").unwrap();
    let options = Options { audit: true, timeline: true, ..*options };
    let mut simulation = Simulation::new(&machine, &Policy::load("fair").unwrap(), &options).unwrap();
    let mut application = Application::new("changes");
    tasks.into_iter().for_each(|task| application.tasks.push(("task".into(), task)));
    simulation.add(application);
    simulation.run().unwrap_or_else(|error| panic!("{error}"))
}

fn spin(cpu: &mut Cpu<'_>, ms: u64) {
    (0..ms).for_each(|_| cpu.compute(CYCLES_A_MS));
}

/// CPU time that a task has had until then.
fn ran_ns(result: &RunResult, task: usize, until_ns: u64) -> u64 {
    let stretches = result.timeline.iter().filter(|stretch| stretch.task == task);
    stretches.map(|stretch| stretch.end_ns.min(until_ns).saturating_sub(stretch.start_ns)).sum()
}

#[test]
fn of_two_tasks_on_a_cpu_the_heavier_has_more_by_its_weight() {
    let weighs = |weight| {
        Box::new(move |cpu: &mut Cpu<'_>| {
            cpu.set_weight(cpu.task(), weight);
            cpu.set_mask(cpu.task(), CpuSet::one(0));
            spin(cpu, 4000);
        }) as Body
    };
    let result = run(vec![weighs(300), weighs(100)], &Options::default());
    let [heavy, light] = [0, 1].map(|task| ran_ns(&result, task, 4_000 * MS) as f64);
    assert!((2.4..3.6).contains(&(heavy / light)), "{heavy} ns and {light} ns");
}

#[test]
fn a_task_leaves_a_cpu_that_its_mask_has_lost_and_a_mask_without_cpus_is_refused() {
    let result = run(
        vec![Box::new(|cpu| {
            assert!(cpu.set_mask(cpu.task(), CpuSet::of_word(0b0100)));
            cpu.compute(1);
            assert_eq!(cpu.number(), 2);
            assert!(!cpu.set_mask(cpu.task(), CpuSet::one(40)));
            cpu.compute(1);
            assert_eq!(cpu.number(), 2);
        })],
        &Options::default(),
    );
    assert_eq!(result.total.cpu_moves, 1);
}

#[test]
fn a_real_time_task_keeps_its_cpu_and_is_not_charged_for_it_afterwards() {
    const BURST_MS: u64 = 800;
    let other = |cpu: &mut Cpu<'_>| {
        cpu.set_mask(cpu.task(), CpuSet::one(0));
        spin(cpu, 3000);
    };
    let result = run(
        vec![
            Box::new(move |cpu| {
                cpu.set_mask(cpu.task(), CpuSet::one(0));
                cpu.set_class(cpu.task(), Class::RealTime);
                let begin_ns = cpu.now_ns();
                spin(cpu, BURST_MS);
                let took_ns = cpu.now_ns() - begin_ns;
                assert!(took_ns < (BURST_MS + 20) * MS, "{took_ns} ns: nobody else ran");
                cpu.set_class(cpu.task(), Class::Normal);
                spin(cpu, 1000);
            }),
            Box::new(other),
        ],
        &Options::default(),
    );
    let until_ns = 2_000 * MS;
    let [burst, other] = [0, 1].map(|task| ran_ns(&result, task, until_ns));
    let afterwards = burst - BURST_MS * MS;
    assert!(afterwards * 10 > other * 8, "{afterwards} ns beside {other} ns");
}

#[test]
fn tasks_go_on_elsewhere_when_their_cpu_goes_away_and_use_it_when_it_is_back() {
    let spinner = |cpu: &mut Cpu<'_>| spin(cpu, 900);
    let result = run(
        vec![
            Box::new(|cpu| {
                cpu.sleep_ns(100 * MS);
                cpu.set_online(3, false);
                cpu.sleep_ns(500 * MS);
                cpu.set_online(3, true);
                spin(cpu, 100);
            }),
            Box::new(spinner),
            Box::new(spinner),
            Box::new(spinner),
            Box::new(spinner),
        ],
        &Options::default(),
    );
    let on_3 = |from_ms: u64, to_ms: u64| {
        let stretches = result.timeline.iter().filter(|stretch| stretch.cpu == 3);
        stretches
            .map(|stretch| stretch.end_ns.min(to_ms * MS).saturating_sub(stretch.start_ns.max(from_ms * MS)))
            .sum::<u64>()
    };
    // Who wakes waits its turn, and CPUs change when it runs.
    assert!(on_3(0, 100) > 80 * MS && on_3(130, 600) == 0 && on_3(620, 900) > 200 * MS);
}

#[test]
fn ticks_out_of_step_are_a_tick_apart_and_follow_from_the_seed() {
    let ends = |ticks_in_step, seed| {
        let spinner = |_| Box::new(|cpu: &mut Cpu<'_>| spin(cpu, 200)) as Body;
        let options = Options { ticks_in_step, seed, ..Options::default() };
        run((0..8).map(spinner).collect(), &options).timeline
    };
    assert_ne!(ends(true, 1), ends(false, 1));
    assert_eq!(ends(false, 1), ends(false, 1));
    assert_ne!(ends(false, 1), ends(false, 2));
}

/// A real-time task keeps CPU 1 for so long that whoever waits there alone would starve; on each of the
/// others one task runs.
fn beside_a_cpu_that_is_held(waiter: impl FnOnce(&mut Cpu<'_>) + Send + 'static) {
    const HELD_MS: u64 = 8_000;
    let spinner = |mask| {
        Box::new(move |cpu: &mut Cpu<'_>| {
            cpu.set_mask(cpu.task(), mask);
            spin(cpu, HELD_MS);
        }) as Body
    };
    let real_time = |cpu: &mut Cpu<'_>| {
        cpu.sleep_ns(100 * MS);
        cpu.set_mask(cpu.task(), CpuSet::of_word(0b0010));
        cpu.set_class(cpu.task(), Class::RealTime);
        spin(cpu, HELD_MS);
        cpu.set_class(cpu.task(), Class::Normal);
    };
    let options = Options { longest_wait_ns: 5_000 * MS, ..Options::default() };
    let tasks = vec![
        spinner(CpuSet::of_word(0b0001)),
        spinner(CpuSet::of_word(0b0100)),
        spinner(CpuSet::of_word(0b1000)),
        Box::new(waiter),
        Box::new(real_time),
    ];
    run(tasks, &options);
}

#[test]
fn a_task_goes_elsewhere_if_a_higher_class_holds_one_of_its_cpus_for_long() {
    beside_a_cpu_that_is_held(|cpu| {
        cpu.set_mask(cpu.task(), CpuSet::of_word(0b0110));
        spin(cpu, 2_000);
    });
}

#[test]
fn a_fragment_goes_elsewhere_if_a_higher_class_holds_its_home_for_long() {
    beside_a_cpu_that_is_held(|cpu| {
        cpu.enter(1);
        spin(cpu, 2_000);
    });
}
