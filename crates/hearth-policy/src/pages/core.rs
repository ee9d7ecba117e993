//! Follows a page policy: told of misses or of samples, says which pages to move. Both variants decide by
//! it: [`InMiss`](super::InMiss) at each miss, the planner [`Pages`](crate::planners::Pages) at each step.
//!
//! The state of a page is a few numbers in a flat table, so an event costs one look-up, and no
//! event allocates. Time is the host's, and so are the moves.

use thiserror::Error;

use super::candidate::{Candidate, within_horizon};
use super::quota::Window;
use super::table::Table;
use super::{Cost, Defrost, Freeze, Misses, PagePolicy, Quota, Refusal, Rule};

/// A memory node, from 0.
pub type NodeId = u8;

/// A page to move. Until the host says what came of it, the page is not asked for again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// The page.
    pub page: u32,
    /// Its home.
    pub from: NodeId,
    /// Where it should go.
    pub to: NodeId,
}

/// Accesses to a page from a node since the step before, as far as the host knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sample {
    /// The page.
    pub(crate) page: u32,
    /// Where they came from.
    pub(crate) node: NodeId,
    /// How many, by estimate.
    pub(crate) accesses: u32,
}

/// What was decided so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Moves that the host was asked for.
    pub asked: u64,
    /// Pages that the host has moved.
    pub moves: u64,
    /// Pages frozen that were not.
    pub freezes: u64,
    /// Pages found no longer frozen, when they were next missed.
    pub defrosts: u64,
    /// Remote misses (or samples) to a page that was frozen.
    pub refused_frozen: u64,
    /// Times that a page was ready to move and the move was not worth its cost.
    pub refused_cost: u64,
    /// Times that a page was ready to move and the quota was used up.
    pub refused_quota: u64,
    /// Moves that the host could not do, in the order of [`Refusal::ALL`].
    pub refused: [u64; Refusal::ALL.len()],
    /// Misses to pages that have no home, or from nodes that are not there.
    pub unknown: u64,
}

/// What pages cannot be planned for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum PlannerError {
    /// Too many nodes, or none.
    #[error("{0} memory nodes are more than pages are planned for, or none; give 1 to 64")]
    Nodes(usize),
    /// A page on a node that is not there.
    #[error("page {page} cannot be on node {node}; nodes are numbered from 0 to below {nodes}")]
    NoSuchNode {
        /// The page.
        page: u32,
        /// As given.
        node: NodeId,
        /// How many there are.
        nodes: usize,
    },
}

/// The most memory nodes that pages are planned for.
pub const MAX_NODES: usize = 64;
/// For ever.
const NEVER_NS: u64 = u64::MAX;
/// How long a page that could not be moved is left alone if the policy never defrosts.
const RETRY_NS: u64 = 1_000_000_000;

/// Says which pages to move.
pub(crate) struct Core {
    rule: Rule,
    freeze: Freeze,
    cost: Option<Cost>,
    quota: Option<Window>,
    table: Table,
    counters: Counters,
    candidates: Vec<Candidate>,
}

impl Core {
    /// Without pages; `page_bytes` is the size of a base page.
    ///
    /// # Errors
    /// [`PlannerError::Nodes`].
    pub(crate) fn new(policy: &PagePolicy, nodes: usize, page_bytes: u64) -> Result<Self, PlannerError> {
        if !(1..=MAX_NODES).contains(&nodes) {
            return Err(PlannerError::Nodes(nodes));
        }
        let limit = |quota| match quota {
            Quota::Pages(pages) => pages,
            Quota::Bytes(bytes) => bytes / page_bytes.max(1),
        };
        Ok(Self {
            rule: policy.rule,
            freeze: policy.freeze,
            cost: policy.cost,
            quota: policy.quota.map(|quota| Window::new(limit(quota))),
            table: Table::new(nodes, matches!(policy.rule, Rule::Competitive { .. })),
            counters: Counters::default(),
            candidates: Vec::new(),
        })
    }

    /// What was done so far.
    pub(crate) fn counters(&self) -> Counters {
        self.counters
    }

    /// Where a page is, if it is known.
    pub(crate) fn home(&self, page: u32) -> Option<NodeId> {
        self.table.get(page).map(|page| page.home)
    }

    /// How many pages are on each node.
    pub(crate) fn resident(&self) -> &[u64] {
        self.table.resident()
    }

    /// Whether a page may not move at that time.
    pub(crate) fn is_frozen(&self, now_ns: u64, page: u32) -> bool {
        self.table.get(page).is_some_and(|page| now_ns < page.frozen_until_ns)
    }

