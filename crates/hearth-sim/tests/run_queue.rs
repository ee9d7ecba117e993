//! The disciplines of the papers' UNIX: one run queue, in whole points, first come, first served.

#![allow(clippy::unwrap_used)]

use hearth_machine::CpuSet;
use hearth_machine::Machine;
use hearth_policy::Policy;
use hearth_sim::{Application, Cpu, Options, RunResult, Simulation};

const MS: u64 = 1_000_000;
const CYCLES_A_MS: u64 = 33_000;

fn spin(cpu: &mut Cpu<'_>, ms: u64) {
    (0..ms).for_each(|_| cpu.compute(CYCLES_A_MS));
}

fn run(policy: &Policy, applications: Vec<Application>) -> RunResult {
    let options = Options { timeline: true, ..Options::default() };
    let mut simulation = Simulation::new(&Machine::load("sgi-4d340").unwrap(), policy, &options).unwrap();
    applications.into_iter().for_each(|application| simulation.add(application));
    simulation.run().unwrap()
}

/// A task begins after another that has been alone on its CPU for so long: for how long it then runs before the
/// other one does again. Other CPUs have three tasks each.
fn catches_up_ms(policy: &str, alone_ms: u64) -> u64 {
    let mut application = Application { cpus: CpuSet::one(0), ..Application::new("two") };
    application.task("first", move |cpu| spin(cpu, alone_ms + 4000));
    application.task("second", move |cpu| {
        cpu.sleep_ns(alone_ms * MS);
        spin(cpu, 4000);
    });
    let mut others = Application { cpus: CpuSet::of_word(0b1110), ..Application::new("others") };
    (0..9).for_each(|_| others.task("spin", |cpu| spin(cpu, 3000)));
    let result = run(&Policy::load(policy).unwrap(), vec![application, others]);
    let of = |task| result.timeline.iter().filter(move |stretch| stretch.task == task);
    let begins_ns = of(1).find(|stretch| stretch.start_ns >= alone_ms * MS).unwrap().start_ns;
    (of(0).find(|stretch| stretch.start_ns > begins_ns).unwrap().start_ns - begins_ns) / MS
}

#[test]
fn tasks_that_have_had_as_much_take_turns_in_the_order_in_which_they_came() {
    let mut application = Application { cpus: CpuSet::of_word(0b11), ..Application::new("crowd") };
    (0..5).for_each(|_| application.task("spin", |cpu| spin(cpu, 900)));
    let policy = Policy { decay_ns: 1 << 62, ..Policy::load("standard").unwrap() };
    let result = run(&policy, vec![application]);
    let mut begun: Vec<_> =
        result.timeline.iter().map(|stretch| (stretch.start_ns, stretch.cpu, stretch.task)).collect();
    begun.sort_unstable();
    // Whole rounds: each task once in any five turns, on whichever CPU is free, also one that it was not on.
    let order: Vec<_> = begun.iter().map(|&(_, _, task)| task).take(100).collect();
    for (at, round) in order.windows(5).enumerate() {
        let mut round = round.to_vec();
        round.sort_unstable();
        assert_eq!(round, [0, 1, 2, 3, 4], "from turn {at} on: {order:?}");
    }
    let cpus: Vec<_> = begun.iter().filter(|(_, _, task)| *task == 0).map(|&(_, cpu, _)| cpu).collect();
    assert!(cpus.contains(&0) && cpus.contains(&1), "nothing keeps a task where it was: {cpus:?}");
}

#[test]
fn what_a_task_is_charged_is_bounded_by_saturation() {
    let unbounded = "standard:decay=1000s";
    let long = catches_up_ms(unbounded, 2000);
    assert!((1950..2060).contains(&long), "what the other has had: {long} ms");
    for saturation in [300, 800] {
        let bounded = catches_up_ms(&format!("{unbounded}:saturation={saturation}ms"), 2000);
        assert!((saturation - 30..saturation + 60).contains(&bounded), "{saturation} ms: {bounded}");
    }
}

#[test]
fn the_greater_the_load_the_slower_usage_is_forgotten_in_4_3bsd() {
    let halved = catches_up_ms("standard", 3000);
    // With eleven tasks on four CPUs, 5.5 of 6.5 parts are left in the place of a half.
    let by_load = catches_up_ms("bsd:quantum=30ms:saturation=100s", 3000);
    assert!(by_load > halved * 3 / 2, "{by_load} ms, {halved} ms with halving");
}

#[test]
fn who_is_attached_has_its_children_on_the_same_cpu() {
    let family = |policy: &str| {
        let mut application = Application::new("families");
        for _ in 0..2 {
            application.task("parent", |cpu| {
                spin(cpu, 50);
                for _ in 0..3 {
                    cpu.fork("child", |cpu| {
                        spin(cpu, 50);
                        cpu.fork("grandchild", |cpu| spin(cpu, 100));
                    });
                }
                spin(cpu, 50);
            });
        }
        let result = run(&Policy::load(policy).unwrap(), vec![application]);
        let mut cpus: Vec<_> = result.timeline.iter().map(|stretch| stretch.cpu).collect();
        cpus.sort_unstable();
        cpus.dedup();
        (cpus.len(), result.idle_share)
    };
    let (cpus, idle) = family("attached");
    assert_eq!(cpus, 2, "one for each family, of four");
    assert!(idle > 0.45, "idle {idle}");
    let (cpus, idle) = family("standard");
    assert!(cpus == 4 && idle < 0.3, "{cpus} CPUs, idle {idle}");
}

#[test]
fn a_mask_goes_before_the_cpu_to_which_a_task_is_attached() {
    let mut application = Application::new("moves");
    application.task("moves", |cpu| {
        spin(cpu, 100);
        let task = cpu.task();
        assert!(cpu.set_mask(task, CpuSet::of_word(0b1000)));
        spin(cpu, 100);
        assert!(cpu.set_mask(task, CpuSet::of_word(0b0111)));
        spin(cpu, 100);
    });
    let result = run(&Policy::load("attached").unwrap(), vec![application]);
    let on = |cpu| result.timeline.iter().any(|stretch| stretch.cpu == cpu);
    assert!(on(3) && (0..3).any(on), "{:?}", result.timeline);
}
