//! Numbers with what bounds them.

use crate::demand::Demand;
use crate::steady::{Look, Number};
use hearth_hints::page::Why;

/// What bounds a follower, whatever others do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// CPUs of the machine.
    pub machine: usize,
    /// CPUs that it may run on.
    pub mask: usize,
    /// The least quota of its cgroup and those above, in CPUs.
    pub quota: f64,
    /// CPUs that it would use at most.
    pub want: f64,
}

impl Limits {
    fn of(demand: &Demand, application: usize) -> Self {
        let application = &demand.applications[application];
        let (mut quota, mut group) = (f64::INFINITY, application.group);
        loop {
            quota = quota.min(demand.groups[group].quota);
            if group == 0 {
                break;
            }
            group = demand.groups[group].parent;
        }
        let [machine, mask] = [0, application.mask].map(|mask| demand.masks[mask].len());
        Self { machine, mask, quota, want: application.want }
    }

    /// What keeps this number from being more.
    pub fn why(&self, number: &Number) -> Why {
        let cpus = number.cpus as usize;
        let is_bound_by = |limit: f64| limit < self.machine as f64 && cpus as f64 >= limit;
        if is_bound_by(self.want) {
            Why::Want
        } else if is_bound_by(self.quota) {
            Why::Quota
        } else if is_bound_by(self.mask as f64) {
            Why::Mask
        } else if cpus >= self.machine {
            Why::Machine
        } else {
            Why::Share
        }
    }
}

/// The followers' numbers, as `answer` has them, and their limits, in their order.
pub fn numbers(look: Look, answer: impl FnOnce(Look) -> Vec<Number>) -> Vec<(Number, Limits)> {
    let limits: Vec<Limits> =
        look.followers.iter().map(|follower| Limits::of(&look.demand, follower.application)).collect();
    answer(look).into_iter().zip(limits).collect()
}
