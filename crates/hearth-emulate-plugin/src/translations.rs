//! Which lines of memory recently used addresses mean, for one CPU of the guest.
//!
//! QEMU says the physical address of a reference, but takes longer for it than the caches do. A CPU keeps what
//! it was told, page by page, until it [may have changed](crate::instructions::may_change_translations), as its
//! own TLB does.

const PAGE_SHIFT: u32 = 12;
const ENTRIES: usize = 256;
/// Where the age of an entry begins in its key, above the number of its page.
const AGE_SHIFT: u32 = u64::BITS - PAGE_SHIFT;
const AGES: u64 = 1 << PAGE_SHIFT;

#[derive(Clone, Copy)]
struct Entry {
    /// Number of the page, and the age of the table in which it was put in.
    key: u64,
    /// The page's first line.
    first: u32,
}

const NOTHING: Entry = Entry { key: u64::MAX, first: 0 };

/// The table: direct mapped, emptied in one step by its age.
pub(crate) struct Translations {
    entries: [Entry; ENTRIES],
    /// In the bits of a key where it belongs; the greatest one is for [`NOTHING`].
    age: u64,
    line_shift: u32,
}

impl Translations {
    pub(crate) fn new(line_bytes: u64) -> Self {
        Self { entries: [NOTHING; ENTRIES], age: 0, line_shift: line_bytes.trailing_zeros() }
    }

    #[inline(always)]
    fn line_in_page(&self, address: u64) -> u32 {
        (address as u32 & ((1 << PAGE_SHIFT) - 1)) >> self.line_shift
    }

    /// The line of an address, if it is remembered.
    #[inline(always)]
    pub(crate) fn line(&self, address: u64) -> Option<u32> {
        let page = address >> PAGE_SHIFT;
        let entry = &self.entries[page as usize % ENTRIES];
        (entry.key == page | self.age).then(|| entry.first + self.line_in_page(address))
    }

    /// Remembers what line an address means.
    pub(crate) fn remember(&mut self, address: u64, line: u32) {
        let page = address >> PAGE_SHIFT;
        let first = line - self.line_in_page(address);
        self.entries[page as usize % ENTRIES] = Entry { key: page | self.age, first };
    }

    /// Forgets everything.
    pub(crate) fn forget(&mut self) {
        self.age = self.age.wrapping_add(1 << AGE_SHIFT);
        if self.age >> AGE_SHIFT == AGES - 1 {
            self.entries = [NOTHING; ENTRIES];
            self.age = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_remembered_with_all_its_lines_until_it_is_forgotten() {
        let mut translations = Translations::new(64);
        translations.remember(0xffff_8880_0000_1040, 513);
        assert_eq!(translations.line(0xffff_8880_0000_1040), Some(513));
        assert_eq!(translations.line(0xffff_8880_0000_1fff), Some(575));
        assert_eq!(translations.line(0xffff_8880_0000_2000), None);
        translations.forget();
        assert_eq!(translations.line(0xffff_8880_0000_1040), None);
    }

    #[test]
    fn what_was_forgotten_stays_so_when_ages_come_round() {
        let mut translations = Translations::new(64);
        translations.remember(0x1000, 64);
        for _ in 0..2 * AGES {
            translations.forget();
            assert_eq!(translations.line(0x1000), None);
        }
        translations.remember(0x1000, 128);
        assert_eq!(translations.line(0x1000), Some(128));
    }
}
