//! What the planner knows of each page: flat tables, indexed by page.

use super::core::NodeId;

/// No node: the home of a page that is not there.
pub(super) const NOWHERE: NodeId = NodeId::MAX;
/// The largest huge page is 1 GiB of base pages of 4 KiB.
const MAX_ORDER: u8 = 18;

/// A page.
#[derive(Clone, Copy, Debug)]
pub(super) struct Page {
    /// May not move before; 0 if it may.
    pub(super) frozen_until_ns: u64,
    /// When the first of `streak` was.
    pub(super) since_ns: u64,
    /// Remote misses since the last local one.
    pub(super) streak: u32,
    /// Cache misses since the page came to its home.
    pub(super) seen: u32,
    /// Where it is.
    pub(super) home: NodeId,
    /// Where the latest remote miss came from.
    pub(super) to: NodeId,
    /// It is as large as two to this power of base pages.
    pub(super) order: u8,
    /// The host was asked to move it and has not answered.
    pub(super) asked: bool,
    /// Already in the list of this step.
    pub(super) listed: bool,
}

const _: () = assert!(size_of::<Page>() == 32, "64 bytes a page, with counts for 16 nodes");

impl Page {
    const NONE: Page = Page {
        frozen_until_ns: 0,
        since_ns: 0,
        streak: 0,
        seen: 0,
        home: NOWHERE,
        to: NOWHERE,
        order: 0,
        asked: false,
        listed: false,
    };
}

/// All pages.
pub(super) struct Table {
    nodes: usize,
    pages: Vec<Page>,
    /// Misses to each page from each node since it came home: pages times nodes, or empty if nobody
    /// asks.
    counts: Vec<u16>,
    counts_nodes: bool,
    /// Pages whose home is each node.
    resident: Vec<u64>,
}

impl Table {
    pub(super) fn new(nodes: usize, counts_nodes: bool) -> Self {
        Self { nodes, pages: Vec::new(), counts: Vec::new(), counts_nodes, resident: vec![0; nodes] }
    }

    pub(super) fn nodes(&self) -> usize {
        self.nodes
    }

    #[cfg(test)]
    pub(super) fn bytes_per_page(&self) -> usize {
        size_of::<Page>() + if self.counts_nodes { self.nodes * size_of::<u16>() } else { 0 }
    }

    pub(super) fn resident(&self) -> &[u64] {
        &self.resident
    }

    /// A page that has a home.
    pub(super) fn get(&self, page: u32) -> Option<&Page> {
        self.pages.get(page as usize).filter(|page| page.home != NOWHERE)
    }

    /// A page that has a home.
    pub(super) fn get_mut(&mut self, page: u32) -> Option<&mut Page> {
        self.pages.get_mut(page as usize).filter(|page| page.home != NOWHERE)
    }

    /// Gives a page this home and forgets what was counted of it.
    pub(super) fn settle(&mut self, page: u32, node: NodeId) {
        let index = page as usize;
        if index >= self.pages.len() {
            self.pages.resize(index + 1, Page::NONE);
            if self.counts_nodes {
                self.counts.resize((index + 1) * self.nodes, 0);
            }
        }
        self.leave(index);
        let state = &mut self.pages[index];
        *state = Page { home: node, to: node, streak: 0, seen: 0, asked: false, ..*state };
        self.resident[usize::from(node)] += 1;
        self.clear_counts(page);
    }

    pub(super) fn set_order(&mut self, page: u32, order: u8) {
        if let Some(state) = self.get_mut(page) {
            state.order = order.min(MAX_ORDER);
        }
    }

    pub(super) fn forget(&mut self, page: u32) {
        let index = page as usize;
        if index < self.pages.len() {
            self.leave(index);
            self.clear_counts(page);
            self.pages[index] = Page::NONE;
        }
    }

    fn leave(&mut self, index: usize) {
        if let Some(count) = self.resident.get_mut(usize::from(self.pages[index].home)) {
            *count -= 1;
        }
    }

    /// Adds to the count of a node. All counts of the page go down together when one is full, so
    /// that leads stay as they are; only nodes that were far behind are less so.
    pub(super) fn count(&mut self, page: u32, node: NodeId, misses: u32) {
        const STEP: u16 = 1 << 15;
        let misses = u16::try_from(misses).unwrap_or(u16::MAX).min(STEP);
        let counts = self.counts_of(page);
        if counts[usize::from(node)].checked_add(misses).is_none() {
            counts.iter_mut().for_each(|count| *count = count.saturating_sub(STEP));
        }
        counts[usize::from(node)] += misses;
    }

    /// How many more misses the node of the latest remote one has had than the page's home.
    pub(super) fn lead(&self, page: u32) -> u32 {
        let Some(&Page { home, to, .. }) = self.get(page) else { return 0 };
        let count = |node: NodeId| self.counts[page as usize * self.nodes + usize::from(node)];
        u32::from(count(to).saturating_sub(count(home)))
    }

    pub(super) fn clear_counts(&mut self, page: u32) {
        if self.counts_nodes && self.get(page).is_some() {
            self.counts_of(page).fill(0);
        }
    }

    fn counts_of(&mut self, page: u32) -> &mut [u16] {
        let first = page as usize * self.nodes;
        &mut self.counts[first..first + self.nodes]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lead_outlives_full_counts() {
        let mut table = Table::new(3, true);
        table.settle(0, 0);
        table.get_mut(0).expect("settled").to = 1;
        for _ in 0..200_000 {
            table.count(0, 0, 1);
            table.count(0, 1, 1);
        }
        table.count(0, 1, 700);
        assert_eq!(table.lead(0), 700);
        table.count(0, 1, u32::MAX);
        assert!(table.lead(0) >= 1 << 15);
    }

    #[test]
    fn sixty_four_bytes_do_for_a_page_on_sixteen_nodes() {
        assert_eq!(Table::new(16, true).bytes_per_page(), 64);
        assert_eq!(Table::new(16, false).bytes_per_page(), 32);
    }
}
