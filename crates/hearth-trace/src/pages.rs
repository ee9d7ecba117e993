//! Dense page numbers: the program's pages numbered in the order of their first appearance.

use std::collections::HashMap;

const RECENT: usize = 4096;
const NO_PAGE: u64 = u64::MAX;

/// From virtual page numbers to dense ones, with a direct-mapped table of recent pages in front.
pub(crate) struct Pages {
    recent: Vec<(u64, u32)>,
    numbers: HashMap<u64, u32>,
}

impl Pages {
    pub fn new() -> Self {
        Pages { recent: vec![(NO_PAGE, 0); RECENT], numbers: HashMap::new() }
    }

    pub fn len(&self) -> u64 {
        self.numbers.len() as u64
    }

    /// The dense number of a virtual page, a new one if the page is new.
    #[inline]
    pub fn number(&mut self, page: u64) -> u32 {
        let (known, number) = self.recent[page as usize % RECENT];
        if known == page { number } else { self.look_up(page) }
    }

    #[cold]
    fn look_up(&mut self, page: u64) -> u32 {
        let next = self.numbers.len() as u32;
        let number = *self.numbers.entry(page).or_insert(next);
        self.recent[page as usize % RECENT] = (page, number);
        number
    }
}
