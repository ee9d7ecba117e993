//! Planners on the simulated machine: what they are told, and that their plans are followed and dropped.

#![allow(clippy::unwrap_used)]

use hearth_machine::CpuSet;
use hearth_machine::Machine;
use hearth_policy::planners::Planner;
use hearth_policy::snapshot::{State, Task};
use hearth_policy::{Controller, Credit, Discipline, Plan, Policy, Snapshot, Target};
use hearth_sim::program::Body;
use hearth_sim::{Application, Cpu, Options, RunResult, Simulation};
use proptest::prelude::*;
use std::sync::{Arc, Mutex};

const MS: u64 = 1_000_000;
const CYCLES_A_MS: u64 = 33_000;

/// Plans as a function says, of a snapshot and of the number of the step.
struct As<F>(F, u64);

impl<F: FnMut(&Snapshot, &mut Plan, u64) + Send> Planner for As<F> {
    fn name(&self) -> &'static str {
        "as the test says"
    }

    fn plan(&mut self, snapshot: &Snapshot, plan: &mut Plan) {
        (self.0)(snapshot, plan, self.1);
        self.1 += 1;
    }
}

fn planner(plan: impl FnMut(&Snapshot, &mut Plan, u64) + Send + 'static) -> Controller {
    Controller::new(vec![Box::new(As(plan, 0))])
}

fn spin(cpu: &mut Cpu<'_>, ms: u64) {
    (0..ms).for_each(|_| cpu.compute(CYCLES_A_MS));
}

fn spinners(name: &str, count: usize, ms: u64) -> Application {
    let mut application = Application::new(name);
    (0..count).for_each(|_| application.task("spin", move |cpu| spin(cpu, ms)));
    application
}

/// Keeps CPUs busy, so that others have to wait there: a plan is followed from the next wait on.
fn crowd(cpus: u64, count: usize, ms: u64) -> Application {
    Application { cpus: CpuSet::of_word(cpus), ..spinners("crowd", count, ms) }
}

/// Runs applications on four CPUs.
fn run(
    policy: &Policy,
    applications: Vec<Application>,
    controller: Option<Controller>,
    options: &Options,
) -> RunResult {
    run_acting(policy, applications, controller, options, |_| {})
}

/// The same, with something done before it begins.
fn run_acting(
    policy: &Policy,
    applications: Vec<Application>,
    controller: Option<Controller>,
    options: &Options,
    act: impl FnOnce(&mut Simulation),
) -> RunResult {
    let machine = Machine::load("sgi-4d340").unwrap();
    let mut simulation = Simulation::new(&machine, policy, options).unwrap();
    if let Some(controller) = controller {
        simulation.plan_with(controller).unwrap();
    }
    act(&mut simulation);
    applications.into_iter().for_each(|application| simulation.add(application));
    simulation.run().unwrap_or_else(|error| panic!("{error}"))
}

fn fair() -> Policy {
    Policy::load("fair").unwrap()
}

fn timeline() -> Options {
    Options { timeline: true, ..Options::default() }
}

/// CPU time that an application had outside of some CPUs within a time.
fn ran_elsewhere_ns(
    result: &RunResult,
    application: usize,
    cpus: &[usize],
    from_ms: u64,
    until_ms: u64,
) -> u64 {
    let is_meant =
        |task: usize, cpu: usize| result.tasks[task].application == application && !cpus.contains(&cpu);
    let stretches = result.timeline.iter().filter(|stretch| is_meant(stretch.task, stretch.cpu));
    let within =
        |begin_ns: u64, end_ns: u64| end_ns.min(until_ms * MS).saturating_sub(begin_ns.max(from_ms * MS));
    stretches.map(|stretch| within(stretch.start_ns, stretch.end_ns)).sum()
}

#[test]
fn a_plan_is_followed_until_its_time_is_over_and_no_wrong_one_is() {
    // In its first ten steps, a second, one group has CPU 0 alone; afterwards the planner errs.
    let controller = planner(|_, plan, step| {
        plan.parts = vec![vec![0], vec![1, 2, 3]];
        let part = if step < 10 { 0 } else { 2 };
        plan.groups.insert(1, Target { part: Some(part), ..Target::default() });
    });
    let applications = vec![spinners("confined", 3, 1500), crowd(0b1110, 6, 1500)];
    let result = run(&fair(), applications, Some(controller), &timeline());
    let planned = result.planned.as_ref().unwrap();
    assert_eq!((planned.steps, planned.taken_up, planned.targets), (10, 1, 1));
    assert!(planned.failures > 10 && planned.failure.as_ref().unwrap().contains("part 2 of 2"));
    // The last one holds for five steps, up to 1.4 s. A quantum and a tick until all have waited again.
    let elsewhere_ns = |from_ms, until_ms| ran_elsewhere_ns(&result, 0, &[0], from_ms, until_ms);
    assert_eq!(elsewhere_ns(50, 1400), 0);
    assert!(elsewhere_ns(1500, 2500) > 300 * MS, "{} ns", elsewhere_ns(1500, 2500));
}

