//! A fully associative translation look-aside buffer, replaced first in, first out.
//!
//! Pages are numbered densely, so an array over pages says at once whether one is present.

const PRESENT: u64 = 1 << 63;
/// Groups of lines that a page is divided into.
pub(crate) const GROUPS: u32 = 32;

/// One CPU's TLB.
pub(crate) struct Tlb {
    /// By page: bit 63 says whether it is present; the others which of its lines the CPU's filter may
    /// remember, in groups if a page has more than 32.
    pages: Vec<u64>,
    entries: Vec<u32>,
    next: usize,
}

impl Tlb {
    pub(crate) fn new(entries: usize) -> Self {
        Self { pages: Vec::new(), entries: vec![u32::MAX; entries.max(1)], next: 0 }
    }

    #[inline(always)]
    pub(crate) fn holds(&self, page: u32) -> bool {
        self.pages.get(page as usize).is_some_and(|&state| state & PRESENT != 0)
    }

    /// Notes that the filter remembers a line of a page that is present.
    #[inline(always)]
    pub(crate) fn remember(&mut self, page: u32, group: u32) {
        self.pages[page as usize] |= 1 << (group % GROUPS);
    }

    /// Puts in a page that is absent; returns the page that had to leave, with its remembered groups.
    pub(crate) fn insert(&mut self, page: u32) -> Option<(u32, u64)> {
        if self.pages.len() <= page as usize {
            self.pages.resize((page as usize + 1).next_power_of_two(), 0);
        }
        let victim = std::mem::replace(&mut self.entries[self.next], page);
        self.next += 1;
        if self.next == self.entries.len() {
            self.next = 0;
        }
        self.pages[page as usize] = PRESENT;
        if victim == u32::MAX {
            return None;
        }
        Some((victim, std::mem::take(&mut self.pages[victim as usize]) & !PRESENT))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_page_leaves_first() {
        let mut tlb = Tlb::new(2);
        assert_eq!(tlb.insert(7), None);
        assert_eq!(tlb.insert(9), None);
        tlb.remember(7, 5);
        assert_eq!(tlb.insert(8), Some((7, 1 << 5)));
        assert!(tlb.holds(9) && tlb.holds(8) && !tlb.holds(7));
    }
}