    /// A page is at this node now, new or moved by someone else. What was counted of it is
    /// forgotten; a freeze is not. Makes room for all pages up to this one.
    ///
    /// # Errors
    /// [`PlannerError::NoSuchNode`].
    pub(crate) fn set_home(&mut self, page: u32, node: NodeId) -> Result<(), PlannerError> {
        let nodes = self.table.nodes();
        if usize::from(node) >= nodes {
            return Err(PlannerError::NoSuchNode { page, node, nodes });
        }
        self.table.settle(page, node);
        Ok(())
    }

    /// Whether the host was asked to move a page and has not answered.
    pub(crate) fn is_asked(&self, page: u32) -> bool {
        self.table.get(page).is_some_and(|page| page.asked)
    }

    /// A page is as large as two to the power of this of base pages.
    pub(crate) fn order(&self, page: u32) -> u8 {
        self.table.get(page).map_or(0, |page| page.order)
    }

    /// A page is as large as two to the power of `order` base pages. It moves whole.
    pub(crate) fn set_order(&mut self, page: u32, order: u8) {
        self.table.set_order(page, order);
    }

    /// A page is no more. Its number may be used again.
    pub(crate) fn forget(&mut self, page: u32) {
        self.table.forget(page);
    }

    /// One miss to a page, of a CPU on `node`: the page to move, if it should.
    pub(crate) fn miss(&mut self, now_ns: u64, page: u32, node: NodeId, kind: Misses) -> Option<Move> {
        if !self.note(now_ns, page, node, 1, Some(kind)) {
            return None;
        }
        self.benefit(now_ns, page)?;
        if !self.take(now_ns, self.size(page)) {
            self.counters.refused_quota += 1;
            return None;
        }
        self.ask(page)
    }

    /// Many samples at once: replaces `moves` by the pages to move, the greatest expected saving
    /// first as far as the quota goes. Samples count as the misses that the policy waits for. What
    /// the quota leaves is ready at the next step if it is sampled again.
    pub(crate) fn step(&mut self, now_ns: u64, samples: &[Sample], moves: &mut Vec<Move>) {
        moves.clear();
        let mut candidates = std::mem::take(&mut self.candidates);
        candidates.clear();
        for sample in samples {
            if self.note(now_ns, sample.page, sample.node, sample.accesses, None)
                && let Some(state) = self.table.get_mut(sample.page)
                && !std::mem::replace(&mut state.listed, true)
            {
                candidates.push(Candidate { benefit: 0, page: sample.page });
            }
        }
        // A later sample may have frozen the page, or begun its count anew.
        candidates.retain_mut(|candidate| match self.reconsider(now_ns, candidate.page) {
            Some(benefit) => {
                candidate.benefit = benefit;
                true
            }
            None => false,
        });
        self.admit(now_ns, &mut candidates, moves);
        self.candidates = candidates;
    }

    /// The host has moved a page, to the node asked for or to another.
    ///
    /// # Errors
    /// [`PlannerError::NoSuchNode`].
    pub(crate) fn moved(&mut self, now_ns: u64, page: u32, node: NodeId) -> Result<(), PlannerError> {
        if self.home(page).is_none() {
            self.counters.unknown += 1;
            return Ok(());
        }
        self.set_home(page, node)?;
        self.counters.moves += 1;
        if self.freeze.on_move {
            self.freeze_page(now_ns, page);
        }
        Ok(())
    }

    /// The host could not move a page: it is left alone for as long as a frozen one.
    pub(crate) fn refused(&mut self, now_ns: u64, page: u32, why: Refusal) {
        self.counters.refused[why as usize] += 1;
        let until_ns = match self.thaw_ns(now_ns) {
            NEVER_NS => now_ns.saturating_add(RETRY_NS),
            thaw_ns => thaw_ns,
        };
        if let Some(state) = self.table.get_mut(page) {
            state.asked = false;
            state.streak = 0;
            state.frozen_until_ns = state.frozen_until_ns.max(until_ns);
        }
        self.table.clear_counts(page);
    }

    /// Counts misses to a page; whether it is now ready to move. Samples have no kind.
    fn note(&mut self, now_ns: u64, page: u32, node: NodeId, misses: u32, kind: Option<Misses>) -> bool {
        let (trigger, selects) = match self.rule {
            Rule::Never | Rule::PostFacto => return false,
            Rule::Consecutive { misses, select, .. } => (misses, select > 0),
            Rule::Competitive { misses, .. } => (misses, false),
        };
        let there = usize::from(node) < self.table.nodes();
        let Some(state) = self.table.get_mut(page).filter(|_| there) else {
            self.counters.unknown += 1;
            return false;
        };
        if selects && kind != Some(Misses::Tlb) {
            state.seen = state.seen.saturating_add(misses);
        }
        if state.asked || misses == 0 || kind.is_some_and(|kind| kind != trigger) {
            return false;
        }
        if state.frozen_until_ns > 0 && now_ns >= state.frozen_until_ns {
            state.frozen_until_ns = 0;
            self.counters.defrosts += 1;
        }
        let local = node == state.home;
        if local {
            state.streak = 0;
        } else if state.frozen_until_ns > 0 {
            self.counters.refused_frozen += 1;
            return false;
        } else {
            if state.streak == 0 {
                state.since_ns = now_ns;
            }
            state.streak = state.streak.saturating_add(misses);
            state.to = node;
        }
        if matches!(self.rule, Rule::Competitive { .. }) {
            self.table.count(page, node, misses);
        }
        if local && self.freeze.on_local {
            self.freeze_page(now_ns, page);
        }
        !local && self.is_ready(now_ns, page)
    }

