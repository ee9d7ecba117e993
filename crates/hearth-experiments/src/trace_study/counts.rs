//! How many misses each CPU had to each page.

use super::trace::{Event, Trace};
use hearth_policy::pages::{Misses, NodeId};

/// Misses of one kind, by page and CPU.
pub(super) struct Table {
    cpus: usize,
    misses: Vec<u32>,
}

/// Misses of both kinds.
pub(super) struct Counts {
    pub(super) tlb: Table,
    pub(super) cache: Table,
}

impl Table {
    fn new(pages: usize, cpus: usize) -> Self {
        Self { cpus, misses: vec![0; pages * cpus] }
    }

    pub(super) fn pages(&self) -> usize {
        self.misses.len() / self.cpus
    }

    /// By CPU.
    pub(super) fn of_page(&self, page: usize) -> &[u32] {
        &self.misses[page * self.cpus..(page + 1) * self.cpus]
    }

    /// All CPUs together.
    pub(super) fn sum(&self, page: usize) -> u64 {
        self.of_page(page).iter().copied().map(u64::from).sum()
    }

    pub(super) fn total(&self) -> u64 {
        self.misses.iter().copied().map(u64::from).sum()
    }

    /// The CPU with most misses to a page, the lowest of several; none if nobody had any.
    pub(super) fn holder(&self, page: usize) -> Option<NodeId> {
        let of_page = self.of_page(page);
        let most = of_page.iter().copied().max().filter(|most| *most > 0)?;
        of_page.iter().position(|misses| *misses == most).map(|cpu| cpu as NodeId)
    }

    /// The pages, that with most misses first; of equal ones the lower first.
    pub(super) fn hottest(&self) -> Vec<usize> {
        let mut pages: Vec<usize> = (0..self.pages()).collect();
        pages.sort_by_key(|&page| std::cmp::Reverse(self.sum(page)));
        pages
    }
}

impl Counts {
    pub(super) fn new(trace: &Trace<'_>) -> Self {
        let table = || Table::new(trace.pages(), trace.cpus());
        Self { tlb: table(), cache: table() }
    }

    /// Of the whole trace.
    pub(super) fn of(trace: &Trace<'_>) -> Self {
        let mut counts = Self::new(trace);
        trace.events().for_each(|event| counts.add(&event));
        counts
    }

    pub(super) fn add(&mut self, event: &Event) {
        let table = match event.kind {
            Misses::Tlb => &mut self.tlb,
            Misses::Cache => &mut self.cache,
        };
        table.misses[event.page as usize * table.cpus + usize::from(event.node)] += 1;
    }

    pub(super) fn clear(&mut self) {
        self.tlb.misses.fill(0);
        self.cache.misses.fill(0);
    }
}
