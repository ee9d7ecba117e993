//! For each line a set of CPUs, or of domains: as bits, in as few bytes as the machine's number of them needs. There
//! are many lines, so these arrays compete for the host's caches. Where only one can have a line nothing is kept:
//! it counts as having each, and who asks looks.

use super::widen;

/// A set for each line.
pub(super) enum Members {
    Lone,
    UpTo8(Vec<u8>),
    UpTo16(Vec<u16>),
    UpTo32(Vec<u32>),
    UpTo64(Vec<u64>),
}

impl Members {
    /// Of sets that take members below `count`; of no lines yet.
    pub(super) fn new(count: usize) -> Self {
        match count {
            ..=1 => Self::Lone,
            2..=8 => Self::UpTo8(Vec::new()),
            9..=16 => Self::UpTo16(Vec::new()),
            17..=32 => Self::UpTo32(Vec::new()),
            _ => Self::UpTo64(Vec::new()),
        }
    }

    /// Makes room for lines `0..lines`.
    pub(super) fn grow(&mut self, lines: usize) {
        match self {
            Self::Lone => {}
            Self::UpTo8(sets) => widen(sets, lines, 0),
            Self::UpTo16(sets) => widen(sets, lines, 0),
            Self::UpTo32(sets) => widen(sets, lines, 0),
            Self::UpTo64(sets) => widen(sets, lines, 0),
        }
    }

    /// The set of a line.
    #[inline(always)]
    pub(super) fn of(&self, line: u32) -> u64 {
        match self {
            Self::Lone => 1,
            Self::UpTo8(sets) => sets[line as usize].into(),
            Self::UpTo16(sets) => sets[line as usize].into(),
            Self::UpTo32(sets) => sets[line as usize].into(),
            Self::UpTo64(sets) => sets[line as usize],
        }
    }

    /// Adds members to the set of a line.
    #[inline(always)]
    pub(super) fn add(&mut self, line: u32, members: u64) {
        match self {
            Self::Lone => {}
            Self::UpTo8(sets) => sets[line as usize] |= members as u8,
            Self::UpTo16(sets) => sets[line as usize] |= members as u16,
            Self::UpTo32(sets) => sets[line as usize] |= members as u32,
            Self::UpTo64(sets) => sets[line as usize] |= members,
        }
    }

    /// Keeps of the set of a line only these members.
    #[inline(always)]
    pub(super) fn keep(&mut self, line: u32, members: u64) {
        match self {
            Self::Lone => {}
            Self::UpTo8(sets) => sets[line as usize] &= members as u8,
            Self::UpTo16(sets) => sets[line as usize] &= members as u16,
            Self::UpTo32(sets) => sets[line as usize] &= members as u32,
            Self::UpTo64(sets) => sets[line as usize] &= members,
        }
    }
}
