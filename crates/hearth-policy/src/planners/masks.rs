//! Parts the machine as the masks of its tasks do, so that no CPU looks for work where it may not take it.
//!
//! Container hosts give each container a set of CPUs. Where such sets cut the machine, so does this planner:
//! CPUs that belong to the same sets share a part, so that each set is a union of whole parts.
//!
//! ```text
//! CPUs        0 1 2 3 4 5 6 7
//! container a |-----|
//! container b     |-------|
//! parts       |0| |1| |-2-| |3|        0 and 1, 2 and 3, 4 and 5, 6 and 7
//! ```
//!
//! A set counts from when several of its tasks could run at once, in each of a few steps, until no task at
//! all has had it for some seconds: parts do not follow every moment's load. Sets of one CPU and of all
//! CPUs cut nothing. Where there would be more parts than a machine can have, it stays undivided.

use super::Planner;
use crate::plan::{MAX_PARTS, Plan};
use crate::snapshot::{CpuSet, Snapshot};
use std::collections::BTreeMap;

/// So many tasks of a set that can run at once make it count.
const SEVERAL: usize = 2;

/// In so many steps, one after the other.
const STEPS_TO_COUNT: u32 = 3;

/// A set that no task has had for so many steps counts no more.
const STEPS_TO_FORGET: u32 = 50;

/// See the module.
#[derive(Debug, Default)]
pub struct Masks {
    seen: BTreeMap<CpuSet, Seen>,
}

/// What is remembered of a set of CPUs.
#[derive(Debug, Default)]
struct Seen {
    counts: bool,
    /// Steps up to the last one in which several of its tasks could run.
    crowded: u32,
    /// Steps since a task had it.
    absent: u32,
}

impl Planner for Masks {
    fn name(&self) -> &'static str {
        super::MASKS
    }

    fn plan(&mut self, snapshot: &Snapshot, plan: &mut Plan) {
        self.look(&runnable_by_set(snapshot));
        let sets: Vec<&CpuSet> =
            self.seen.iter().filter(|(_, seen)| seen.counts).map(|(cpus, _)| cpus).collect();
        let parts = parts(snapshot, &sets);
        if (2..=MAX_PARTS).contains(&parts.len()) {
            plan.parts = parts;
        }
    }
}

impl Masks {
    fn look(&mut self, runnable: &BTreeMap<CpuSet, usize>) {
        for (&cpus, &runnable) in runnable {
            let seen = self.seen.entry(cpus).or_default();
            seen.absent = 0;
            seen.crowded = if runnable >= SEVERAL { seen.crowded.saturating_add(1) } else { 0 };
            seen.counts |= seen.crowded >= STEPS_TO_COUNT;
        }
        self.seen.retain(|cpus, seen| {
            if !runnable.contains_key(cpus) {
                seen.crowded = 0;
                seen.absent += 1;
            }
            seen.absent < STEPS_TO_FORGET
        });
    }
}

/// The sets that cut the machine and that tasks have, each with how many of its tasks could run.
fn runnable_by_set(snapshot: &Snapshot) -> BTreeMap<CpuSet, usize> {
    let mut runnable: Vec<Option<usize>> = vec![None; snapshot.masks.len()];
    for task in &snapshot.tasks {
        if let Some(count) = runnable.get_mut(task.mask) {
            *count = Some(count.unwrap_or(0) + usize::from(task.is_runnable()));
        }
    }
    let mut sets = BTreeMap::new();
    for (mask, count) in snapshot.masks.iter().zip(runnable) {
        let there = snapshot.cpus.iter().map(|cpu| cpu.number).filter(|cpu| mask.has(*cpu));
        let cpus: CpuSet = there.collect();
        if let Some(count) = count.filter(|_| cpus.len() > 1 && cpus.len() < snapshot.cpus.len()) {
            *sets.entry(cpus).or_default() += count;
        }
    }
    sets
}

