//! A fully associative translation look-aside buffer, replaced first in, first out, or at random.
//!
//! Pages are numbered densely, so an array over pages says at once whether one is present.

use hearth_machine::Replacement;
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg32;

/// One CPU's TLB.
pub(crate) struct Tlb {
    present: Vec<bool>,
    /// Those that are not wired.
    entries: Vec<u32>,
    next: usize,
    /// Says which entry is replaced, where that is by chance.
    chance: Option<Pcg32>,
}

impl Tlb {
    pub(crate) fn new(shape: hearth_machine::Tlb, seed: u64) -> Self {
        Self {
            present: Vec::new(),
            entries: vec![u32::MAX; (shape.entries - shape.wired).max(1)],
            next: 0,
            chance: (shape.replacement == Replacement::Random).then(|| Pcg32::seed_from_u64(seed)),
        }
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
    #[inline(always)]
    pub(crate) fn insert(&mut self, page: u32) -> Option<u32> {
        if self.present.len() <= page as usize {
            self.present.resize((page as usize + 1).next_power_of_two(), false);
        }
        if let Some(chance) = &mut self.chance {
            self.next = chance.next_u32() as usize % self.entries.len();
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

    fn tlb(entries: usize, wired: usize, replacement: Replacement) -> Tlb {
        Tlb::new(hearth_machine::Tlb { entries, wired, replacement, refill_cycles: 1 }, 1)
    }

    #[test]
    fn the_oldest_page_leaves_first() {
        let mut tlb = tlb(2, 0, Replacement::Oldest);
        assert_eq!(tlb.insert(7), None);
        assert_eq!(tlb.insert(9), None);
        assert_eq!(tlb.insert(8), Some(7));
        assert!(tlb.holds(9) && tlb.holds(8) && !tlb.holds(7));
    }

    #[test]
    fn a_page_that_was_taken_out_is_absent_and_may_come_back() {
        let mut tlb = tlb(2, 0, Replacement::Oldest);
        tlb.insert(7);
        tlb.insert(9);
        tlb.remove(7);
        tlb.remove(3);
        assert!(!tlb.holds(7) && tlb.holds(9));
        assert_eq!(tlb.insert(7), None, "the entry of the page itself is the oldest, and is unused");
        assert_eq!(tlb.insert(8), Some(9));
    }

    #[test]
    fn by_chance_any_page_may_leave_but_never_a_wired_entry_is_used() {
        let mut tlb = tlb(12, 4, Replacement::Random);
        let victims: Vec<Option<u32>> = (0..1000).map(|page| tlb.insert(page)).collect();
        assert_eq!((0..1000).filter(|&page| tlb.holds(page)).count(), 8, "as many as are not wired");
        let ages = victims.iter().zip(0..).filter_map(|(victim, page)| Some(page - (*victim)?));
        let (youngest, oldest) = ages.fold((u32::MAX, 0), |(low, high), age| (low.min(age), high.max(age)));
        assert!(youngest == 1 && oldest > 24, "from {youngest} to {oldest} refills old");
    }
}
