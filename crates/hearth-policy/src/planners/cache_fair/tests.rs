use super::machine::{BEST_EFFORT, FAIR, Machine, NEITHER, STEP_CYCLES, program};
use super::*;
use crate::isolation::Why;
use crate::plan::Target;
use crate::snapshot::Run;

/// A planner that knows what the class cache-fair would do: so many instructions for each cycle.
pub fn knowing(fair_ipc: f64, rule: Rule) -> CacheFair {
    let estimate = Estimate { fair_ipc, confidence: Confidence::Strong, ..Estimate::default() };
    CacheFair::new(Bus::default(), rule).with_estimates([(FAIR, estimate)].into())
}

fn machine(ipc: f64, beside: &[u64]) -> Machine {
    let mut programs = vec![program(FAIR, 0, ipc)];
    programs.extend(beside.iter().map(|group| program(*group, 0, 1.0)));
    programs.push(program(NEITHER, 1, 1.0));
    Machine::new(knowing(1.0, Rule::default()), programs)
}

fn standing(machine: &Machine, tid: i32) -> Standing {
    machine.planner.standings().find(|standing| standing.tid == tid).unwrap()
}

#[test]
fn what_a_slow_task_gains_best_effort_tasks_lose_evenly() {
    let mut machine = machine(0.8, &[BEST_EFFORT, BEST_EFFORT]);
    machine.run(20);
    assert_eq!(machine.share(1), 1250);
    assert_eq!((machine.share(2), machine.share(3)), (875, 875));
    assert_eq!(machine.plan.tasks[&1].slice_permille, 1250);
    let standing = standing(&machine, 1);
    assert_eq!((standing.share_permille, standing.fair_ipc), (1250, 1.0));
    assert!((standing.ipc - 0.8).abs() < 1e-6, "{standing:?}");
    let nominal = 20.0 * STEP_CYCLES / 3.0;
    let given = machine.programs[0].cycles - nominal;
    assert!((standing.given_cycles as f64 - given).abs() < 0.01 * nominal, "{standing:?} {given}");
}

#[test]
fn one_pays_for_all_if_the_rule_says_so() {
    let mut machine = machine(0.8, &[BEST_EFFORT, BEST_EFFORT]);
    machine.planner = knowing(1.0, Rule { spread: Spread::One, ..Rule::default() });
    machine.run(20);
    assert_eq!([1, 2, 3].map(|tid| machine.share(tid)), [1250, 750, 1000]);
}

#[test]
fn what_a_fast_task_loses_best_effort_tasks_gain() {
    let mut machine = machine(1.25, &[BEST_EFFORT]);
    machine.run(20);
    assert_eq!((machine.share(1), machine.share(2)), (800, 1200));
}

#[test]
fn a_heavy_task_takes_from_light_ones_by_weight_and_no_more_than_they_can_lose() {
    let mut machine = machine(0.8, &[BEST_EFFORT, NEITHER]);
    machine.programs[0].weight = 400;
    machine.run(20);
    // Half of 100 is an eighth of 400.
    assert_eq!([1, 2, 3].map(|tid| machine.share(tid)), [1125, 500, 1000]);
}

#[test]
fn without_best_effort_tasks_nothing_is_gained_and_a_loss_falls_to_whoever_is_there() {
    let mut slow = machine(0.8, &[NEITHER]);
    slow.run(20);
    assert_eq!(slow.plan, Plan::default());
    let mut fast = machine(1.25, &[NEITHER]);
    fast.run(20);
    let (done, fair) = fast.done(1, 1.0);
    assert!((done / fair - 1.0).abs() < 0.01, "{done} of {fair}");
    // Two thirds of the weight for 0.4 of the CPU.
    assert_eq!(fast.plan.tasks.keys().collect::<Vec<_>>(), [&1]);
    assert!((660..=674).contains(&fast.share(1)), "{}", fast.share(1));
}

#[test]
fn nobody_is_compensated_who_is_alone_and_what_that_cost_is_not_owed() {
    let mut machine = machine(0.8, &[]);
    machine.run(20);
    assert_eq!(machine.plan, Plan::default());
    machine.programs.push(program(BEST_EFFORT, 0, 1.0));
    // The first step beside another still counts as one alone.
    machine.run(2);
    assert!((1365..=1385).contains(&machine.share(1)), "{}", machine.share(1));
}

