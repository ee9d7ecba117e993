//! One CPU's side of the memory system: its clock, its first-level caches, and a memory of recent
//! translations.
//!
//! Most references are to the line that their set of the first-level cache was last used for. Such
//! a reference is a hit that changes nothing (the set's LRU order stays as it is), so it is answered
//! here: one look at the translation, one at the set's first entry.

use crate::address::{Access, Address};
use crate::cache::{Cache, DIRTY, OWNED, entry_of, line_of, mark};
use crate::counters::{Counters, Counting, add};
use crate::pieces::View;
use std::cell::Cell;

/// Translations that are remembered, by the low bits of the page.
pub(crate) const TRANSLATIONS: usize = 256;
/// No page has this number.
const NOTHING: u32 = u32::MAX;

/// Where a page that the TLB holds is.
pub(crate) struct Translation {
    pub(crate) page: Cell<u32>,
    /// Lines from the page's to the frame's, modulo 2^32.
    pub(crate) lines: Cell<u32>,
}

impl Translation {
    fn none() -> Self {
        Self { page: Cell::new(NOTHING), lines: Cell::new(0) }
    }
}

/// A CPU as programs and the kernel see it. Cheap to share: everything is in cells.
pub struct Port {
    pub(crate) now_ps: Cell<u64>,
    pub(crate) limit_ps: Cell<u64>,
    horizon_ps: Cell<u64>,
    pub(crate) cycle_ps: u64,
    pub(crate) hit_ps: u64,
    pub(crate) line_bytes: u64,
    pub(crate) line_shift: u32,
    pub(crate) page_line_shift: u32,
    pub(crate) l1d: Cache,
    l1i: Option<Cache>,
    pub(crate) translations: Box<[Translation; TRANSLATIONS]>,
    pub(crate) counting: Counting,
    task: Cell<u16>,
    moved: Cell<bool>,
    index: usize,
}

/// What a port is made of.
pub(crate) struct PortShape {
    pub(crate) index: usize,
    pub(crate) cycle_ps: u64,
    pub(crate) hit_cycles: u32,
    pub(crate) line_bytes: u64,
    pub(crate) page_bytes: u64,
    pub(crate) l1d: Cache,
    /// `None` where the first level is one cache for both.
    pub(crate) l1i: Option<Cache>,
}

impl Port {
    pub(crate) fn new(shape: PortShape) -> Self {
        let line_shift = shape.line_bytes.trailing_zeros();
        Self {
            now_ps: Cell::new(0),
            limit_ps: Cell::new(0),
            horizon_ps: Cell::new(0),
            cycle_ps: shape.cycle_ps,
            hit_ps: shape.cycle_ps * u64::from(shape.hit_cycles),
            line_bytes: shape.line_bytes,
            line_shift,
            page_line_shift: shape.page_bytes.trailing_zeros() - line_shift,
            l1d: shape.l1d,
            l1i: shape.l1i,
            translations: Box::new(std::array::from_fn(|_| Translation::none())),
            counting: Counting::default(),
            task: Cell::new(0),
            moved: Cell::new(false),
            index: shape.index,
        }
    }

    /// The first level that code goes through.
    #[inline(always)]
    pub(crate) fn code(&self) -> &Cache {
        self.l1i.as_ref().unwrap_or(&self.l1d)
    }

    /// Whether the first level is one cache for both.
    pub(crate) fn is_unified(&self) -> bool {
        self.l1i.is_none()
    }

    /// Number of the CPU.
    pub fn index(&self) -> usize {
        self.index
    }

    /// Bytes of a cache line.
    pub fn line_bytes(&self) -> u64 {
        self.line_bytes
    }

    /// The CPU's clock in picoseconds.
    #[inline(always)]
    pub fn now_ps(&self) -> u64 {
        self.now_ps.get()
    }

    /// Sets the clock: time passes without this CPU doing anything.
    pub fn set_now_ps(&self, now_ps: u64) {
        self.now_ps.set(now_ps);
    }

    /// The instant at which whoever runs on this CPU must hand it back to the engine.
    #[inline(always)]
    pub fn limit_ps(&self) -> u64 {
        self.limit_ps.get()
    }

