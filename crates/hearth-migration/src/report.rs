//! What the follower tells of itself: for `hearth pages`, `status` and the metrics.

use super::mover::Reason;
use super::sampler::Backend;
use super::{NodeId, Stays};
use hearth_host::planner::Account;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What was moved, and what was not.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// Base pages that were moved; a huge page is 512 of them.
    pub moved_pages: u64,
    /// Their bytes.
    pub moved_bytes: u64,
    /// Base pages that could not be moved.
    pub failed_pages: BTreeMap<Reason, u64>,
}

impl Tally {
    pub(super) fn add(&mut self, pages: u64, bytes: u64) {
        self.moved_pages += pages;
        self.moved_bytes += bytes;
    }

    /// Adds what another has counted.
    pub fn include(&mut self, other: &Tally) {
        self.add(other.moved_pages, other.moved_bytes);
        other.failed_pages.iter().for_each(|(reason, pages)| self.fail(*reason, *pages));
    }

    pub(super) fn fail(&mut self, reason: Reason, pages: u64) {
        *self.failed_pages.entry(reason).or_default() += pages;
    }
}

/// The local share at one time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Moment {
    /// Seconds since Hearth was started.
    pub at_s: f64,
    /// Of the memory that may be moved, what is on the node where the process runs; if it runs on
    /// several, each counts for its part of the CPU time. 0 to 1.
    pub local_share: f64,
}

/// What is known of a process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProcessPages {
    /// Its number.
    pub pid: i32,
    /// Its program's name.
    pub name: String,
    /// The nodes on which it ran of late, with the part of its CPU time. Empty if nobody watched.
    pub runs_on: BTreeMap<NodeId, f64>,
    /// Bytes that may be moved, by node.
    pub movable: BTreeMap<NodeId, u64>,
    /// Bytes that stay where they are, by the reason, by node.
    pub stays: BTreeMap<Stays, BTreeMap<NodeId, u64>>,
    /// Why nothing at all of it is moved.
    pub left_alone: Option<String>,
    /// Whether its accesses are sampled now.
    pub sampled: bool,
    /// What was moved.
    #[serde(flatten)]
    pub tally: Tally,
    /// Base pages that may not move for now: moved lately, or used from more than one node.
    pub frozen_pages: u64,
    /// The local share over time.
    pub history: Vec<Moment>,
}

impl ProcessPages {
    /// The local share now; nothing if it is not known where the process runs.
    pub fn local_share(&self) -> Option<f64> {
        let all: u64 = self.movable.values().sum();
        (all > 0 && !self.runs_on.is_empty()).then(|| {
            let local = self
                .runs_on
                .iter()
                .map(|(node, part)| self.movable.get(node).copied().unwrap_or(0) as f64 * part);
            local.sum::<f64>() / all as f64
        })
    }
}

/// What the follower does, in all.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PagesStatus {
    /// The page policy's name.
    pub policy: String,
    /// Where samples come from.
    pub backend: Backend,
    /// Why not from somewhere better, or why nothing moves.
    pub notes: Vec<String>,
    /// Nodes with memory.
    pub nodes: Vec<NodeId>,
    /// What was moved.
    #[serde(flatten)]
    pub tally: Tally,
    /// Time that moving took within the kernel.
    pub moving_s: f64,
    /// CPU time of the thread that does all this, moving included.
    pub cpu_s: f64,
    /// Processes that ran of late, and those of them that are sampled now.
    pub processes: u64,
    /// See `processes`.
    pub sampled: u64,
    /// Base pages that may not move for now.
    pub frozen_pages: u64,
    /// How often a page was frozen.
    pub freezes: u64,
    /// How often a page stayed because it was frozen, because its move was not worth the cost, because
    /// the quota was used up.
    pub stayed_frozen: u64,
    /// See `stayed_frozen`.
    pub stayed_cost: u64,
    /// See `stayed_frozen`.
    pub stayed_quota: u64,
    /// The local share of all processes, by their size.
    pub local_share: Option<f64>,
    /// The planner's steps.
    #[serde(default)]
    pub planner: Account,
}

#[cfg(test)]
impl PagesStatus {
    /// Nothing was done.
    pub(crate) fn of_none() -> Self {
        Self {
            policy: "linux".into(),
            backend: Backend::None,
            notes: Vec::new(),
            nodes: Vec::new(),
            tally: Tally::default(),
            moving_s: 0.0,
            cpu_s: 0.0,
            processes: 0,
            sampled: 0,
            frozen_pages: 0,
            freezes: 0,
            stayed_frozen: 0,
            stayed_cost: 0,
            stayed_quota: 0,
            local_share: None,
            planner: Account::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_local_share_weighs_nodes_by_cpu_time() {
        let mut process = ProcessPages {
            movable: BTreeMap::from([(NodeId(0), 3 << 20), (NodeId(1), 1 << 20)]),
            ..ProcessPages::default()
        };
        assert_eq!(process.local_share(), None);
        process.runs_on = BTreeMap::from([(NodeId(0), 1.0)]);
        assert_eq!(process.local_share(), Some(0.75));
        process.runs_on = BTreeMap::from([(NodeId(0), 0.5), (NodeId(1), 0.5)]);
        assert_eq!(process.local_share(), Some(0.5));
        process.movable.clear();
        assert_eq!(process.local_share(), None);
    }

    #[test]
    fn a_report_goes_through_json() {
        let mut process = ProcessPages { pid: 7, ..ProcessPages::default() };
        process.movable.insert(NodeId(1), 4096);
        process.stays.entry(Stays::Policy).or_default().insert(NodeId(0), 1);
        process.tally.fail(Reason::NoMemory, 3);
        let text = serde_json::to_string(&process).unwrap();
        assert!(text.contains("\"no_memory\":3") && text.contains("\"movable\":{\"1\":4096}"), "{text}");
        assert_eq!(serde_json::from_str::<ProcessPages>(&text).unwrap(), process);
    }
}