#[test]
fn a_task_that_never_waits_leaves_a_part_that_is_not_its_own_at_the_next_tick() {
    let controller = planner(|_, plan, step| {
        plan.parts = vec![vec![0, 1], vec![2, 3]];
        plan.groups.insert(1, Target { part: Some(step as usize % 2), ..Target::default() });
    });
    let result = run(&fair(), vec![spinners("alone", 2, 1000)], Some(controller), &timeline());
    let planned = result.planned.as_ref().unwrap();
    assert!(planned.taken_up > 5);
    // A step each 100 ms; a tick, at which the other CPU is told, which is idle.
    for step in 1..8 {
        let cpus = if step % 2 == 0 { [0, 1] } else { [2, 3] };
        let (from_ms, until_ms) = (step * 100 + 11, (step + 1) * 100);
        assert_eq!(ran_elsewhere_ns(&result, 0, &cpus, from_ms, until_ms), 0, "after step {step}");
    }
}

/// CPU time of an application until an instant.
fn ran_ns(result: &RunResult, application: usize, until_ms: u64) -> u64 {
    let own = result.timeline.iter().filter(|stretch| result.tasks[stretch.task].application == application);
    own.map(|stretch| stretch.end_ns.min(until_ms * MS).saturating_sub(stretch.start_ns)).sum()
}

#[test]
fn tasks_get_cpu_time_by_the_shares_of_the_plan_under_either_discipline() {
    // Without decay, which lets no ratio of usage last for longer than it does.
    let unix = Policy { decay_ns: 1 << 62, ..Policy::load("standard").unwrap() };
    for (policy, permille) in [(fair(), [1500, 500]), (fair(), [800, 1000]), (unix, [1200, 800])] {
        let controller = planner(move |_, plan, _| {
            for (group, share_permille) in [1, 2].into_iter().zip(permille) {
                plan.groups.insert(group, Target { share_permille, ..Target::default() });
            }
        });
        let applications =
            ["one", "other"].map(|name| Application { cpus: CpuSet::one(0), ..spinners(name, 1, 3000) });
        let result = run(&policy, applications.into(), Some(controller), &timeline());
        let [one, other] = [0, 1].map(|application| ran_ns(&result, application, 3000) as f64);
        let ratio = f64::from(permille[0]) / f64::from(permille[1]);
        assert!((one / other / ratio - 1.0).abs() < 0.05, "{permille:?}: {one} and {other} ns");
    }
}

#[test]
fn shares_that_act_by_weights_change_at_the_pace_of_weights() {
    let weights: Arc<Mutex<Vec<u32>>> = Arc::default();
    let told = Arc::clone(&weights);
    // From 1 s on, shares change with each step, ten times as often as weights may.
    let controller = planner(move |snapshot, plan, step| {
        told.lock().unwrap().extend(snapshot.tasks.iter().map(|task| task.weight));
        let share = match step {
            0..10 => 1000,
            _ if step % 2 == 0 => 1500,
            _ => 500,
        };
        plan.groups.insert(1, Target { share_permille: share, ..Target::default() });
        plan.groups.insert(2, Target { share_permille: 2000 - share, ..Target::default() });
    });
    let applications =
        ["one", "other"].map(|name| Application { cpus: CpuSet::one(0), ..spinners(name, 1, 4000) });
    let options = timeline();
    let result =
        run_acting(&fair(), applications.into(), Some(controller), &options, Simulation::act_by_weights);
    let ratio = |from_ms, until_ms| {
        let [one, other] =
            [0, 1].map(|number| ran_ns(&result, number, until_ms) - ran_ns(&result, number, from_ms));
        one as f64 / other as f64
    };
    // Weights change after 1 s, and then at the first step that is a second later and says otherwise.
    for (from_ms, until_ms, wanted) in [(0, 1000, 1.0), (1000, 2100, 3.0), (2100, 3200, 1.0 / 3.0)] {
        let found = ratio(from_ms, until_ms);
        assert!((found / wanted - 1.0).abs() < 0.05, "{found} between {from_ms} and {until_ms} ms");
    }
    // The planner is told of what tasks have by themselves.
    assert!(weights.lock().unwrap().iter().all(|weight| *weight == 100));
}

