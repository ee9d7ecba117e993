//! What holds of every plan, whatever counters say.

use super::machine::{BEST_EFFORT, FAIR, Machine, NEITHER, program};
use super::tests::knowing;
use super::*;
use crate::snapshot::{Run, State};
use proptest::prelude::*;

const CPUS: usize = 4;
const MASKS: [&[usize]; 5] = [&[0], &[1], &[0, 1], &[2, 3], &[0, 1, 2, 3]];

/// A task as its group, CPU, mask, weight and state; and its run, as instructions for a hundred cycles.
type Given = (u64, usize, usize, u32, bool, u64);

fn steps() -> impl Strategy<Value = Vec<Vec<Given>>> {
    let task = (1_u64..4, 0..CPUS, 0..MASKS.len(), 1_u32..1000, any::<bool>(), 10_u64..400);
    prop::collection::vec(prop::collection::vec(task, 0..12), 1..12)
}

fn snapshot(tasks: &[Given]) -> Snapshot {
    let mut snapshot = Snapshot::new(0, (0..CPUS).map(|cpu| (cpu, 0, 0)));
    snapshot.classes = [(FAIR, Class::CacheFair), (BEST_EFFORT, Class::BestEffort)].into();
    for (tid, &(group, cpu, mask, weight, sleeps, ipc)) in (1..).zip(tasks) {
        let mask = snapshot.mask(MASKS[mask].iter().copied().collect());
        let state = if sleeps { State::Asleep } else { State::Waiting };
        snapshot.add(Task { tid, group, cpu, mask, weight, state, ..Task::default() });
        let (cycles, instructions) = (100_000_000, 1_000_000 * ipc);
        snapshot.runs.push(Run { tid, group, cpu, cycles, instructions, ..Run::default() });
    }
    snapshot
}

fn factor(plan: &Plan, task: &Task) -> f64 {
    plan.tasks.get(&task.tid).map_or(1.0, |target| f64::from(target.share_permille) / 1000.0)
}

fn rules() -> impl Strategy<Value = Rule> {
    let spread = prop_oneof![Just(Spread::All), Just(Spread::One)];
    (spread, 0_u32..1200, any::<bool>()).prop_map(|(spread, most_lost_permille, phases)| Rule {
        spread,
        most_lost_permille,
        phases,
        ..Rule::default()
    })
}

