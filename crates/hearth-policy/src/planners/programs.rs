//! What the planners of parallel programs look at.

use crate::snapshot::{Asks, Snapshot, State};
use std::collections::{BTreeMap, BTreeSet};

/// Programs that asked for the same, and everybody else.
#[derive(Default)]
pub(super) struct Programs {
    /// The tasks of each, by its id, ascending; none without.
    pub tids: BTreeMap<u32, Vec<i32>>,
    /// Tasks of everybody else that run or could.
    pub others: usize,
    /// Whether one of them waits.
    pub others_wait: bool,
    /// The groups of all tasks of everybody else.
    pub groups_of_others: BTreeSet<u64>,
}

impl Programs {
    pub fn of(snapshot: &Snapshot, asks: Asks) -> Self {
        let asked = snapshot.programs.iter().filter(|program| program.asks == asks);
        let owners: BTreeMap<i32, u32> = asked
            .flat_map(|program| program.processes.iter().map(|process| (*process, program.id)))
            .collect();
        let mut programs = Self::default();
        for task in &snapshot.tasks {
            match owners.get(&task.process) {
                Some(id) => programs.tids.entry(*id).or_default().push(task.tid),
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
