//! What holds for the plans of every planner, whatever it is told.

#![allow(clippy::unwrap_used)]

use hearth_policy::snapshot::{CpuSet, State, Task};
use hearth_policy::{Controller, Plan, Snapshot, planners};
use proptest::prelude::*;

/// A machine with holes between its CPUs' numbers, and tasks of a few masks.
fn snapshot() -> impl Strategy<Value = Snapshot> {
    let cpus = prop::collection::btree_map(0_usize..80, 0_usize..4, 1..40);
    let masks = prop::collection::vec(prop::collection::btree_set(0_usize..80, 1..20), 1..6);
    let tasks = prop::collection::vec((any::<u8>(), 0_usize..80, 0_u8..3, 0_u64..4), 0..40);
    (any::<u32>(), cpus, masks, tasks).prop_map(|(at_ns, cpus, masks, tasks)| {
        let cpus = cpus.into_iter().map(|(cpu, domain)| (cpu, domain, domain / 2));
        let mut snapshot = Snapshot::new(u64::from(at_ns), cpus);
        for (tid, (mask, cpu, state, group)) in (1..).zip(tasks) {
            let state = [State::Running, State::Waiting, State::Asleep][usize::from(state)];
            let mask = snapshot.mask(masks[usize::from(mask) % masks.len()].iter().copied().collect());
            snapshot.add(Task { tid, process: tid, group, weight: 100, cpu, mask, state, ..Task::default() });
        }
        snapshot
    })
}

/// Snapshots one after the other, each as often as it takes to be believed.
fn history() -> impl Strategy<Value = Vec<Snapshot>> {
    prop::collection::vec((snapshot(), 1_usize..6), 1..6)
        .prop_map(|parts| parts.into_iter().flat_map(|(each, times)| vec![each; times]).collect())
}

fn plans(planner: &str, history: &[Snapshot]) -> Vec<Plan> {
    let mut controller = Controller::named(planner).unwrap();
    history.iter().map(|snapshot| controller.step(snapshot).unwrap()).collect()
}

proptest! {
    #[test]
    fn every_plan_can_be_followed_and_follows_from_what_was_told(history in history()) {
        let plain = planners::PLANNERS.iter().filter(|kind| matches!(kind.make, planners::Make::Plain(_)));
        for planner in plain.map(|kind| kind.name) {
            let first = plans(planner, &history);
            prop_assert_eq!(&first, &plans(planner, &history));
            for (plan, snapshot) in first.iter().zip(&history) {
                prop_assert_eq!(plan.check(snapshot), Ok(()));
            }
        }
    }

    #[test]
    fn a_mask_that_counts_is_a_union_of_whole_parts(snapshot in snapshot()) {
        let plan = plans("masks", &vec![snapshot.clone(); 3]).pop().unwrap();
        for mask in 0..snapshot.masks.len() {
            let of = snapshot.tasks.iter().filter(|task| task.mask == mask && task.is_runnable());
            let there = |cpu: &usize| snapshot.cpus.iter().any(|other| other.number == *cpu);
            let cpus: CpuSet = snapshot.masks[mask].iter().filter(there).collect();
            if of.count() < 2 || cpus.len() < 2 || plan.parts.is_empty() {
                continue;
            }
            for part in &plan.parts {
                let inside = part.iter().filter(|cpu| cpus.has(**cpu)).count();
                prop_assert!(inside == 0 || inside == part.len(), "{:?} in {:?}", cpus, plan.parts);
            }
        }
    }

    #[test]
    fn a_task_can_run_in_some_part(snapshot in snapshot()) {
        let plan = plans("masks", &vec![snapshot.clone(); 3]).pop().unwrap();
        for task in &snapshot.tasks {
            let mask = &snapshot.masks[task.mask];
            let is_there = snapshot.cpus.iter().any(|cpu| mask.has(cpu.number));
            let is_served = plan.parts.iter().flatten().any(|cpu| mask.has(*cpu));
            prop_assert!(plan.parts.is_empty() || is_served == is_there);
        }
    }
}
