//! How long references are, by the word in which QEMU describes them: it is asked once for each sort.

const ENTRIES: usize = 64;

#[derive(Clone, Copy)]
struct Entry {
    sort: u32,
    bytes: u32,
}

/// The sorts of references that a CPU has made: a table, direct mapped.
pub(crate) struct Lengths {
    entries: [Entry; ENTRIES],
}

impl Lengths {
    pub(crate) fn new() -> Self {
        Self { entries: [Entry { sort: 0, bytes: 0 }; ENTRIES] }
    }

    /// Words differ in few bits, anywhere: Fibonacci hashing.
    #[inline(always)]
    fn place(sort: u32) -> usize {
        (sort.wrapping_mul(0x9e37_79b1) >> (u32::BITS - ENTRIES.ilog2())) as usize
    }

    /// The bytes of a reference of a sort, if they are remembered.
    #[inline(always)]
    pub(crate) fn of(&self, sort: u32) -> Option<u64> {
        let entry = &self.entries[Self::place(sort)];
        (entry.sort == sort && entry.bytes > 0).then_some(u64::from(entry.bytes))
    }

    /// Remembers the bytes of references of a sort.
    pub(crate) fn remember(&mut self, sort: u32, bytes: u64) {
        self.entries[Self::place(sort)] = Entry { sort, bytes: bytes as u32 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sort_has_its_own_length() {
        let mut lengths = Lengths::new();
        assert_eq!(lengths.of(0), None);
        for sort in (0..1 << 18).step_by(7) {
            assert_eq!(lengths.of(sort), None);
            lengths.remember(sort, 1 << (sort % 5));
            assert_eq!(lengths.of(sort), Some(1 << (sort % 5)));
        }
    }
}
