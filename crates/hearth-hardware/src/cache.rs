//! A set-associative cache array with exact LRU replacement.
//!
//! The ways of a set lie in order of recency, most recent first, so the order needs no storage of
//! its own: a hit rotates the entries ahead of it by one, the victim is the last. An entry packs
//! the line number with three flags into 32 bits; eight ways are half a host cache line.

use std::cell::Cell;
use wide::u32x4;

/// An entry: the line number above three flags.
pub(crate) type Entry = u32;

/// The CPU may write the line without asking: no other cache holds it.
pub(crate) const OWNED: Entry = 1;
/// The line differs from the next level's copy.
pub(crate) const DIRTY: Entry = 2;
/// Of a private second level: the line was fetched as code, so that the first level may have it as that.
pub(crate) const CODE: Entry = 4;
const FLAG_BITS: u32 = 3;
/// Lines are numbered below this.
pub(crate) const LINES: u32 = u32::MAX >> FLAG_BITS;

const EMPTY: Entry = Entry::MAX;

/// The line that an entry holds.
#[inline(always)]
pub(crate) fn line_of(entry: Entry) -> u32 {
    entry >> FLAG_BITS
}

/// The entry of a line.
#[inline(always)]
pub(crate) fn entry_of(line: u32, flags: Entry) -> Entry {
    line << FLAG_BITS | flags
}

/// Calls a function that is made for the number of ways of a set, or does something else where there is none.
macro_rules! by_ways {
    ($set:expr, $made:ident($argument:expr), $otherwise:expr) => {
        match $set.len() {
            4 => $made::<4>($set, $argument),
            8 => $made::<8>($set, $argument),
            12 => $made::<12>($set, $argument),
            16 => $made::<16>($set, $argument),
            _ => $otherwise,
        }
    };
}

/// The way of a set that holds a line. Looks at four ways at once, without a branch for each: where the
/// line is would be anyone's guess to a branch predictor.
#[inline(always)]
fn way_of(set: &[Cell<Entry>], line: u32) -> Option<usize> {
    let hits = by_ways!(set, hits(line), {
        return set.iter().position(|entry| line_of(entry.get()) == line);
    });
    (hits != 0).then(|| hits.trailing_zeros() as usize)
}

/// A bit for each way that holds the line.
#[inline(always)]
fn hits<const WAYS: usize>(set: &[Cell<Entry>], line: u32) -> u32 {
    let Some(set) = set.first_chunk::<WAYS>() else { return 0 };
    let wanted = u32x4::splat(line);
    let mut hits = 0;
    for group in 0..WAYS / 4 {
        let entries = u32x4::new(std::array::from_fn(|way| line_of(set[group * 4 + way].get())));
        hits |= entries.simd_eq(wanted).to_bitmask() << (group * 4);
    }
    hits
}

/// Puts an entry at the front of a set; returns the one that falls off its end.
#[inline(always)]
fn push<const WAYS: usize>(set: &[Cell<Entry>], entry: Entry) -> Entry {
    let Some(set) = set.first_chunk::<WAYS>() else { return EMPTY };
    let old: [Entry; WAYS] = std::array::from_fn(|way| set[way].get());
    set[0].set(entry);
    for way in 1..WAYS {
        set[way].set(old[way - 1]);
    }
    old[WAYS - 1]
}

/// Moves the entry of a way to the front of a set, and those ahead of it back by one. As anyone's guess as the
/// way is how often a loop would go round: every entry is written, four at once, without a branch.
#[inline(always)]
fn promote<const WAYS: usize>(set: &[Cell<Entry>], way: usize) {
    let Some(set) = set.first_chunk::<WAYS>() else { return };
    let old = |place: usize| set[place].get();
    let promoted = old(way);
    let last = u32x4::splat(way as u32);
    // From the back, where an entry is read before the one ahead of it is written in its place.
    for group in (0..WAYS / 4).rev() {
        let first = group * 4;
        let ahead = if group == 0 { promoted } else { old(first - 1) };
        let moved = u32x4::new([ahead, old(first), old(first + 1), old(first + 2)]);
        let kept = u32x4::new([old(first), old(first + 1), old(first + 2), old(first + 3)]);
        let stays = (u32x4::new([0, 1, 2, 3]) + u32x4::splat(first as u32)).simd_gt(last);
        let [a, b, c, d] = (stays & kept | !stays & moved).to_array();
        set[first].set(a);
        set[first + 1].set(b);
        set[first + 2].set(c);
        set[first + 3].set(d);
    }
}

/// A cache: an array of sets. Knows no other cache and no latency. Its entries are in cells, because a
/// CPU looks into its first level without asking for the rest of the memory system.
#[derive(Clone, Debug)]
pub(crate) struct Cache {
    entries: Box<[Cell<Entry>]>,
    ways: usize,
    set_mask: u32,
}

impl Cache {
    /// An empty array of the described shape.
    pub(crate) fn new(shape: &hearth_machine::Cache, line_bytes: u64) -> Self {
        let lines = shape.size_bytes / line_bytes;
        let sets = lines / u64::from(shape.ways);
        debug_assert!(sets.is_power_of_two());
        let entries = vec![Cell::new(EMPTY); lines as usize].into_boxed_slice();
        Self { entries, ways: shape.ways as usize, set_mask: sets as u32 - 1 }
    }

    #[inline(always)]
    fn set(&self, line: u32) -> &[Cell<Entry>] {
        let base = (line & self.set_mask) as usize * self.ways;
        &self.entries[base..base + self.ways]
    }

    /// The most recent entry of the set that a line belongs to: perhaps that line's.
    #[inline(always)]
    pub(crate) fn most_recent(&self, line: u32) -> &Cell<Entry> {
        &self.entries[(line & self.set_mask) as usize * self.ways]
    }

    /// Looks a line up; on a hit makes it the most recent of its set and returns its entry.
    #[inline(always)]
    pub(crate) fn touch(&self, line: u32) -> Option<&Cell<Entry>> {
        let set = self.set(line);
        if line_of(set[0].get()) == line {
            return set.first();
        }
        let way = way_of(set, line)?;
        by_ways!(set, promote(way), {
            (0..=way).fold(set[way].get(), |carried, later| set[later].replace(carried));
        });
        set.first()
    }

    /// The entry of a line, with the order left as it is.
    #[inline]
    pub(crate) fn peek(&self, line: u32) -> Option<&Cell<Entry>> {
        let set = self.set(line);
        set.get(way_of(set, line)?)
    }

    /// Puts in a line that is absent; returns the entry that had to leave.
    #[inline]
    pub(crate) fn insert(&self, line: u32, flags: Entry) -> Option<Entry> {
        let (set, entry) = (self.set(line), entry_of(line, flags));
        let victim =
            by_ways!(set, push(entry), set.iter().fold(entry, |carried, entry| entry.replace(carried)));
        (victim != EMPTY).then_some(victim)
    }

    /// Takes a line out; returns its entry if it was there.
    #[inline]
    pub(crate) fn remove(&self, line: u32) -> Option<Entry> {
        let set = self.set(line);
        let way = way_of(set, line)?;
        Some(set[way..].iter().rev().fold(EMPTY, |carried, entry| entry.replace(carried)))
    }

    /// Every entry present.
    pub(crate) fn entries(&self) -> impl Iterator<Item = Entry> + '_ {
        self.entries.iter().map(Cell::get).filter(|&entry| entry != EMPTY)
    }
}

/// Adds flags to an entry.
#[inline(always)]
pub(crate) fn mark(entry: &Cell<Entry>, flags: Entry) {
    entry.set(entry.get() | flags);
}