proptest! {
    #[test]
    fn what_some_gain_others_lose_within_bounds(steps in steps(), rule in rules()) {
        let mut planner = knowing(1.0, rule);
        let lost = f64::from(rule.most_lost_permille.min(900)) / 1000.0;
        for tasks in steps {
            let snapshot = snapshot(&tasks);
            let mut plan = Plan::default();
            planner.plan(&snapshot, &mut plan);
            prop_assert_eq!(plan.check(&snapshot), Ok(()));
            let of = |group| snapshot.tasks.iter().filter(move |task| task.group == group);
            let payers: Vec<&Task> = of(BEST_EFFORT).filter(|task| task.is_runnable()).collect();
            let has_payers =
                |task: &&Task| payers.iter().any(|payer| snapshot.masks[payer.mask].has(task.cpu));
            let change = |task: &Task| f64::from(task.weight) * (factor(&plan, task) - 1.0);
            let gained: f64 = of(FAIR).filter(has_payers).map(change).sum();
            let paid: f64 = payers.iter().map(|task| change(task)).sum();
            // Thousandths are whole: half a one of the heaviest is left.
            let heaviest = payers.iter().map(|task| task.weight).max().unwrap_or(0);
            prop_assert!((gained + paid).abs() <= f64::from(heaviest) / 1900.0, "{} {}", gained, paid);
            for task in &snapshot.tasks {
                let factor = factor(&plan, task);
                let least = if task.group == FAIR && !has_payers(&task) { 0.1 } else { 1.0 - lost };
                prop_assert!(factor > least - 1e-9, "{:?} {}", task, factor);
                prop_assert!(factor <= 1.0 || task.group != FAIR || has_payers(&task));
                prop_assert!(factor == 1.0 || task.group == FAIR || payers.contains(&task));
            }
        }
    }

    #[test]
    fn a_machine_whose_cpus_have_a_task_each_compensates_nothing(
        ipc in prop::collection::vec(prop::collection::vec(10_u64..400, CPUS), 1..10),
    ) {
        let mut planner = knowing(1.0, Rule::default());
        for ipc in ipc {
            let tasks: Vec<Given> =
                (0..CPUS).map(|cpu| (cpu as u64 % 2 + 1, cpu, 4, 100, false, ipc[cpu])).collect();
            let mut plan = Plan::default();
            planner.plan(&snapshot(&tasks), &mut plan);
            prop_assert_eq!(plan, Plan::default());
        }
    }

    #[test]
    fn any_counters_make_a_plan_that_can_be_followed_and_always_the_same(
        steps in steps(),
        runs in prop::collection::vec((1_i32..12, any::<[u64; 6]>(), 0_u32..64, 0_u32..5), 0..200),
        fair_ipc: f64,
        phases: bool,
    ) {
        let rule = Rule { phases, adjust_instructions: 1000, resample_instructions: 100_000, ..Rule::default() };
        let estimator = Estimator { least_instructions: 0, ..Estimator::default() };
        let mut planners = [
            CacheFair::sampling(estimator, rule),
            CacheFair::sampling(estimator, rule),
            knowing(fair_ipc, rule),
        ];
        let mut runs = runs.chunks(20).cycle();
        for tasks in steps {
            let mut snapshot = snapshot(&tasks);
            for &(tid, counts, shift, others) in runs.next().into_iter().flatten() {
                let [cycles, instructions, misses, transfers, others_misses, others_transfers] =
                    counts.map(|count| count >> shift);
                let run = Run { tid, group: FAIR, cycles, instructions, misses, transfers, ..Run::default() };
                snapshot.runs.push(Run { others, others_misses, others_transfers, ..run });
            }
            let plans = planners.each_mut().map(|planner| {
                let mut plan = Plan::default();
                planner.plan(&snapshot, &mut plan);
                plan
            });
            for plan in &plans {
                prop_assert_eq!(plan.check(&snapshot), Ok(()));
            }
            prop_assert_eq!(&plans[0], &plans[1]);
            for standing in planners.iter().flat_map(CacheFair::standings) {
                prop_assert!(standing.ipc.is_finite(), "{:?}", standing);
            }
        }
    }

    /// At 1 GHz, with a co-runner that slows the principal down, or leaves it too much of the cache. A period
    /// takes two steps at most, and at the bounds makes up for one: one to see what is lacking, one to give it.
    #[test]
    fn within_half_a_second_a_task_has_done_what_it_would_with_a_fair_cache(
        fair_ipc in 0.8..2.5,
        slower in -0.25..0.15,
        weight in 80_u32..125,
    ) {
        let mut programs = vec![program(FAIR, 0, fair_ipc * (1.0 - slower)), program(BEST_EFFORT, 0, 1.0)];
        programs[1].weight = weight;
        programs.push(program(NEITHER, 1, 1.0));
        let mut machine = Machine::new(knowing(fair_ipc, Rule::default()), programs);
        machine.run(4);
        for _ in 5..60 {
            machine.run(1);
            let (done, fair) = machine.done(1, fair_ipc);
            prop_assert!((done / fair - 1.0).abs() < 0.01, "{} after {} steps", done / fair, machine.steps);
        }
    }

    #[test]
    fn two_fair_tasks_that_share_a_payer_both_come_to_what_is_fair(
        slower in (-0.2..0.15, -0.2..0.15),
        same_cpu: bool,
    ) {
        let (one, other): (f64, f64) = slower;
        let mut programs =
            vec![program(FAIR, 0, 1.0 - one), program(FAIR, usize::from(!same_cpu), 1.0 - other)];
        programs.extend([0, 0, 1, 1].map(|cpu| program(BEST_EFFORT, cpu, 1.0)));
        let mut machine = Machine::new(knowing(1.0, Rule::default()), programs);
        machine.run(40);
        for (tid, slower) in [(1, one), (2, other)] {
            let (done, fair) = machine.done(tid, 1.0);
            prop_assert!((done / fair - 1.0).abs() < 0.01, "{} {}", tid, done / fair);
            let wanted = 1000.0 / (1.0 - slower);
            let share = f64::from(machine.share(tid as i32));
            prop_assert!((share - wanted).abs() < 5.0, "{} {} {}", tid, share, wanted);
        }
    }
}