/// CPUs that belong to the same sets, in the order of their first ones.
fn parts(snapshot: &Snapshot, sets: &[&CpuSet]) -> Vec<Vec<usize>> {
    let mut parts: BTreeMap<Vec<bool>, Vec<usize>> = BTreeMap::new();
    for cpu in &snapshot.cpus {
        let belongs = sets.iter().map(|set| set.has(cpu.number)).collect();
        parts.entry(belongs).or_default().push(cpu.number);
    }
    let mut parts: Vec<Vec<usize>> = parts.into_values().collect();
    parts.sort_unstable();
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snapshot::{State, Task};

    /// 8 CPUs; so many tasks of each mask, all in the same state.
    fn snapshot(state: State, tasks: &[(&[usize], usize)]) -> Snapshot {
        let mut snapshot = Snapshot::new(0, (0..8).map(|cpu| (cpu, cpu / 4, 0)));
        for (cpus, count) in tasks {
            let mask = snapshot.mask(cpus.iter().copied().collect());
            (0..*count).for_each(|_| snapshot.add(Task { mask, state, ..Task::default() }));
        }
        snapshot
    }

    fn after(masks: &mut Masks, steps: u32, snapshot: &Snapshot) -> Vec<Vec<usize>> {
        let mut plan = Plan::default();
        (0..steps).for_each(|_| {
            plan = Plan::default();
            masks.plan(snapshot, &mut plan);
        });
        plan.parts
    }

    const A: &[usize] = &[0, 1, 2, 3];
    const B: &[usize] = &[2, 3, 4, 5];

    #[test]
    fn cpus_of_the_same_sets_share_a_part() {
        let two = snapshot(State::Waiting, &[(A, 2), (B, 2)]);
        let parts = after(&mut Masks::default(), STEPS_TO_COUNT, &two);
        assert_eq!(parts, [[0, 1], [2, 3], [4, 5], [6, 7]]);
    }

    #[test]
    fn sets_of_one_cpu_or_of_all_and_of_single_tasks_cut_nothing() {
        let tasks = snapshot(State::Running, &[(&[3], 9), (&[0, 1, 2, 3, 4, 5, 6, 7, 8], 9), (A, 1)]);
        assert!(after(&mut Masks::default(), 10, &tasks).is_empty());
    }

    #[test]
    fn a_set_counts_when_several_of_its_tasks_could_run_in_several_steps() {
        let mut masks = Masks::default();
        let (loaded, single) = (snapshot(State::Waiting, &[(A, 2)]), snapshot(State::Waiting, &[(A, 1)]));
        assert!(after(&mut masks, STEPS_TO_COUNT - 1, &loaded).is_empty());
        assert!(after(&mut masks, 1, &single).is_empty());
        assert!(after(&mut masks, STEPS_TO_COUNT - 1, &loaded).is_empty());
        assert_eq!(after(&mut masks, 1, &loaded).len(), 2);
    }

    #[test]
    fn parts_stay_while_a_task_has_the_set_and_go_some_time_after_the_last_one() {
        let mut masks = Masks::default();
        assert_eq!(after(&mut masks, STEPS_TO_COUNT, &snapshot(State::Running, &[(A, 2)])).len(), 2);
        assert_eq!(after(&mut masks, 500, &snapshot(State::Asleep, &[(A, 1)])).len(), 2);
        let none = snapshot(State::Running, &[]);
        assert_eq!(after(&mut masks, STEPS_TO_FORGET - 1, &none).len(), 2);
        assert!(after(&mut masks, 1, &none).is_empty());
        assert!(masks.seen.is_empty());
    }

    #[test]
    fn a_machine_that_would_be_cut_too_often_stays_undivided() {
        let mut snapshot = Snapshot::new(0, (0..256).map(|cpu| (cpu, 0, 0)));
        for first in (0..256).step_by(2) {
            let mask = snapshot.mask([first, first + 1].into());
            (0..2).for_each(|_| snapshot.add(Task { mask, state: State::Waiting, ..Task::default() }));
        }
        assert!(after(&mut Masks::default(), STEPS_TO_COUNT, &snapshot).is_empty());
    }
}
