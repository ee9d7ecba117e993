//! The papers' variant: a page moves in the miss itself.
//!
//! A kernel that refills the TLB in software sees each miss, and may move the page before the program goes on
//! (Chandra et al. 1994, section 4.1). No snapshot could tell what each miss was, nor would a plan come in
//! time. So this variant has no place behind the controller: its host asks at every miss, and answers at once.

use super::core::Core;
use super::{Counters, Misses, Move, NodeId, PagePolicy, PlannerError, Refusal};

/// Decides at each miss whether its page moves. See the module.
pub struct InMiss(Core);

impl InMiss {
    /// Without pages; `page_bytes` is the size of a base page.
    ///
    /// # Errors
    /// [`PlannerError::Nodes`].
    pub fn new(policy: &PagePolicy, nodes: usize, page_bytes: u64) -> Result<Self, PlannerError> {
        Core::new(policy, nodes, page_bytes).map(Self)
    }

    /// What was decided so far.
    pub fn counters(&self) -> Counters {
        self.0.counters()
    }

    /// Where a page is, if it is known.
    pub fn home(&self, page: u32) -> Option<NodeId> {
        self.0.home(page)
    }

    /// How many pages are on each node.
    pub fn resident(&self) -> &[u64] {
        self.0.resident()
    }

    /// A page is at this node now. Makes room for all pages up to this one.
    ///
    /// # Errors
    /// [`PlannerError::NoSuchNode`].
    pub fn set_home(&mut self, page: u32, node: NodeId) -> Result<(), PlannerError> {
        self.0.set_home(page, node)
    }

    /// One miss to a page, of a CPU on `node`: the page to move, if it should.
    pub fn miss(&mut self, now_ns: u64, page: u32, node: NodeId, kind: Misses) -> Option<Move> {
        self.0.miss(now_ns, page, node, kind)
    }

    /// The host has moved a page, to the node asked for or to another.
    ///
    /// # Errors
    /// [`PlannerError::NoSuchNode`].
    pub fn moved(&mut self, now_ns: u64, page: u32, node: NodeId) -> Result<(), PlannerError> {
        self.0.moved(now_ns, page, node)
    }

    /// The host could not move a page: it is left alone for as long as a frozen one.
    pub fn refused(&mut self, now_ns: u64, page: u32, why: Refusal) {
        self.0.refused(now_ns, page, why);
    }
}