    /// Sets the instant of [`limit_ps`](Self::limit_ps).
    pub fn set_limit_ps(&self, limit_ps: u64) {
        self.limit_ps.set(limit_ps);
    }

    /// Sets the time of whatever else is furthest behind: another CPU, or a coming event.
    pub fn set_horizon_ps(&self, horizon_ps: u64) {
        self.horizon_ps.set(horizon_ps);
    }

    /// Whether nothing else is behind this CPU in time.
    pub fn is_first(&self) -> bool {
        self.now_ps.get() <= self.horizon_ps.get()
    }

    /// Whether the limit is reached.
    #[inline(always)]
    pub fn is_due(&self) -> bool {
        self.now_ps.get() >= self.limit_ps.get()
    }

    /// Picoseconds of one cycle.
    #[inline(always)]
    pub fn cycle_ps(&self) -> u64 {
        self.cycle_ps
    }

    /// Lets time pass.
    #[inline(always)]
    pub fn advance_ps(&self, ps: u64) {
        self.now_ps.set(self.now_ps.get() + ps);
    }

    /// Computes for a number of cycles, an instruction each.
    #[inline(always)]
    pub fn compute(&self, cycles: u64) {
        add(&self.counting.computed, cycles);
        self.advance_ps(cycles * self.cycle_ps);
    }

    /// The time since `begin_ps` was spent in the kernel.
    pub fn spent_in_kernel(&self, begin_ps: u64) {
        add(&self.counting.system_ps, self.now_ps() - begin_ps);
    }

    /// A miss of the second level by a program's own code.
    pub fn own_l2_miss(&self) {
        add(&self.counting.own_l2_misses, 1);
    }

    /// Who runs here now, for the causes of misses; `moved`: it ran on another CPU before.
    pub fn set_task(&self, task: u16, moved: bool) {
        self.task.set(task);
        self.moved.set(moved);
    }

    pub(crate) fn task(&self) -> u16 {
        self.task.get()
    }

    pub(crate) fn moved(&self) -> bool {
        self.moved.get()
    }

    /// Picoseconds beyond a first-level hit that references took so far.
    #[inline(always)]
    pub fn stall_ps(&self) -> u64 {
        self.counting.stall_ps.get()
    }

    /// All counts so far.
    pub fn counters(&self) -> Counters {
        self.counting.read()
    }

    /// The physical line of an address, if its translation is remembered.
    #[inline(always)]
    fn line(&self, address: Address) -> Option<u32> {
        View::of(self).line(address)
    }

    /// A load that hits the first-level cache: done. `false`: nothing has happened, and
    /// [`Hardware::reference`](crate::Hardware::reference) has to serve it.
    #[inline(always)]
    pub fn read(&self, address: Address) -> bool {
        self.line(address).is_some_and(|line| self.read_line(line))
    }

    /// As [`read`](Self::read), by a physical line.
    #[inline(always)]
    pub fn read_line(&self, line: u32) -> bool {
        self.read_if(line_of(self.l1d.most_recent(line).get()) == line || self.l1d.touch(line).is_some())
    }

    /// As [`read_line`](Self::read_line), if the line is the most recent of its set: less code.
    #[inline(always)]
    pub fn read_recent_line(&self, line: u32) -> bool {
        self.read_if(line_of(self.l1d.most_recent(line).get()) == line)
    }

    #[inline(always)]
    fn read_if(&self, hit: bool) -> bool {
        if hit {
            add(&self.counting.reads, 1);
            self.advance_ps(self.hit_ps);
        }
        hit
    }

    /// A store that hits the first-level cache, which owns the line: done. `false`: nothing has
    /// happened, and [`Hardware::reference`](crate::Hardware::reference) has to serve it.
    #[inline(always)]
    pub fn write(&self, address: Address) -> bool {
        self.line(address).is_some_and(|line| self.write_line(line))
    }

    /// As [`write`](Self::write), by a physical line.
    #[inline(always)]
    pub fn write_line(&self, line: u32) -> bool {
        self.write_if(self.write_most_recent(line) || self.write_owned(line))
    }

