//! A planner that acts by weights, as on a Linux whose own scheduler stays on (`hearth start --no-scheduler`):
//! the scheduler sees no share of a plan, but tasks whose weights change, at the pace at which Hearth changes those
//! of control groups.
//!
//! ```text
//! plan: shares of tasks --> mean of a group --> weights of its tasks, own * share
//! snapshot: each task's own weight <-- what it had when its group was first weighed
//! ```

use super::Kernel;
use super::task::task_of;
use crate::program::TaskId;
use hearth_policy::isolation::weights::{WHOLE, Weighed, scaled};
use hearth_policy::{Plan, Snapshot};
use std::collections::BTreeMap;
use std::time::Duration;

/// The CPU on which the daemon that changes weights is taken to run.
const DAEMONS_CPU: usize = 0;

/// Who has which weight, and why.
#[derive(Default)]
pub(super) struct Weighing {
    /// What each task that was weighed had before.
    own: BTreeMap<TaskId, u32>,
    /// What each group got last.
    given: BTreeMap<u64, Weighed>,
}

impl Weighing {
    /// Tells of tasks as if nobody had weighed them: shares are of what they have by themselves.
    pub(super) fn hide(&self, snapshot: &mut Snapshot) {
        for task in &mut snapshot.tasks {
            task.weight = self.own.get(&task_of(task.tid)).copied().unwrap_or(task.weight);
        }
    }

    /// Takes the shares out of a plan, and gives groups the weights that follow from them.
    pub(super) fn weigh(&mut self, kernel: &mut Kernel, snapshot: &Snapshot, plan: &mut Plan) {
        let now = Duration::from_nanos(snapshot.at_ns);
        let mut shares: BTreeMap<u64, Vec<u32>> = BTreeMap::new();
        for task in snapshot.tasks.iter().filter(|task| task.is_runnable()) {
            let target = plan.tasks.get(&task.tid).or_else(|| plan.groups.get(&task.group));
            let share = target.map_or(WHOLE, |target| target.share_permille);
            shares.entry(task.group).or_default().push(share);
        }
        let targets = plan.tasks.values_mut().chain(plan.groups.values_mut());
        targets.for_each(|target| target.share_permille = WHOLE);
        for (group, shares) in shares {
            let permille = shares.iter().sum::<u32>() / shares.len() as u32;
            let is_due = match self.given.get(&group) {
                Some(given) => given.is_due(now, permille),
                None => permille != WHOLE,
            };
            if is_due {
                self.given.insert(group, Weighed { at: now, permille });
                self.give(kernel, snapshot, group, permille);
            }
        }
    }

    fn give(&mut self, kernel: &mut Kernel, snapshot: &Snapshot, group: u64, permille: u32) {
        for task in snapshot.tasks.iter().filter(|task| task.group == group) {
            let number = task_of(task.tid);
            let own = *self.own.entry(number).or_insert(task.weight);
            kernel.set_weight(number, scaled(own, permille), DAEMONS_CPU);
        }
    }
}