#[test]
fn a_plan_of_a_task_goes_before_that_of_its_group() {
    let controller = planner(|_, plan, _| {
        plan.parts = vec![vec![0, 1], vec![2, 3]];
        let in_part = |part| Target { part: Some(part), ..Target::default() };
        plan.groups.insert(1, in_part(0));
        plan.tasks.insert(1, in_part(1));
    });
    let applications = vec![spinners("all", 6, 500), crowd(0b0011, 4, 500), crowd(0b1100, 4, 500)];
    let result = run(&fair(), applications, Some(controller), &timeline());
    let cpus_of = |task: usize| {
        let late = result.timeline.iter().filter(move |stretch| stretch.start_ns > 100 * MS);
        late.filter(move |stretch| stretch.task == task).map(|stretch| stretch.cpu)
    };
    // The second part idles long before the first.
    assert!(cpus_of(0).count() > 3 && cpus_of(0).all(|cpu| cpu >= 2));
    assert!((1..6).all(|task| cpus_of(task).all(|cpu| cpu < 2)));
}

#[test]
fn a_planner_is_told_what_tasks_do() {
    let told: Arc<Mutex<Vec<Snapshot>>> = Arc::default();
    let keep = Arc::clone(&told);
    let controller = planner(move |snapshot, _, _| keep.lock().unwrap().push(snapshot.clone()));
    let mut first = Application::new("first");
    let bound = |weight: u32| {
        Box::new(move |cpu: &mut Cpu<'_>| {
            cpu.set_weight(cpu.task(), weight);
            cpu.set_mask(cpu.task(), CpuSet::of_word(0b0010));
            spin(cpu, 800);
        }) as Body
    };
    first.tasks = vec![("heavy".into(), bound(300)), ("light".into(), bound(100))];
    let mut second = Application::new("second");
    second.cpus = CpuSet::of_word(0b1100);
    second.task("sleeper", |cpu| cpu.sleep_ns(2_000 * MS));
    run(&fair(), vec![first, second], Some(controller), &Options::default());

    let told = told.lock().unwrap();
    assert!(told.is_sorted_by_key(|snapshot| snapshot.at_ns) && told[3].at_ns == 300 * MS);
    let at = &told[8];
    let of = |tid: i32| at.tasks.iter().find(|task| task.tid == tid).unwrap();
    let [heavy, light, sleeper] = [1, 2, 3].map(of);
    let facts = |task: &Task| (task.group, task.weight, at.masks[task.mask]);
    assert_eq!(facts(heavy), (1, 300, [1].into()));
    assert_eq!(facts(light), (1, 100, [1].into()));
    assert_eq!(facts(sleeper), (2, 100, [2, 3].into()));
    assert_eq!((sleeper.state, heavy.cpu, light.cpu), (State::Asleep, 1, 1));
    let runnable = [heavy.state, light.state];
    assert!(runnable.contains(&State::Running) && runnable.contains(&State::Waiting));
    assert_eq!((at.cpus.len(), at.cpus[1].waiting, at.cpus[1].is_busy), (4, 1, true));
    assert_eq!((at.groups[&1].runnable, at.groups[&2].runnable), (2, 0));
    // One CPU between the two, three parts to one; each waits while the other runs.
    assert!((2.0..4.5).contains(&(heavy.ran_ns as f64 / light.ran_ns as f64)), "{heavy:?} {light:?}");
    let near = |a: u64, b: u64| a.abs_diff(b) < 80 * MS;
    assert!(near(heavy.ran_ns + light.ran_ns, at.at_ns), "{heavy:?} {light:?}");
    assert!(
        near(heavy.waited_ns, light.ran_ns) && near(light.waited_ns, heavy.ran_ns),
        "{heavy:?} {light:?}"
    );
    assert!(heavy.usage_ns > 0 && light.usage_ns.abs_diff(heavy.usage_ns) < 200 * MS);
}

#[test]
fn a_cpu_that_has_gone_away_is_in_no_snapshot_and_planning_goes_on() {
    let controller = planner(|snapshot, plan, _| {
        let (first, others) = snapshot.cpus.split_first().unwrap();
        plan.parts = vec![vec![first.number], others.iter().map(|cpu| cpu.number).collect()];
    });
    let mut applications = vec![spinners("spin", 6, 900)];
    applications[0].task("unplug", |cpu| {
        cpu.sleep_ns(250 * MS);
        cpu.set_online(0, false);
        cpu.sleep_ns(300 * MS);
        cpu.set_online(0, true);
    });
    let options = Options { audit: true, longest_idle_ns: 100 * MS, ..Options::default() };
    let planned = run(&fair(), applications, Some(controller), &options).planned.unwrap();
    assert_eq!((planned.failures, planned.taken_up, planned.parts.len()), (0, 3, 2));
}