    /// As [`write_line`](Self::write_line), if the line is the most recent of its set: less code.
    #[inline(always)]
    pub fn write_recent_line(&self, line: u32) -> bool {
        self.write_if(self.write_most_recent(line))
    }

    #[inline(always)]
    fn write_most_recent(&self, line: u32) -> bool {
        let (first, written) = (self.l1d.most_recent(line), entry_of(line, OWNED | DIRTY));
        let owns = first.get() | DIRTY == written;
        if owns {
            first.set(written);
        }
        owns
    }

    #[inline(always)]
    fn write_if(&self, hit: bool) -> bool {
        if hit {
            add(&self.counting.writes, 1);
            self.advance_ps(self.hit_ps);
        }
        hit
    }

    pub(crate) fn write_owned(&self, line: u32) -> bool {
        let owned = self.l1d.peek(line).is_some_and(|entry| entry.get() & OWNED != 0);
        if owned && let Some(entry) = self.l1d.touch(line) {
            mark(entry, DIRTY);
        }
        owned
    }

    /// Repeats a load of a line that is the most recent of its set, if all but the last end before the limit.
    /// `false`: nothing has happened.
    #[inline(always)]
    pub fn read_again(&self, address: Address, times: u64) -> bool {
        let is_first = |line| line_of(self.l1d.most_recent(line).get()) == line;
        let repeats = self.line(address).is_some_and(is_first) && self.has_time_for(times);
        if repeats {
            self.hit_again(Access::Read, times);
        }
        repeats
    }

    /// Repeats a store as [`read_again`](Self::read_again) does a load.
    #[inline(always)]
    pub fn write_again(&self, address: Address, times: u64) -> bool {
        let is_first = |line| self.l1d.most_recent(line).get() == entry_of(line, OWNED | DIRTY);
        let repeats = self.line(address).is_some_and(is_first) && self.has_time_for(times);
        if repeats {
            self.hit_again(Access::Write, times);
        }
        repeats
    }

    /// Whether, of hits one after another, all but the last end before the limit.
    #[inline(always)]
    fn has_time_for(&self, hits: u64) -> bool {
        self.now_ps.get() + hits.saturating_sub(1) * self.hit_ps < self.limit_ps.get()
    }

    /// Loads or stores that hit the first entry of a set.
    #[inline(always)]
    pub(crate) fn hit_again(&self, access: Access, times: u64) {
        let counting = &self.counting;
        add(if access == Access::Write { &counting.writes } else { &counting.reads }, times);
        self.advance_ps(times * self.hit_ps);
    }

    /// A fetch of a code line that hits the first-level cache: done, in no time (executing takes
    /// time). `false`: nothing has happened, and
    /// [`Hardware::reference`](crate::Hardware::reference) has to serve it.
    #[inline(always)]
    pub fn fetch(&self, address: Address) -> bool {
        self.line(address).is_some_and(|line| self.fetch_line(line))
    }

    /// As [`fetch`](Self::fetch), by a physical line.
    #[inline(always)]
    pub fn fetch_line(&self, line: u32) -> bool {
        let code = self.code();
        self.fetch_if(line_of(code.most_recent(line).get()) == line || code.touch(line).is_some())
    }

    /// As [`fetch_line`](Self::fetch_line), if the line is the most recent of its set: less code.
    #[inline(always)]
    pub fn fetch_recent_line(&self, line: u32) -> bool {
        self.fetch_if(line_of(self.code().most_recent(line).get()) == line)
    }

    #[inline(always)]
    fn fetch_if(&self, hit: bool) -> bool {
        if hit {
            add(&self.counting.fetches, 1);
        }
        hit
    }

    pub(crate) fn remember(&self, page: u32, frame: u32) {
        let translation = &self.translations[page as usize % TRANSLATIONS];
        translation.page.set(page);
        translation.lines.set(frame.wrapping_sub(page) << self.page_line_shift);
    }

    pub(crate) fn forget(&self, page: u32) {
        let translation = &self.translations[page as usize % TRANSLATIONS];
        if translation.page.get() == page {
            translation.page.set(NOTHING);
        }
    }
}
