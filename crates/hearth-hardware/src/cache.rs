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
/// All flags of an entry.
pub(crate) const LINE_FLAGS: Entry = (1 << FLAG_BITS) - 1;
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

/// What is asked of a set, whatever its number of ways.
trait Set {
    /// The way that holds a line.
    fn way_of(&self, line: u32) -> Option<usize>;
    /// Moves the entry of a way to the front, and those ahead of it back by one.
    fn promote(&self, way: usize);
    /// Puts an entry at the front; returns the one that falls off the end.
    fn push(&self, entry: Entry) -> Entry;
}

impl<const WAYS: usize> Set for [Cell<Entry>; WAYS] {
    /// Looks at four ways at once, without a branch for each: where the line is would be anyone's guess to a branch
    /// predictor.
    #[inline(always)]
    fn way_of(&self, line: u32) -> Option<usize> {
        let wanted = u32x4::splat(line);
        let mut hits = 0;
        for group in 0..WAYS / 4 {
            let entries = u32x4::new(std::array::from_fn(|way| line_of(self[group * 4 + way].get())));
            hits |= entries.simd_eq(wanted).to_bitmask() << (group * 4);
        }
        (hits != 0).then(|| hits.trailing_zeros() as usize)
    }

    /// As anyone's guess as the way is how often a loop would go round: every entry is written, four at once, without
    /// a branch.
    #[inline(always)]
    fn promote(&self, way: usize) {
        let old = |place: usize| self[place].get();
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
            self[first].set(a);
            self[first + 1].set(b);
            self[first + 2].set(c);
            self[first + 3].set(d);
        }
    }

    #[inline(always)]
    fn push(&self, entry: Entry) -> Entry {
        let old: [Entry; WAYS] = std::array::from_fn(|way| self[way].get());
        self[0].set(entry);
        for way in 1..WAYS {
            self[way].set(old[way - 1]);
        }
        old[WAYS - 1]
    }
}

/// Sets of numbers of ways that few caches have.
impl Set for [Cell<Entry>] {
    fn way_of(&self, line: u32) -> Option<usize> {
        self.iter().position(|entry| line_of(entry.get()) == line)
    }

    fn promote(&self, way: usize) {
        (0..=way).fold(self[way].get(), |carried, later| self[later].replace(carried));
    }

    fn push(&self, entry: Entry) -> Entry {
        self.iter().fold(entry, |carried, entry| entry.replace(carried))
    }
}

/// A number of ways for which there is code of its own, by a number that a jump can go by.
#[derive(Clone, Copy, Debug)]
enum Ways {
    Four,
    Eight,
    Twelve,
    Sixteen,
    Any,
}

/// Evaluates something of the set of a line.
macro_rules! of_set {
    ($cache:expr, $line:expr, |$set:ident| $of_set:expr) => {
        match $cache.usual_ways {
            Ways::Four => {
                let $set = $cache.set_of::<4>($line);
                $of_set
            }
            Ways::Eight => {
                let $set = $cache.set_of::<8>($line);
                $of_set
            }
            Ways::Twelve => {
                let $set = $cache.set_of::<12>($line);
                $of_set
            }
            Ways::Sixteen => {
                let $set = $cache.set_of::<16>($line);
                $of_set
            }
            Ways::Any => {
                let $set = $cache.set($line);
                $of_set
            }
        }
    };
}

/// A cache: an array of sets. Knows no other cache and no latency. Its entries are in cells, because a
/// CPU looks into its first level without asking for the rest of the memory system.
#[derive(Clone, Debug)]
pub(crate) struct Cache {
    entries: Box<[Cell<Entry>]>,
    ways: usize,
    usual_ways: Ways,
    set_mask: u32,
}

/// The most recent entry of each set of a [`Cache`].
#[derive(Clone, Copy)]
pub(crate) struct MostRecent<'a> {
    entries: &'a [Cell<Entry>],
    ways: usize,
    set_mask: u32,
}

impl<'a> MostRecent<'a> {
    /// That of the set that a line belongs to.
    #[inline(always)]
    pub(crate) fn of(self, line: u32) -> &'a Cell<Entry> {
        &self.entries[(line & self.set_mask) as usize * self.ways]
    }
}

impl Cache {
    /// An empty array of the described shape.
    pub(crate) fn new(shape: &hearth_machine::Cache, line_bytes: u64) -> Self {
        let lines = shape.size_bytes / line_bytes;
        let sets = lines / u64::from(shape.ways);
        debug_assert!(sets.is_power_of_two());
        let entries = vec![Cell::new(EMPTY); lines as usize].into_boxed_slice();
        let usual_ways = match shape.ways {
            4 => Ways::Four,
            8 => Ways::Eight,
            12 => Ways::Twelve,
            16 => Ways::Sixteen,
            _ => Ways::Any,
        };
        Self { entries, ways: shape.ways as usize, usual_ways, set_mask: sets as u32 - 1 }
    }

    fn set(&self, line: u32) -> &[Cell<Entry>] {
        let base = (line & self.set_mask) as usize * self.ways;
        &self.entries[base..base + self.ways]
    }

    #[inline(always)]
    fn set_of<const WAYS: usize>(&self, line: u32) -> &[Cell<Entry>; WAYS] {
        &self.entries.as_chunks().0[(line & self.set_mask) as usize]
    }

    /// The most recent entry of the set that a line belongs to: perhaps that line's.
    #[inline(always)]
    pub(crate) fn most_recent(&self, line: u32) -> &Cell<Entry> {
        self.most_recent_entries().of(line)
    }

    /// The most recent entries of all sets.
    #[inline(always)]
    pub(crate) fn most_recent_entries(&self) -> MostRecent<'_> {
        MostRecent { entries: &self.entries, ways: self.ways, set_mask: self.set_mask }
    }

    /// Looks a line up; on a hit makes it the most recent of its set and returns its entry.
    #[inline(always)]
    pub(crate) fn touch(&self, line: u32) -> Option<&Cell<Entry>> {
        of_set!(self, line, |set| {
            if line_of(set[0].get()) != line {
                set.promote(set.way_of(line)?);
            }
            Some(&set[0])
        })
    }

    /// The entry of a line, with the order left as it is.
    #[inline]
    pub(crate) fn peek(&self, line: u32) -> Option<&Cell<Entry>> {
        of_set!(self, line, |set| set.get(set.way_of(line)?))
    }

    /// Puts in a line that is absent; returns the entry that had to leave.
    #[inline(always)]
    pub(crate) fn insert(&self, line: u32, flags: Entry) -> Option<Entry> {
        let victim = of_set!(self, line, |set| set.push(entry_of(line, flags)));
        (victim != EMPTY).then_some(victim)
    }

    /// Takes a line out; returns its entry if it was there.
    #[inline(always)]
    pub(crate) fn remove(&self, line: u32) -> Option<Entry> {
        let way = of_set!(self, line, |set| set.way_of(line)?);
        Some(self.remove_way(line, way))
    }

    /// Most lines that are to be removed are absent.
    #[inline(never)]
    fn remove_way(&self, line: u32, way: usize) -> Entry {
        self.set(line)[way..].iter().rev().fold(EMPTY, |carried, entry| entry.replace(carried))
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
