//! A last-level cache: one array that all CPUs of a domain fill, or one whose ways are parted among them; or none,
//! where the first level is the last.
//!
//! Where it is parted, a CPU finds what any of them has brought, and replaces only what it has brought
//! itself: way partitioning as processors offer it.

use crate::cache::{Cache, Entry};
use std::cell::Cell;

/// The last level of a domain of CPUs.
pub(crate) struct LastLevel {
    /// One, or one for each CPU of the domain, or none.
    parts: Vec<Cache>,
}

impl LastLevel {
    /// An empty cache of the described shape.
    pub(crate) fn new(shape: &hearth_machine::Cache, line_bytes: u64) -> Self {
        let count = if shape.is_parted { shape.shared_by as u32 } else { 1 };
        let part = hearth_machine::Cache {
            ways: shape.ways / count,
            size_bytes: shape.size_bytes / u64::from(count),
            ..shape.clone()
        };
        Self { parts: (0..count).map(|_| Cache::new(&part, line_bytes)).collect() }
    }

    /// None: it never has anything.
    pub(crate) fn none() -> Self {
        Self { parts: Vec::new() }
    }

    /// The part that a CPU fills, by its place in the domain.
    #[inline(always)]
    fn part(&self, place: usize) -> Option<&Cache> {
        self.parts.get(if self.parts.len() == 1 { 0 } else { place })
    }

    /// What the first part has for a line that has anything.
    #[inline(always)]
    fn find<'a, T>(&'a self, look: impl Fn(&'a Cache) -> Option<T>) -> Option<T> {
        match &self.parts[..] {
            [whole] => look(whole),
            parts => parts.iter().find_map(look),
        }
    }

    /// Looks a line up; on a hit makes it the most recent of its set.
    #[inline]
    pub(crate) fn touch(&self, line: u32) -> bool {
        self.find(|part| part.touch(line)).is_some()
    }

    /// The entry of a line, with the order left as it is.
    #[inline]
    pub(crate) fn peek(&self, line: u32) -> Option<&Cell<Entry>> {
        self.find(|part| part.peek(line))
    }

    /// Puts in a line that is absent, for the CPU of this place in the domain; returns the entry that had
    /// to leave.
    #[inline(always)]
    pub(crate) fn insert(&self, place: usize, line: u32, flags: Entry) -> Option<Entry> {
        self.part(place)?.insert(line, flags)
    }

    /// Takes a line out; returns its entry if it was there.
    pub(crate) fn remove(&self, line: u32) -> Option<Entry> {
        self.find(|part| part.remove(line))
    }

    /// Every entry present.
    pub(crate) fn entries(&self) -> impl Iterator<Item = Entry> + '_ {
        self.parts.iter().flat_map(Cache::entries)
    }
}
