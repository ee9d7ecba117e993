//! Isolation where the kernel's own scheduler stays on: by the weights of control groups.
//!
//! ```text
//! /a           |      cache-fair 100     | best-effort 100 |     each a cgroup below /a: so many parts of
//!              |   cache-fair 118    |  best-effort 82     |     what /a has
//! ```
//!
//! A weight counts among cgroups of one parent. So of groups that have a class, such as have no group of the
//! other class beside them are left alone, and that is said.

use super::{GroupStatus, Isolating, WeightStatus};
use hearth_host::cgroup;
use hearth_host::journal::Journal;
use hearth_host::weight::{Held, Weights};
use hearth_policy::isolation::weights::Weighed;
use hearth_policy::snapshot::Class;
use hearth_policy::{Plan, Snapshot};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Open until what was changed is to be undone: nobody changes more of it then.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gate {
    is_closed: Arc<Mutex<bool>>,
}

impl Gate {
    /// Waits for who is in.
    pub(crate) fn close(&self) {
        *self.lock() = true;
    }

    fn if_open(&self, change: impl FnOnce()) {
        let is_closed = self.lock();
        if !*is_closed {
            change();
        }
    }

    fn lock(&self) -> MutexGuard<'_, bool> {
        self.is_closed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// See the module.
pub(crate) struct Weighing {
    isolating: Isolating,
    gate: Gate,
    weights: Weights,
    /// Its clock's zero.
    begun: Instant,
    /// What each group that was weighed got last.
    given: BTreeMap<PathBuf, Given>,
    /// Groups that have a class to no avail.
    apart: BTreeMap<PathBuf, Class>,
}

struct Given {
    weighed: Weighed,
    status: WeightStatus,
    /// Somebody else writes it: it will not be asked for again.
    is_foreign: bool,
}

impl Given {
    /// Whether its group neither gains nor pays.
    fn is_left_alone(&self, now: Duration) -> bool {
        self.is_foreign || self.status.left_alone.is_some() && !self.weighed.is_old(now)
    }
}

impl Weighing {
    pub(crate) fn new(isolating: Isolating, journal: Arc<Mutex<Journal>>, gate: Gate) -> Self {
        Self {
            isolating,
            gate,
            weights: Weights::new(journal),
            begun: Instant::now(),
            given: BTreeMap::new(),
            apart: BTreeMap::new(),
        }
    }

    /// Fills in classes and runs, with what each task has of its group's own weight for a weight.
    pub(crate) fn follow(&mut self, snapshot: &mut Snapshot) {
        self.isolating.follow(snapshot);
        let origins: BTreeMap<u64, (PathBuf, Class)> = snapshot
            .classes
            .iter()
            .filter_map(|(group, class)| Some((*group, (self.isolating.origin(*group)?.to_owned(), *class))))
            .collect();
        let now = self.begun.elapsed();
        let is_left_alone =
            |path: &PathBuf| self.given.get(path).is_some_and(|given| given.is_left_alone(now));
        let acts = |(path, _): &&(PathBuf, Class)| !is_left_alone(path);
        let beside = beside_each_other(origins.values().filter(acts));
        self.apart = origins.values().filter(|(path, _)| !beside.contains(path)).cloned().collect();
        snapshot.classes.retain(|group, _| origins.get(group).is_some_and(|(path, _)| beside.contains(path)));
        let runnable = snapshot.tasks.iter().filter(|task| task.is_runnable());
        let mut counts: BTreeMap<&Path, u32> = BTreeMap::new();
        for (origin, _) in runnable.filter_map(|task| origins.get(&task.group)) {
            *counts.entry(origin).or_default() += 1;
        }
        let own: BTreeMap<PathBuf, u32> = counts
            .into_iter()
            .map(|(path, count)| (path.to_owned(), self.own(path).unwrap_or(100) / count.max(1)))
            .collect();
        for task in &mut snapshot.tasks {
            if let Some(weight) = origins.get(&task.group).and_then(|(path, _)| own.get(path)) {
                task.weight = (*weight).max(1);
            }
        }
    }

    /// A group's own weight.
    fn own(&self, path: &Path) -> Option<u32> {
        let folder = cgroup::folder(path)?;
        let known = self.weights.state().find(|(other, ..)| *other == folder).and_then(|(_, own, _)| own);
        known.or_else(|| std::fs::read_to_string(folder.join("cpu.weight")).ok()?.trim().parse().ok())
    }

