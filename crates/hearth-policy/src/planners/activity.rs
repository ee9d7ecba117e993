//! Which tasks of a program run, and which only wait for others.

use crate::snapshot::Snapshot;
use std::collections::BTreeMap;

/// A task counts from when it could run in so many steps, one after the other.
const STEPS_TO_JOIN: u32 = 2;

/// A task that counts does so no more when it could run in none of so many steps: five seconds.
pub(super) const STEPS_TO_LEAVE: u32 = 50;

/// What is remembered of tasks.
#[derive(Debug, Default)]
pub(super) struct Activity {
    tasks: BTreeMap<i32, Seen>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    counts: bool,
    /// Steps in which it could run, up to the last one, and those since.
    busy: u32,
    asleep: u32,
}

impl Activity {
    /// Leaves only tasks that count.
    pub fn follow(&mut self, snapshot: &Snapshot, programs: &mut BTreeMap<u32, Vec<i32>>) {
        let runnable: BTreeMap<i32, bool> =
            snapshot.tasks.iter().map(|task| (task.tid, task.is_runnable())).collect();
        let before = std::mem::take(&mut self.tasks);
        for tids in programs.values_mut() {
            tids.retain(|tid| {
                let seen =
                    before.get(tid).copied().unwrap_or_default().next(runnable.get(tid) == Some(&true));
                self.tasks.insert(*tid, seen);
                seen.counts
            });
        }
        programs.retain(|_, tids| !tids.is_empty());
    }
}

impl Seen {
    fn next(self, is_runnable: bool) -> Self {
        let (busy, asleep) = if is_runnable { (self.busy + 1, 0) } else { (0, self.asleep + 1) };
        let counts = busy >= STEPS_TO_JOIN || self.counts && asleep < STEPS_TO_LEAVE;
        Self { counts, busy: busy.min(STEPS_TO_JOIN), asleep: asleep.min(STEPS_TO_LEAVE) }
    }
}
