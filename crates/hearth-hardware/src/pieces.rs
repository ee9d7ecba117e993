//! Pieces of a program that are known as a whole before they are executed, such as recorded ones.
//!
//! A reference by itself looks at the clock, moves it on, and counts. While everything hits the first level, what a
//! piece takes and counts is known beforehand, so that only the lines are left to be looked up. Where something else
//! happens, the piece is handed back, and executed reference by reference.

use crate::address::Address;
use crate::cache::{DIRTY, Entry, LINE_FLAGS, MostRecent, OWNED, entry_of, line_of};
use crate::counters::add;
use crate::port::{Port, TRANSLATIONS, Translation};

/// Bytes that a program touches at once.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    /// The first.
    pub first: Address,
    /// The last. It may lie in another line than the first; the lines between are touched by fetches only.
    pub last: Address,
}

/// What a piece of a program does, but for where.
#[derive(Clone, Copy, Debug, Default)]
pub struct Work {
    /// Loads, each of one span.
    pub reads: u64,
    /// Stores, each of one span.
    pub writes: u64,
    /// Cycles beside them.
    pub computed: u64,
}

/// A piece of a program, known as a whole before it is executed: code, and then loads and stores.
pub trait Piece {
    /// What it does.
    fn work(&self) -> Work;
    /// The code.
    fn fetches(&self) -> impl Iterator<Item = Span>;
    /// The loads, and the stores (`true`).
    fn references(&self) -> impl Iterator<Item = (Span, bool)>;
}

impl Port {
    /// Executes pieces of a program, up to one whose references do not all hit the first level, or that might not
    /// end before the limit: this one is returned. Of it, no time has passed and nothing is counted; lines that it
    /// did hit are the most recent of their sets, in its order, so that executing it from its beginning comes to the
    /// same. `None`: all are done.
    #[inline(always)]
    pub fn run<P: Piece>(&self, pieces: &mut impl Iterator<Item = P>) -> Option<P> {
        let view = View::of(self);
        let (mut code, mut data) = (Latest::default(), Latest::default());
        let (cycle_ps, hit_ps, limit_ps) = (self.cycle_ps, self.hit_ps, self.limit_ps.get());
        let mut now_ps = self.now_ps.get();
        let mut done = Work::default();
        let mut fetched = 0;
        let stopped = loop {
            let Some(piece) = pieces.next() else { break None };
            let Work { mut reads, mut writes, computed } = piece.work();
            let computed_ps = computed * cycle_ps;
            // Each load or store may be of two lines.
            if now_ps + computed_ps + 2 * (reads + writes) * hit_ps >= limit_ps {
                break Some(piece);
            }
            let Some(lines) = view.has_all_code(piece.fetches(), &mut code) else { break Some(piece) };
            let Some(second) = view.hits_all(piece.references(), &mut data) else { break Some(piece) };
            (reads, writes) = (reads + second.reads, writes + second.writes);
            now_ps += computed_ps + (reads + writes) * hit_ps;
            fetched += lines;
            done.reads += reads;
            done.writes += writes;
            done.computed += computed;
        };
        self.now_ps.set(now_ps);
        add(&self.counting.fetches, fetched);
        add(&self.counting.reads, done.reads);
        add(&self.counting.writes, done.writes);
        add(&self.counting.computed, done.computed);
        stopped
    }

    /// As a load or store of a line that is not the first of its set.
    #[inline(never)]
    fn hits_behind(&self, line: u32, is_write: bool) -> bool {
        if is_write { self.write_owned(line) } else { self.l1d.touch(line).is_some() }
    }

    /// As a fetch of a line that is not the first of its set.
    #[inline(never)]
    fn has_code_behind(&self, line: u32) -> bool {
        self.code().touch(line).is_some()
    }
}

/// References that were to a second line.
struct Second {
    reads: u64,
    writes: u64,
}

/// What was referenced last. As nothing but hits came since, its line is the first of its set.
struct Latest {
    address: Address,
    /// Its line was stored to since it is the latest.
    is_dirty: bool,
}

impl Default for Latest {
    fn default() -> Self {
        Self { address: Address::MAX, is_dirty: false }
    }
}

/// What looking up a line takes, at hand: behind a reference to the port, each store would have it loaded anew.
#[derive(Clone, Copy)]
pub(crate) struct View<'a> {
    port: &'a Port,
    line_bytes: u64,
    line_shift: u32,
    page_line_shift: u32,
    translations: &'a [Translation; TRANSLATIONS],
    data: MostRecent<'a>,
    code: MostRecent<'a>,
}

impl<'a> View<'a> {
    #[inline(always)]
    pub(crate) fn of(port: &'a Port) -> Self {
        Self {
            port,
            line_bytes: port.line_bytes,
            line_shift: port.line_shift,
            page_line_shift: port.page_line_shift,
            translations: &port.translations,
            data: port.l1d.most_recent_entries(),
            code: port.code().most_recent_entries(),
        }
    }

    /// The physical line of an address, if its translation is remembered. Lines and pages are numbered with 32 bits.
    #[inline(always)]
    pub(crate) fn line(&self, address: Address) -> Option<u32> {
        let line = (address >> self.line_shift) as u32;
        let page = line >> self.page_line_shift;
        let translation = &self.translations[page as usize % TRANSLATIONS];
        (translation.page.get() == page).then(|| line.wrapping_add(translation.lines.get()))
    }

    /// Whether two addresses are of one line.
    #[inline(always)]
    fn is_one_line(&self, first: Address, last: Address) -> bool {
        first ^ last < self.line_bytes
    }

    /// How many lines code is of, if all are there.
    #[inline(always)]
    fn has_all_code(&self, fetches: impl Iterator<Item = Span>, latest: &mut Latest) -> Option<u64> {
        let mut lines = 0;
        for Span { first, last } in fetches {
            let mut address = first;
            loop {
                if !self.is_one_line(latest.address, address) {
                    let line = self.line(address)?;
                    if line_of(self.code.of(line).get()) != line && !self.port.has_code_behind(line) {
                        return None;
                    }
                }
                lines += 1;
                latest.address = address;
                if self.is_one_line(address, last) {
                    break;
                }
                address += self.line_bytes;
            }
        }
        Some(lines)
    }

    /// How many loads and stores are of two lines, if all hit.
    #[inline(always)]
    fn hits_all(
        &self,
        references: impl Iterator<Item = (Span, bool)>,
        latest: &mut Latest,
    ) -> Option<Second> {
        let mut second = Second { reads: 0, writes: 0 };
        for (Span { first, last }, is_write) in references {
            if !self.is_one_line(latest.address, first) || is_write & !latest.is_dirty {
                self.hits(first, is_write)?;
                latest.is_dirty = is_write;
            }
            if !self.is_one_line(first, last) {
                self.hits(last, is_write)?;
                latest.is_dirty = is_write;
                *if is_write { &mut second.writes } else { &mut second.reads } += 1;
            }
            latest.address = last;
        }
        Some(second)
    }

    /// A load or store that hits, with what it does to the first level.
    #[inline(always)]
    fn hits(&self, address: Address, is_write: bool) -> Option<()> {
        let line = self.line(address)?;
        let first = self.data.of(line);
        // Which of the two it is would be anyone's guess to a branch predictor.
        let writes = Entry::from(is_write);
        let matters = if is_write { !DIRTY } else { !LINE_FLAGS };
        if (first.get() ^ entry_of(line, OWNED)) & matters == 0 {
            first.set(first.get() | (writes * DIRTY));
            return Some(());
        }
        self.port.hits_behind(line, is_write).then_some(())
    }
}