    /// Gives groups the weights that follow from a plan.
    pub(crate) fn weigh(&mut self, snapshot: &Snapshot, plan: &Plan) {
        self.gate.clone().if_open(|| self.weigh_now(snapshot, plan));
    }

    fn weigh_now(&mut self, snapshot: &Snapshot, plan: &Plan) {
        let mut groups = self.isolating.groups(snapshot, plan);
        let now = self.begun.elapsed();
        self.given.retain(|path, given| {
            groups.contains_key(path) || self.apart.contains_key(path) && given.is_left_alone(now)
        });
        let kept = groups.keys().chain(self.given.keys());
        self.weights.keep_only(&kept.filter_map(|path| cgroup::folder(path)).collect());
        for (path, group) in &mut groups {
            group.weight = self.give(path, group.share_permille);
        }
        let apart = self.apart.iter().map(|(path, class)| {
            let status = self.given.get(path).map(|given| given.status.clone());
            apart(path, *class, status)
        });
        self.isolating.tell(groups.into_values().chain(apart));
    }

    fn give(&mut self, path: &Path, permille: u32) -> Option<WeightStatus> {
        let now = self.begun.elapsed();
        if let Some(given) = self.given.get(path).filter(|given| !given.weighed.is_due(now, permille)) {
            return Some(given.status.clone());
        }
        let folder = cgroup::folder(path)?;
        let held = self.weights.give(&folder, permille);
        let is_foreign = matches!(held, Held::Foreign { .. });
        let own = self.own(path).unwrap_or_default();
        let status = match held {
            Held::Given(now) => WeightStatus { before: own, now, left_alone: None },
            Held::Foreign { theirs, .. } => WeightStatus {
                before: own,
                now: theirs,
                left_alone: Some("left alone: somebody else writes it".to_owned()),
            },
            Held::Refused(why) => WeightStatus { before: own, now: own, left_alone: Some(why) },
        };
        let given = Given { weighed: Weighed { at: now, permille }, status: status.clone(), is_foreign };
        self.given.insert(path.to_owned(), given);
        Some(status)
    }
}

/// What is told of a group whose weight would do nothing.
fn apart(path: &Path, class: Class, weight: Option<WeightStatus>) -> GroupStatus {
    let why = "left alone: no cgroup of the other class that can act is below the same parent";
    let alone = || WeightStatus { before: 0, now: 0, left_alone: Some(why.to_owned()) };
    let weight = weight.unwrap_or_else(alone);
    GroupStatus {
        cgroup: path.to_owned(),
        is_cache_fair: class == Class::CacheFair,
        tasks: 0,
        share_permille: 1000,
        weight: Some(weight),
    }
}

/// Groups that have one of the other class below the same parent.
fn beside_each_other<'a>(origins: impl Iterator<Item = &'a (PathBuf, Class)>) -> BTreeSet<PathBuf> {
    let mut by_parent: BTreeMap<Option<&Path>, Vec<&(PathBuf, Class)>> = BTreeMap::new();
    origins.for_each(|origin| by_parent.entry(origin.0.parent()).or_default().push(origin));
    let has = |group: &[&(PathBuf, Class)], class| group.iter().any(|(_, own)| *own == class);
    by_parent.retain(|_, group| has(group, Class::CacheFair) && has(group, Class::BestEffort));
    by_parent.into_values().flatten().map(|(path, _)| path.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_changes_behind_a_closed_gate() {
        let gate = Gate::default();
        let mut changes = 0;
        gate.if_open(|| changes += 1);
        gate.clone().close();
        gate.if_open(|| changes += 1);
        assert_eq!(changes, 1);
    }

    #[test]
    fn a_weight_counts_among_the_groups_of_one_parent() {
        let origin = |path: &str, class| (PathBuf::from(path), class);
        let all = [
            origin("/a/x", Class::CacheFair),
            origin("/a/y", Class::BestEffort),
            origin("/b/z", Class::BestEffort),
            origin("/c", Class::CacheFair),
        ];
        let wanted: BTreeSet<PathBuf> = ["/a/x".into(), "/a/y".into()].into();
        assert_eq!(beside_each_other(all.iter()), wanted);
    }
}
