//! For each line a set of CPUs, or of domains: as bits, in as few bytes as the machine's number of them needs. There
//! are many lines, so these arrays compete for the host's caches. Where only one can have a line nothing is kept:
//! it counts as having each, and who asks looks.

use super::widen;
use hearth_machine::CpuSet;
use std::ops::{BitAnd, BitOr};

/// A set as the caches reckon with it: a word, or on a machine of more than 64 CPUs a [`CpuSet`].
pub(crate) trait Set: Copy + BitAnd<Output = Self> + BitOr<Output = Self> {
    const NONE: Self;

    fn one(member: usize) -> Self;

    /// Those whose bits are set.
    fn of_word(word: u64) -> Self;

    /// Of members below 64, their bits.
    fn word(self) -> u64;

    /// All but these.
    fn others(self) -> Self;

    fn is_empty(self) -> bool;

    fn lowest(self) -> Option<usize>;

    /// Takes out the lowest.
    fn pop(&mut self) -> Option<usize>;

    /// The one that there is, if there is one only.
    #[inline(always)]
    fn only(mut self) -> Option<usize> {
        self.pop().filter(|_| self.is_empty())
    }

    fn has(self, member: usize) -> bool {
        !(self & Self::one(member)).is_empty()
    }
}

impl Set for u64 {
    const NONE: Self = 0;

    #[inline(always)]
    fn one(member: usize) -> Self {
        1 << member
    }

    #[inline(always)]
    fn of_word(word: u64) -> Self {
        word
    }

    #[inline(always)]
    fn word(self) -> u64 {
        self
    }

    #[inline(always)]
    fn others(self) -> Self {
        !self
    }

    #[inline(always)]
    fn is_empty(self) -> bool {
        self == 0
    }

    #[inline(always)]
    fn lowest(self) -> Option<usize> {
        (self != 0).then(|| self.trailing_zeros() as usize)
    }

    #[inline(always)]
    fn pop(&mut self) -> Option<usize> {
        let lowest = self.lowest()?;
        *self &= *self - 1;
        Some(lowest)
    }
}

impl Set for CpuSet {
    const NONE: Self = CpuSet::NONE;

    fn one(member: usize) -> Self {
        CpuSet::one(member)
    }

    fn of_word(word: u64) -> Self {
        CpuSet::of_word(word)
    }

    fn word(self) -> u64 {
        self.words()[0]
    }

    fn others(self) -> Self {
        CpuSet::others(self)
    }

    fn is_empty(self) -> bool {
        CpuSet::is_empty(&self)
    }

    fn lowest(self) -> Option<usize> {
        CpuSet::lowest(&self)
    }

    fn pop(&mut self) -> Option<usize> {
        CpuSet::pop(self)
    }
}

/// A set for each line.
pub(super) enum Members<S> {
    Lone,
    UpTo8(Vec<u8>),
    UpTo16(Vec<u16>),
    UpTo32(Vec<u32>),
    UpTo64(Vec<u64>),
    Wide(Vec<S>),
}

impl<S: Set> Members<S> {
    /// Of sets that take members below `count`; of no lines yet.
    pub(super) fn new(count: usize) -> Self {
        match count {
            ..=1 => Self::Lone,
            2..=8 => Self::UpTo8(Vec::new()),
            9..=16 => Self::UpTo16(Vec::new()),
            17..=32 => Self::UpTo32(Vec::new()),
            33..=64 => Self::UpTo64(Vec::new()),
            _ => Self::Wide(Vec::new()),
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
            Self::Wide(sets) => widen(sets, lines, S::NONE),
        }
    }

    /// The set of a line.
    #[inline(always)]
    pub(super) fn of(&self, line: u32) -> S {
        match self {
            Self::Lone => S::of_word(1),
            Self::UpTo8(sets) => S::of_word(sets[line as usize].into()),
            Self::UpTo16(sets) => S::of_word(sets[line as usize].into()),
            Self::UpTo32(sets) => S::of_word(sets[line as usize].into()),
            Self::UpTo64(sets) => S::of_word(sets[line as usize]),
            Self::Wide(sets) => sets[line as usize],
        }
    }

    /// Adds members to the set of a line.
    #[inline(always)]
    pub(super) fn add(&mut self, line: u32, members: S) {
        match self {
            Self::Lone => {}
            Self::UpTo8(sets) => sets[line as usize] |= members.word() as u8,
            Self::UpTo16(sets) => sets[line as usize] |= members.word() as u16,
            Self::UpTo32(sets) => sets[line as usize] |= members.word() as u32,
            Self::UpTo64(sets) => sets[line as usize] |= members.word(),
            Self::Wide(sets) => sets[line as usize] = sets[line as usize] | members,
        }
    }

    /// Keeps of the set of a line only these members.
    #[inline(always)]
    pub(super) fn keep(&mut self, line: u32, members: S) {
        match self {
            Self::Lone => {}
            Self::UpTo8(sets) => sets[line as usize] &= members.word() as u8,
            Self::UpTo16(sets) => sets[line as usize] &= members.word() as u16,
            Self::UpTo32(sets) => sets[line as usize] &= members.word() as u32,
            Self::UpTo64(sets) => sets[line as usize] &= members.word(),
            Self::Wide(sets) => sets[line as usize] = sets[line as usize] & members,
        }
    }
}
