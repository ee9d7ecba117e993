//! A fully associative translation look-aside buffer, replaced first in, first out.
//!
//! Pages are numbered densely, so an array over pages says at once whether one is present.

/// One CPU's TLB.
pub(crate) struct Tlb {
    present: Vec<bool>,
    entries: Vec<u32>,
    next: usize,
}

impl Tlb {
    pub(crate) fn new(entries: usize) -> Self {
        Self { present: Vec::new(), entries: vec![u32::MAX; entries.max(1)], next: 0 }
    }

    #[inline(always)]
    pub(crate) fn holds(&self, page: u32) -> bool {
        self.present.get(page as usize).copied().unwrap_or(false)
    }

    /// Takes a page out, if it is there: it has gone elsewhere. Its entry stays unused until its turn.
    pub(crate) fn remove(&mut self, page: u32) {
        if !self.holds(page) {
            return;
        }
        self.present[page as usize] = false;
        if let Some(entry) = self.entries.iter_mut().find(|entry| **entry == page) {
            *entry = u32::MAX;
        }
    }

    /// Puts in a page that is absent; returns the page that had to leave.
    pub(crate) fn insert(&mut self, page: u32) -> Option<u32> {
        if self.present.len() <= page as usize {
            self.present.resize((page as usize + 1).next_power_of_two(), false);
        }
        let victim = std::mem::replace(&mut self.entries[self.next], page);
        self.next += 1;
        if self.next == self.entries.len() {
            self.next = 0;
        }
        self.present[page as usize] = true;
        if victim == u32::MAX {
            return None;
        }
        self.present[victim as usize] = false;
        Some(victim)
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
        assert_eq!(tlb.insert(8), Some(7));
        assert!(tlb.holds(9) && tlb.holds(8) && !tlb.holds(7));
    }

    #[test]
    fn a_page_that_was_taken_out_is_absent_and_may_come_back() {
        let mut tlb = Tlb::new(2);
        tlb.insert(7);
        tlb.insert(9);
        tlb.remove(7);
        tlb.remove(3);
        assert!(!tlb.holds(7) && tlb.holds(9));
        assert_eq!(tlb.insert(7), None, "the entry of the page itself is the oldest, and is unused");
        assert_eq!(tlb.insert(8), Some(9));
    }
}
