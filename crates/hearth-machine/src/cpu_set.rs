//! Sets of CPUs, as `cpu_set_t`: plain values, of one size for every machine.

use crate::MAX_CPUS;
use crate::list::{parse_list, show_list};
use std::cmp::Ordering;
use std::fmt;
use std::ops::{BitAnd, BitOr};

const WORDS: usize = MAX_CPUS / u64::BITS as usize;
const _: () = assert!(MAX_CPUS.is_multiple_of(u64::BITS as usize));

/// CPUs below number [`MAX_CPUS`], each once.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct CpuSet([u64; WORDS]);

impl CpuSet {
    /// No CPU.
    pub const NONE: Self = Self([0; WORDS]);

    /// Every CPU of any machine.
    pub const ALL: Self = Self([u64::MAX; WORDS]);

    /// One CPU.
    ///
    /// # Panics
    /// Here and in all that takes a CPU: if its number is [`MAX_CPUS`] or more.
    #[must_use]
    pub fn one(cpu: usize) -> Self {
        let mut set = Self::NONE;
        set.insert(cpu);
        set
    }

    /// Of the first 64 CPUs those whose bits are set.
    #[must_use]
    pub fn of_word(word: u64) -> Self {
        let mut set = Self::NONE;
        set.0[0] = word;
        set
    }

    /// The CPUs whose bits are set: CPU n is bit n % 64 of word n / 64.
    pub fn of_words(words: [u64; WORDS]) -> Self {
        Self(words)
    }

    /// The first CPUs, so many of them.
    #[must_use]
    pub fn first(count: usize) -> Self {
        (0..count).collect()
    }

    /// Reads a list such as `0-3,8`, which may be empty. `None` if it is none, or has a number of [`MAX_CPUS`] or
    /// more.
    pub fn parse(text: &str) -> Option<Self> {
        let cpus = parse_list(text)?;
        cpus.last().is_none_or(|last| *last < MAX_CPUS).then(|| cpus.into_iter().collect())
    }

    /// Whether a CPU is among them.
    #[inline]
    pub fn has(&self, cpu: usize) -> bool {
        self.0[cpu / 64] >> (cpu % 64) & 1 == 1
    }

    /// Adds a CPU.
    #[inline]
    pub fn insert(&mut self, cpu: usize) {
        self.0[cpu / 64] |= 1 << (cpu % 64);
    }

    /// Takes a CPU out.
    #[inline]
    pub fn remove(&mut self, cpu: usize) {
        self.0[cpu / 64] &= !(1 << (cpu % 64));
    }

    /// These, and a CPU.
    #[must_use]
    pub fn with(mut self, cpu: usize) -> Self {
        self.insert(cpu);
        self
    }

    /// These, but for a CPU.
    #[must_use]
    pub fn without(mut self, cpu: usize) -> Self {
        self.remove(cpu);
        self
    }

    /// All that are not among these.
    #[must_use]
    pub fn others(self) -> Self {
        Self(self.0.map(|word| !word))
    }

    /// How many they are.
    pub fn len(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Whether there is none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        *self == Self::NONE
    }

    /// The one with the lowest number.
    #[inline]
    pub fn lowest(&self) -> Option<usize> {
        let word = self.0.iter().position(|word| *word != 0)?;
        Some(word * 64 + self.0[word].trailing_zeros() as usize)
    }

    /// The lowest from `start` on; if there is none there, the lowest.
    pub fn next(&self, start: usize) -> Option<usize> {
        (start..MAX_CPUS).find(|cpu| self.has(*cpu)).or_else(|| self.lowest())
    }

    /// Takes out the one with the lowest number.
    #[inline]
    pub fn pop(&mut self) -> Option<usize> {
        let lowest = self.lowest()?;
        self.0[lowest / 64] &= self.0[lowest / 64] - 1;
        Some(lowest)
    }

    /// All, in ascending order.
    pub fn iter(self) -> impl Iterator<Item = usize> {
        let mut rest = self;
        std::iter::from_fn(move || rest.pop())
    }

    /// As words of 64 bits: CPU n is bit n % 64 of word n / 64.
    pub fn words(&self) -> [u64; WORDS] {
        self.0
    }
}

impl PartialOrd for CpuSet {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// By their numbers one after the other, as lists are.
impl Ord for CpuSet {
    fn cmp(&self, other: &Self) -> Ordering {
        self.iter().cmp(other.iter())
    }
}

impl BitAnd for CpuSet {
    type Output = Self;

    #[inline]
    fn bitand(self, other: Self) -> Self {
        Self(std::array::from_fn(|word| self.0[word] & other.0[word]))
    }
}

impl BitOr for CpuSet {
    type Output = Self;

    #[inline]
    fn bitor(self, other: Self) -> Self {
        Self(std::array::from_fn(|word| self.0[word] | other.0[word]))
    }
}

impl FromIterator<usize> for CpuSet {
    fn from_iter<I: IntoIterator<Item = usize>>(cpus: I) -> Self {
        cpus.into_iter().fold(Self::NONE, Self::with)
    }
}

impl<const N: usize> From<[usize; N]> for CpuSet {
    fn from(cpus: [usize; N]) -> Self {
        cpus.into_iter().collect()
    }
}

/// As a list: `{0-3,8}`.
impl fmt::Debug for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{{}}}", show_list(&self.iter().collect::<Vec<_>>()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::btree_set;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn sets_are_those_of_the_standard_library(
            a in btree_set(0..MAX_CPUS, 0..40), b in btree_set(0..MAX_CPUS, 0..40), cpu in 0..MAX_CPUS,
        ) {
            let (set, other): (CpuSet, CpuSet) = (a.iter().copied().collect(), b.iter().copied().collect());
            prop_assert!(set.iter().eq(a.iter().copied()));
            prop_assert!((set & other).iter().eq(a.intersection(&b).copied()));
            prop_assert!((set | other).iter().eq(a.union(&b).copied()));
            prop_assert!(set.others().iter().eq((0..MAX_CPUS).filter(|cpu| !a.contains(cpu))));
            prop_assert_eq!((set.len(), set.is_empty(), set.has(cpu)), (a.len(), a.is_empty(), a.contains(&cpu)));
            prop_assert_eq!(set.lowest(), a.first().copied());
            prop_assert_eq!(set.next(cpu), a.range(cpu..).next().or(a.first()).copied());
            prop_assert!(set.with(cpu).has(cpu) && !set.without(cpu).has(cpu));
            prop_assert_eq!(set.with(cpu).without(cpu), set.without(cpu));
            prop_assert_eq!(set.cmp(&other), a.cmp(&b));
            prop_assert_eq!(CpuSet::parse(&show_list(&a.iter().copied().collect::<Vec<_>>())), Some(set));
            let words = set.words();
            prop_assert!((0..MAX_CPUS).all(|cpu| (words[cpu / 64] >> (cpu % 64) & 1 == 1) == a.contains(&cpu)));
        }
    }

    #[test]
    fn sets_are_shown_as_lists() {
        assert_eq!(format!("{:?} {:?}", CpuSet::first(4).with(511), CpuSet::NONE), "{0-3,511} {}");
    }
}
