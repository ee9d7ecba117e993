//! Weights of control groups, version 2: how the kernel's fair class divides a CPU between them. Hearth scales
//! them where it compensates programs without a scheduler of its own.
//!
//! A cgroup's own weight is the one that `cpu.weight` has when Hearth first sees it. What is written is
//! [`scaled`] from it.
//!
//! A weight that is neither Hearth's nor the cgroup's own was written by somebody else. It is left alone from
//! then on, until Hearth forgets the cgroup and sees it anew. Who writes the very value that Hearth has written
//! cannot be told from it.

mod claim;

pub use claim::Claim;

use crate::Outcome;
use crate::journal::{Change, Journal};
use claim::{number, read};
use hearth_policy::isolation::weights::scaled;
use rustix::io::Errno;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Scales weights of control groups, and has what is needed to undo that in the journal. A weight stays as it
/// is when this is dropped: the journal's end takes it back.
#[derive(Debug)]
pub struct Weights {
    journal: Arc<Mutex<Journal>>,
    groups: BTreeMap<PathBuf, Group>,
}

/// What became of a weight that was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Held {
    /// The cgroup has it: this one.
    Given(u32),
    /// Somebody else has written another one since, which is left alone.
    Foreign {
        /// What it would be.
        ours: u32,
        /// What was found.
        theirs: u32,
    },
    /// It cannot be given: why, and what to do.
    Refused(String),
}

/// A cgroup that was asked for.
#[derive(Debug)]
struct Group {
    /// Tells it from another that is made in its place.
    number: Option<u64>,
    /// Its own weight, once it was read.
    own: Option<u32>,
    /// What is in force, as the journal has it; nothing while it has its own weight.
    claim: Option<Claim>,
    held: Held,
}

impl Weights {
    /// None are scaled yet.
    pub fn new(journal: Arc<Mutex<Journal>>) -> Self {
        Self { journal, groups: BTreeMap::new() }
    }

    /// Gives a cgroup, by its folder, so many thousandths of the weight that it had when Hearth first saw it.
    pub fn give(&mut self, folder: &Path, permille: u32) -> Held {
        let number = number(folder);
        let known = self.groups.remove(folder);
        let mut group = match known {
            Some(group) if group.number == number => group,
            other => {
                // The claim was on one that is gone.
                if other.is_some_and(|group| group.claim.is_some()) {
                    self.forget(|claim| claim.folder() == folder);
                }
                Group { number, own: None, claim: None, held: Held::Given(0) }
            }
        };
        if !matches!(group.held, Held::Foreign { .. }) {
            group.held = self.scale(&mut group, folder, permille).unwrap_or_else(Held::Refused);
        }
        let held = group.held.clone();
        self.groups.insert(folder.to_owned(), group);
        held
    }

    /// Every cgroup that is not among these gets its own weight back and is forgotten, also those that are gone.
    /// One that the system refuses to give its own weight back is asked for again with the next call.
    pub fn keep_only(&mut self, folders: &BTreeSet<PathBuf>) {
        let mut over = BTreeSet::new();
        for (folder, group) in &mut self.groups {
            if folders.contains(folder) {
                continue;
            }
            match group.claim.as_ref().map(Claim::undo) {
                Some(Outcome::Failed(why)) => group.held = Held::Refused(why),
                _ => drop(over.insert(folder.clone())),
            }
        }
        self.groups.retain(|folder, _| !over.contains(folder));
        self.forget(|claim| over.contains(claim.folder()));
    }

    /// The cgroups that were asked for, in their order: the folder, its own weight if that could be read, and
    /// what is in force.
    pub fn state(&self) -> impl Iterator<Item = (&Path, Option<u32>, &Held)> {
        self.groups.iter().map(|(folder, group)| (folder.as_path(), group.own, &group.held))
    }

    fn scale(&self, group: &mut Group, folder: &Path, permille: u32) -> Result<Held, String> {
        let number = group.number.ok_or_else(|| claim::Problem::Gone.to_string())?;
        let now = read(folder).map_err(|problem| problem.to_string())?;
        let own = *group.own.get_or_insert(now);
        let last = group.claim.as_ref().map_or(own, Claim::after);
        if now != own && now != last {
            self.release(group, folder);
            return Ok(Held::Foreign { ours: last, theirs: now });
        }
        let wanted = scaled(own, permille);
        let claim = Claim::new(folder, number, own, now, wanted);
        if wanted == own {
            if now != own {
                claim.make().map_err(|error| error.to_string())?;
            }
            self.release(group, folder);
        } else if now != wanted {
            let refused = self.make(&claim)?;
            if let Some(errno) = refused {
                // What the journal has now tells either weight; none is ours where there was no claim.
                if group.claim.is_none() {
                    self.forget(|claim| claim.folder() == folder);
                }
                return Err(format!("the kernel refuses {wanted}: {errno}"));
            }
            group.claim = Some(claim);
        }
        Ok(Held::Given(wanted))
    }

    /// Returns what the system says where it refuses.
    fn make(&self, claim: &Claim) -> Result<Option<Errno>, String> {
        let refused = self.journal().make(vec![Change::Weight { claim: claim.clone() }]);
        Ok(refused.map_err(|error| error.to_string())?.first().map(|(_, errno)| *errno))
    }

    /// The cgroup's weight is none of ours.
    fn release(&self, group: &mut Group, folder: &Path) {
        if group.claim.take().is_some() {
            self.forget(|claim| claim.folder() == folder);
        }
    }

    fn forget(&self, is_over: impl Fn(&Claim) -> bool) {
        let is_over = |change: &Change| matches!(change, Change::Weight { claim } if is_over(claim));
        // One that stays in the file is looked at again when the journal is undone.
        let _ = self.journal().forget(is_over);
    }

    fn journal(&self) -> MutexGuard<'_, Journal> {
        // A journal is whole between two changes, whoever panicked.
        self.journal.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