#[test]
fn without_a_planner_nothing_is_told_of_one_and_an_empty_plan_changes_nothing_of_fairness() {
    let ends = |controller| {
        let result = run(&fair(), vec![spinners("spin", 7, 500)], controller, &Options::default());
        (result.applications[0].execution_ns, result.planned.map(|planned| planned.taken_up))
    };
    let (plain, empty) = (ends(None), ends(Some(planner(|_, _, _| {}))));
    assert_eq!((plain.1, empty.1), (None, Some(1)));
    assert!(plain.0.abs_diff(empty.0) < 20 * MS, "{} and {}", plain.0, empty.0);
}

fn credits() -> impl Strategy<Value = Credit> {
    prop::array::uniform4(prop::sample::select(vec![0, MS, 50 * MS, 320 * MS])).prop_map(
        |[time_ns, processor_ns, llc_ns, node_ns]| Credit {
            time_ns,
            processor_ns,
            llc_ns,
            node_ns,
            fragment_ns: 0,
        },
    )
}

/// How far tasks of a container that always want a CPU are apart at most, while all of them run. Each is an
/// application, for its CPU time to be sampled.
fn apart_ns(policy: &Policy, parts: &[Vec<usize>], tasks: usize, controller: Option<Controller>) -> u64 {
    let container = |(index, part): (usize, &Vec<usize>)| {
        let cpus = part.iter().fold(0, |cpus, cpu| cpus | 1 << cpu);
        let task = move |task| Application {
            cpus: CpuSet::of_word(cpus),
            ..spinners(&format!("{index}-{task}"), 1, 3_000)
        };
        (0..tasks + part.len()).map(task).collect::<Vec<_>>()
    };
    let containers: Vec<_> = parts.iter().enumerate().map(container).collect();
    let sizes: Vec<usize> = containers.iter().map(Vec::len).collect();
    let options = Options { sample_ns: 50 * MS, ..Options::default() };
    let result = run(policy, containers.into_iter().flatten().collect(), controller, &options);
    let mut apart_ns = 0;
    let mut first = 0;
    for size in sizes {
        let members = first..first + size;
        first += size;
        let end_ns = result.applications[members.clone()].iter().map(|one| one.execution_ns).min().unwrap();
        for sample in result.samples.iter().filter(|sample| sample.at_ns < end_ns) {
            let had = &sample.cpu_ns[members.clone()];
            apart_ns = apart_ns.max(had.iter().max().unwrap() - had.iter().min().unwrap());
        }
    }
    apart_ns
}

/// By their credits and three slices, as on a machine without masks (`properties.rs`).
fn bound_ns(policy: &Policy) -> u64 {
    let machine = Machine::load("sgi-4d340").unwrap();
    let tick_ns = machine.kernel.tick_ns;
    policy.on(machine.move_costs()).credit.sum_ns() + 3 * (policy.quantum_ns.max(tick_ns) + tick_ns)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// In a part whose CPUs are those of a container, its tasks fall behind each other as little as on a
    /// machine of their own.
    #[test]
    fn in_a_container_that_is_a_part_no_task_falls_behind_by_more_than_its_credits_and_a_slice(
        credit in credits(),
        quantum_ms in prop::sample::select(vec![1_u64, 10, 30, 100]),
        cut in 1..4_usize,
        tasks in 1..6_usize,
    ) {
        let policy = Policy {
            quantum_ns: quantum_ms * MS,
            credit,
            discipline: Discipline::Fair,
            ..Policy::affinity(0, 0)
        };
        let parts = vec![(0..cut).collect::<Vec<_>>(), (cut..4).collect()];
        let planned = parts.clone();
        let controller = planner(move |_, plan, _| plan.parts.clone_from(&planned));
        let (apart_ns, bound_ns) = (apart_ns(&policy, &parts, tasks, Some(controller)), bound_ns(&policy));
        prop_assert!(apart_ns <= bound_ns, "{apart_ns} ns behind, bound {bound_ns}");
    }
}

/// What the planner is for; and that the property above can fail.
#[test]
fn the_planner_of_masks_has_the_tasks_of_a_container_share_its_cpus() {
    let parts = [vec![0, 1, 2], vec![3]];
    let masks = Controller::named("masks");
    let until_it_counts_ns = 3 * Controller::STEP.as_nanos() as u64;
    let apart_ns = |controller| apart_ns(&fair(), &parts, 2, controller);
    let (planned_ns, plain_ns) = (apart_ns(masks), apart_ns(None));
    assert!(planned_ns < until_it_counts_ns + bound_ns(&fair()), "{planned_ns} ns");
    assert!(plain_ns > 1_000 * MS, "{plain_ns} ns");
}