#[test]
fn who_suffered_for_long_is_not_paid_for_long() {
    let mut machine = machine(0.4, &[BEST_EFFORT]);
    machine.run(100);
    assert_eq!((machine.share(1), machine.share(2)), (1500, 500));
    machine.programs[0].ipc = 1.0;
    machine.run(7);
    assert!((990..=1010).contains(&machine.share(1)), "{}", machine.share(1));
}

#[test]
fn gains_and_losses_cancel_in_those_who_would_pay_both() {
    let mut machine = machine(0.8, &[FAIR, BEST_EFFORT]);
    machine.programs[1].ipc = 1.0 / 0.75;
    machine.run(20);
    assert_eq!([1, 2, 3].map(|tid| machine.share(tid)), [1250, 750, 1000]);
}

#[test]
fn two_that_want_more_than_there_is_share_it() {
    let mut machine = machine(0.6, &[FAIR, BEST_EFFORT]);
    machine.programs[1].ipc = 0.6;
    machine.run(50);
    assert_eq!([1, 2, 3].map(|tid| machine.share(tid)), [1250, 1250, 500]);
}

#[test]
fn what_earlier_planners_said_of_a_task_stays() {
    let mut snapshot = Snapshot::new(0, [(0, 0, 0)]);
    snapshot.classes = [(FAIR, Class::CacheFair), (BEST_EFFORT, Class::BestEffort)].into();
    let mask = snapshot.mask([0].into());
    for (tid, group) in [(1, FAIR), (2, BEST_EFFORT)] {
        let state = crate::snapshot::State::Running;
        snapshot.add(Task { tid, group, weight: 100, mask, state, ..Task::default() });
    }
    let run = Run { tid: 1, group: FAIR, cycles: 100_000_000, instructions: 80_000_000, ..Run::default() };
    snapshot.runs = vec![run];
    let mut plan = Plan { parts: vec![vec![0]], ..Plan::default() };
    plan.tasks.insert(1, Target::at_home(0));
    plan.groups.insert(BEST_EFFORT, Target { part: Some(0), ..Target::default() });
    knowing(1.0, Rule::default()).plan(&snapshot, &mut plan);
    let [own, other] = [1, 2].map(|tid| plan.tasks[&tid]);
    assert!(own.share_permille > 1000 && own.home == Some(0), "{own:?}");
    assert!(other.share_permille < 1000 && other.part == Some(0), "{other:?}");
}

#[test]
fn a_task_of_the_same_id_is_another_if_it_has_run_less() {
    let mut machine = machine(0.8, &[BEST_EFFORT]);
    machine.run(10);
    assert!(machine.share(1) > 1000);
    machine.programs[0] = program(FAIR, 0, 1.0);
    machine.programs[0].cycles = -STEP_CYCLES;
    machine.run(1);
    assert_eq!((machine.share(1), standing(&machine, 1).given_cycles), (1000, 0));
    machine.programs[0].group = NEITHER;
    machine.run(1);
    assert_eq!(machine.planner.standings().count(), 0);
}

/// A task whose misses follow a line with its co-runner's: 0.002 + x / 2, so that 0.004 are fair, at 100 cycles
/// each; it takes one cycle for each instruction beside them.
fn sampled(rule: Rule) -> Machine {
    let planner = CacheFair::new(Bus { memory_cycles: 100.0, transfer_cycles: 0.0 }, rule);
    let programs = vec![program(FAIR, 0, 1.0), program(BEST_EFFORT, 0, 1.0), program(NEITHER, 1, 1.0)];
    Machine::new(planner, programs)
}

fn beside(machine: &mut Machine, others: f64, least: f64, steps: usize) {
    let misses = least + others / 2.0;
    machine.programs[0].misses = (misses, others);
    machine.programs[0].ipc = 1.0 - 100.0 * misses;
    machine.run(steps);
}

fn sample(machine: &mut Machine, least: f64) {
    (1..=20).for_each(|n| beside(machine, 0.0005 * f64::from(n % 7), least, 1));
}

