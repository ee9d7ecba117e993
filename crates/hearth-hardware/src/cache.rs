//! A set-associative cache array with exact LRU replacement.
//!
//! The ways of a set lie in order of recency, most recent first, so the order needs no storage of
//! its own: a hit rotates the entries ahead of it by one, the victim is the last. An entry packs
//! the line number with two flags into 32 bits; eight ways are half a host cache line.

/// An entry: the line number above two flags.
pub(crate) type Entry = u32;

/// The CPU may write the line without asking: no other cache holds it.
pub(crate) const OWNED: Entry = 1;
/// The line differs from the next level's copy.
pub(crate) const DIRTY: Entry = 2;
/// Lines are numbered below this.
pub(crate) const LINES: u32 = u32::MAX >> 2;

const EMPTY: Entry = Entry::MAX;

/// The line that an entry holds.
pub(crate) fn line_of(entry: Entry) -> u32 {
    entry >> 2
}

/// Moves the entries of a set back by one; the last is lost.
#[inline(always)]
fn shift<const WAYS: usize>(set: &mut [Entry]) {
    if let Some(set) = set.first_chunk_mut::<WAYS>() {
        let old = *set;
        set[1..].copy_from_slice(&old[..WAYS - 1]);
    }
}

/// A cache: an array of sets. Knows no other cache and no latency.
#[derive(Clone, Debug)]
pub(crate) struct Cache {
    entries: Vec<Entry>,
    ways: usize,
    set_mask: u32,
}

impl Cache {
    pub(crate) fn new(size_bytes: u64, ways: u32, line_bytes: u64) -> Self {
        let sets = size_bytes / line_bytes / u64::from(ways);
        debug_assert!(sets.is_power_of_two());
        Self {
            entries: vec![EMPTY; (sets * u64::from(ways)) as usize],
            ways: ways as usize,
            set_mask: sets as u32 - 1,
        }
    }

    #[inline(always)]
    fn base(&self, line: u32) -> usize {
        (line & self.set_mask) as usize * self.ways
    }

    #[inline(always)]
    fn set(&self, line: u32) -> &[Entry] {
        let base = self.base(line);
        &self.entries[base..base + self.ways]
    }

    #[inline(always)]
    fn set_mut(&mut self, line: u32) -> &mut [Entry] {
        let base = self.base(line);
        &mut self.entries[base..base + self.ways]
    }

    /// Looks a line up; on a hit makes it the most recent of its set and returns its entry.
    #[inline(always)]
    pub(crate) fn touch(&mut self, line: u32) -> Option<&mut Entry> {
        let set = self.set_mut(line);
        if line_of(set[0]) == line {
            return set.first_mut();
        }
        let way = 1 + set[1..].iter().position(|&entry| line_of(entry) == line)?;
        let entry = set[way];
        for later in (1..=way).rev() {
            set[later] = set[later - 1];
        }
        set[0] = entry;
        set.first_mut()
    }

    /// The entry of a line, with the order left as it is.
    #[inline]
    pub(crate) fn peek(&mut self, line: u32) -> Option<&mut Entry> {
        self.set_mut(line).iter_mut().find(|entry| line_of(**entry) == line)
    }

    /// The most recent line of the set that `line` belongs to.
    #[inline(always)]
    pub(crate) fn most_recent(&self, line: u32) -> Option<u32> {
        let entry = self.set(line)[0];
        (entry != EMPTY).then(|| line_of(entry))
    }

    /// Puts in a line that is absent; returns the entry that had to leave.
    #[inline]
    pub(crate) fn insert(&mut self, line: u32, flags: Entry) -> Option<Entry> {
        let ways = self.ways;
        let set = self.set_mut(line);
        let victim = set[ways - 1];
        match ways {
            1 => {}
            8 => shift::<8>(set),
            12 => shift::<12>(set),
            16 => shift::<16>(set),
            _ => set.copy_within(..ways - 1, 1),
        }
        set[0] = line << 2 | flags;
        (victim != EMPTY).then_some(victim)
    }

    /// Takes a line out; returns its entry if it was there.
    #[inline]
    pub(crate) fn remove(&mut self, line: u32) -> Option<Entry> {
        let set = self.set_mut(line);
        let way = set.iter().position(|&entry| line_of(entry) == line)?;
        let entry = set[way];
        set[way..].rotate_left(1);
        *set.last_mut()? = EMPTY;
        Some(entry)
    }

    /// Every entry present.
    pub(crate) fn entries(&self) -> impl Iterator<Item = Entry> + '_ {
        self.entries.iter().copied().filter(|&entry| entry != EMPTY)
    }
}
