//! Dense page numbers: the program's pages numbered in the order of their first appearance.

const LOW_BITS: u32 = 18;
const LOW: usize = 1 << LOW_BITS;

/// From virtual page numbers (36 bits) to dense ones: a table of tables, one for each GiB touched.
pub(crate) struct Pages {
    /// Dense numbers plus one; 0 where the page has not been seen.
    tables: Vec<Option<Box<[u32]>>>,
    count: u32,
}

impl Pages {
    pub fn new() -> Self {
        Pages { tables: vec![None; LOW], count: 0 }
    }

    pub fn len(&self) -> u64 {
        self.count.into()
    }

    /// The dense number of a virtual page, a new one if the page is new.
    #[inline]
    pub fn number(&mut self, page: u64) -> u32 {
        let (high, low) = ((page >> LOW_BITS) as usize % LOW, page as usize % LOW);
        match &self.tables[high] {
            Some(table) if table[low] != 0 => table[low] - 1,
            _ => self.add(high, low),
        }
    }

    #[cold]
    fn add(&mut self, high: usize, low: usize) -> u32 {
        let table = self.tables[high].get_or_insert_with(|| vec![0; LOW].into());
        self.count += 1;
        table[low] = self.count;
        self.count - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_numbered_in_the_order_of_their_first_appearance() {
        let mut pages = Pages::new();
        let seen = [7, (1 << 36) - 1, 7, 0, 1 << 18].map(|page| pages.number(page));
        assert_eq!(seen, [0, 1, 0, 2, 3]);
        assert_eq!(pages.len(), 4);
    }
}
