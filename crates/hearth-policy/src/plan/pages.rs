//! What a plan says of memory: which pages move, and how fast.

use crate::snapshot::Memory;
use std::collections::BTreeMap;

/// Which pages move, and how fast. The empty one moves none and asks for no look at memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PagePlan {
    /// In how long, at the soonest, it is to be looked at again what pages are used; nothing if nobody asks.
    pub look_after_ns: Option<u64>,
    /// Pages to move, the most urgent first. Snapshots to come tell what became of each.
    pub moves: Vec<PageMove>,
    /// What may be moved in any second; nothing if only the host's own limits hold.
    pub bytes_per_second: Option<u64>,
    /// Base pages that may not move for now, by process.
    pub frozen: BTreeMap<i32, u64>,
    /// What was decided against, since the plan before.
    pub stayed: Stayed,
}

/// A page that is to move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PageMove {
    /// Its process.
    pub process: i32,
    /// Which of that process's pages in the snapshot.
    pub page: usize,
    /// The node where it should go.
    pub to: usize,
}

/// How often pages in use elsewhere stayed, by the reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stayed {
    /// Pages that were frozen, and had not been.
    pub freezes: u64,
    /// A page was frozen.
    pub frozen: u64,
    /// The move was not worth its cost.
    pub cost: u64,
    /// The quota was used up.
    pub quota: u64,
}

/// What is wrong with the pages of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PagePlanError {
    /// A page of which the snapshot says nothing.
    #[error("the plan moves page {page} of process {process}, of which the snapshot has {pages}")]
    Page {
        /// As given.
        process: i32,
        /// As given.
        page: usize,
        /// How many there are.
        pages: usize,
    },
    /// A node that is not there, or has no memory.
    #[error("the plan moves a page of process {process} to node {to}, which has no memory")]
    Node {
        /// The page's process.
        process: i32,
        /// As given.
        to: usize,
    },
    /// A page twice.
    #[error("the plan moves page {page} of process {process} twice")]
    Twice {
        /// The page's process.
        process: i32,
        /// The page.
        page: usize,
    },
}

impl PagePlan {
    /// Whether it can be followed by who told this of memory.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub(super) fn check(&self, memory: &Memory) -> Result<(), PagePlanError> {
        for &PageMove { process, page, to } in &self.moves {
            let pages = memory.processes.get(&process).map_or(0, |process| process.pages.len());
            if page >= pages {
                return Err(PagePlanError::Page { process, page, pages });
            }
            if memory.nodes.binary_search(&to).is_err() {
                return Err(PagePlanError::Node { process, to });
            }
        }
        let mut pages: Vec<(i32, usize)> = self.moves.iter().map(|one| (one.process, one.page)).collect();
        pages.sort_unstable();
        match pages.windows(2).find(|two| two[0] == two[1]) {
            Some(&[(process, page), _]) => Err(PagePlanError::Twice { process, page }),
            _ => Ok(()),
        }
    }
}

impl Stayed {
    /// Of what was counted so far, what was not counted then.
    pub(crate) fn since(self, then: Stayed) -> Self {
        Self {
            freezes: self.freezes - then.freezes,
            frozen: self.frozen - then.frozen,
            cost: self.cost - then.cost,
            quota: self.quota - then.quota,
        }
    }

    /// Adds what another plan told.
    pub fn add(&mut self, other: Stayed) {
        self.freezes += other.freezes;
        self.frozen += other.frozen;
        self.cost += other.cost;
        self.quota += other.quota;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snapshot::{Page, Process};

    fn error(moves: &[(i32, usize, usize)]) -> Option<PagePlanError> {
        let process = Process { pages: vec![Page::default(); 2], ..Process::default() };
        let memory = Memory { nodes: vec![0, 3], processes: [(7, process)].into(), ..Memory::default() };
        let moves = moves.iter().map(|&(process, page, to)| PageMove { process, page, to }).collect();
        PagePlan { moves, ..PagePlan::default() }.check(&memory).err()
    }

    #[test]
    fn only_pages_of_the_snapshot_move_each_once_to_nodes_with_memory() {
        assert_eq!(error(&[(7, 1, 3), (7, 0, 0)]), None);
        assert_eq!(error(&[(7, 2, 3)]), Some(PagePlanError::Page { process: 7, page: 2, pages: 2 }));
        assert_eq!(error(&[(8, 0, 3)]), Some(PagePlanError::Page { process: 8, page: 0, pages: 0 }));
        assert_eq!(error(&[(7, 0, 1)]), Some(PagePlanError::Node { process: 7, to: 1 }));
        assert_eq!(
            error(&[(7, 1, 3), (7, 0, 3), (7, 1, 0)]),
            Some(PagePlanError::Twice { process: 7, page: 1 })
        );
    }
}