    /// Whether the rule lets a page move.
    fn is_ready(&self, now_ns: u64, page: u32) -> bool {
        let Some(state) = self.table.get(page) else { return false };
        if state.asked || now_ns < state.frozen_until_ns || state.to == state.home {
            return false;
        }
        match self.rule {
            Rule::Never | Rule::PostFacto => false,
            Rule::Consecutive { threshold, select, .. } => state.streak >= threshold && state.seen >= select,
            Rule::Competitive { threshold, .. } => self.table.lead(page) >= threshold,
        }
    }

    /// At the end of a step: what a page brings that was ready at some time during it, and still is.
    fn reconsider(&mut self, now_ns: u64, page: u32) -> Option<u64> {
        self.table.get_mut(page)?.listed = false;
        if self.is_ready(now_ns, page) { self.benefit(now_ns, page) } else { None }
    }

    /// What moving a page is expected to bring, if that is more than the move costs: nanoseconds,
    /// or, where the policy has no cost model, accesses.
    fn benefit(&mut self, now_ns: u64, page: u32) -> Option<u64> {
        let state = self.table.get(page)?;
        let accesses = match self.rule {
            Rule::Competitive { .. } => self.table.lead(page),
            _ => state.streak,
        };
        let Some(cost) = self.cost else { return Some(u64::from(accesses)) };
        let passed_ns = now_ns.saturating_sub(state.since_ns);
        let expected = within_horizon(u64::from(accesses), passed_ns, cost.horizon_ns);
        let saving_ns = expected.saturating_mul(cost.saving_ns);
        if saving_ns > cost.move_ns << state.order {
            return Some(saving_ns);
        }
        self.counters.refused_cost += 1;
        None
    }

    /// Takes what the quota lets through, the greatest benefit first. A page that does not fit now
    /// holds up those behind it, so that small pages do not starve a huge one, unless it is larger
    /// than the whole quota.
    fn admit(&mut self, now_ns: u64, candidates: &mut [Candidate], moves: &mut Vec<Move>) {
        let room = self.quota.as_mut().map_or(u64::MAX, |quota| quota.room(now_ns));
        let room = usize::try_from(room).unwrap_or(usize::MAX);
        let limit = self.quota.as_ref().map_or(u64::MAX, Window::limit);
        let total = candidates.len();
        let chosen = if room < total {
            candidates.select_nth_unstable_by_key(room, Candidate::key).0
        } else {
            candidates
        };
        chosen.sort_unstable_by_key(Candidate::key);
        for candidate in &*chosen {
            let size = self.size(candidate.page);
            if self.take(now_ns, size) {
                moves.extend(self.ask(candidate.page));
            } else if size <= limit {
                break;
            }
        }
        self.counters.refused_quota += (total - moves.len()) as u64;
    }

    fn ask(&mut self, page: u32) -> Option<Move> {
        let state = self.table.get_mut(page)?;
        state.asked = true;
        self.counters.asked += 1;
        Some(Move { page, from: state.home, to: state.to })
    }

    /// In base pages.
    fn size(&self, page: u32) -> u64 {
        1 << self.order(page)
    }

    fn take(&mut self, now_ns: u64, size: u64) -> bool {
        self.quota.as_mut().is_none_or(|quota| quota.take(now_ns, size))
    }

    fn freeze_page(&mut self, now_ns: u64, page: u32) {
        let thaw_ns = self.thaw_ns(now_ns);
        if let Some(state) = self.table.get_mut(page) {
            self.counters.freezes += u64::from(now_ns >= state.frozen_until_ns);
            state.frozen_until_ns = state.frozen_until_ns.max(thaw_ns);
        }
    }

    /// When a page that is frozen now may move again.
    fn thaw_ns(&self, now_ns: u64) -> u64 {
        match self.freeze.defrost {
            Defrost::Never => NEVER_NS,
            Defrost::Each(period_ns) => now_ns.saturating_add(period_ns),
            Defrost::Together(period_ns) => (now_ns / period_ns.max(1) + 1).saturating_mul(period_ns),
        }
    }
}

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
