//! What the planners of parallel programs look at.

use crate::snapshot::{Asks, Members, Snapshot, State, Task};
use std::collections::{BTreeMap, BTreeSet};

/// Programs that asked for the same, and everybody else.
#[derive(Default)]
pub(super) struct Programs {
    /// The tasks of each, ascending; none without.
    pub tids: BTreeMap<Members, Vec<i32>>,
    /// Tasks of nobody's that run or could, and whether one of them waits.
    pub others: usize,
    pub others_wait: bool,
    /// The groups of all tasks of nobody's.
    pub groups_of_others: BTreeSet<u64>,
}

impl Programs {
    pub fn of(snapshot: &Snapshot, asks: Asks) -> Self {
        let asked: BTreeSet<Members> = snapshot
            .programs
            .iter()
            .filter(|program| program.asks == asks)
            .map(|program| program.members)
            .collect();
        let mut programs = Self::default();
        for task in &snapshot.tasks {
            match owner(&asked, task) {
                Some(members) => programs.tids.entry(members).or_default().push(task.tid),
                None => {
                    programs.others += usize::from(task.is_runnable());
                    programs.others_wait |= task.state == State::Waiting;
                    programs.groups_of_others.insert(task.group);
                }
            }
        }
        programs.tids.values_mut().for_each(|tids| tids.sort_unstable());
        programs
    }
}

/// Whose a task is; its process goes before its group.
fn owner(asked: &BTreeSet<Members>, task: &Task) -> Option<Members> {
    [Members::Process(task.process), Members::Group(task.group)]
        .into_iter()
        .find(|members| asked.contains(members))
}