#[test]
fn a_task_is_sampled_then_scheduled() {
    let mut machine = sampled(Rule::default());
    beside(&mut machine, 0.002, 0.002, 20);
    let before = standing(&machine, 1);
    assert_eq!((before.confidence, machine.share(1)), (Confidence::Weak(Why::SimilarCoRunners), 1000));
    sample(&mut machine, 0.002);
    let after = standing(&machine, 1);
    assert_eq!(after.confidence, Confidence::Strong);
    assert!((after.fair_ipc - 0.6).abs() < 1e-3, "{after:?}");
    beside(&mut machine, 0.006, 0.002, 30);
    assert_eq!((machine.share(1), machine.share(2)), (1200, 800));
}

#[test]
fn an_old_estimate_holds_until_a_new_one_is_strong() {
    let mut machine = sampled(Rule::default());
    sample(&mut machine, 0.002);
    // Sampled anew after a billion instructions, beside what is always the same.
    beside(&mut machine, 0.006, 0.002, 100);
    assert!(machine.programs[0].instructions > 2e9);
    assert_eq!((standing(&machine, 1).confidence, machine.share(1)), (Confidence::Strong, 1200));
}

/// The steps that it takes until a change of the program is known.
fn steps_to_know(rule: Rule) -> usize {
    let mut machine = sampled(rule);
    sample(&mut machine, 0.002);
    assert!((standing(&machine, 1).fair_ipc - 0.6).abs() < 1e-3);
    let steps = (0..100).find(|_| {
        sample(&mut machine, 0.001);
        (standing(&machine, 1).fair_ipc - 0.8).abs() < 1e-3
    });
    steps.unwrap() * 20
}

#[test]
fn a_task_is_sampled_anew_after_a_billion_instructions_or_as_soon_as_its_misses_leave_the_line() {
    let late = steps_to_know(Rule { resample_instructions: 5_000_000_000, ..Rule::default() });
    let usual = steps_to_know(Rule::default());
    let soon = steps_to_know(Rule { phases: true, ..Rule::default() });
    assert!(soon < usual && usual < late, "{soon} {usual} {late}");
}

/// A task whose estimate is acted on, and that then takes so many times its cycles for each instruction: the shares
/// that it has in the next second.
fn shares_in_another_phase(phases: bool, times: f64) -> Vec<u32> {
    let mut machine = sampled(Rule { phases, ..Rule::default() });
    sample(&mut machine, 0.002);
    beside(&mut machine, 0.006, 0.002, 30);
    assert_eq!(machine.share(1), 1200);
    machine.programs[0].ipc /= times;
    let mut share = || {
        machine.run(1);
        machine.share(1)
    };
    (0..10).map(|_| share()).collect()
}

#[test]
fn a_task_in_another_phase_has_its_own_share_until_it_is_known_anew() {
    for times in [0.5, 1.5] {
        let known = shares_in_another_phase(true, times);
        assert_eq!(known[5..], [1000; 5], "{times}: {known:?}");
        let stale = shares_in_another_phase(false, times);
        assert!(stale[5..].iter().all(|share| share.abs_diff(1000) > 200), "{times}: {stale:?}");
    }
    // What differs by less than an estimate may be off is the same phase.
    let same = shares_in_another_phase(true, 1.05);
    assert!(same.iter().all(|share| *share > 1100), "{same:?}");
}

#[test]
fn samples_of_two_phases_are_not_mixed() {
    let known = |phases| {
        let mut machine = sampled(Rule { phases, ..Rule::default() });
        // Nine samples of one phase, and then those of another, which takes half the cycles.
        beside(&mut machine, 0.002, 0.002, 4);
        for n in 1..=20 {
            let others = 0.0005 * f64::from(n % 7);
            beside(&mut machine, others, 0.002, 0);
            machine.programs[0].ipc *= 2.0;
            machine.run(1);
        }
        standing(&machine, 1).fair_ipc
    };
    assert!((known(true) - 1.2).abs() < 0.01, "{}", known(true));
    assert!((known(false) - 1.2).abs() > 0.01, "{}", known(false));
}
