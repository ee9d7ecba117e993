//! One CPU's side of the memory system: its clock, and a filter for repeated references.
//!
//! The filter remembers, by virtual line, lines that are the most recent of their set in the
//! first-level cache and whose page is in the TLB. Another reference to such a line is a hit that
//! changes no state at all (its set's LRU order stays as it is), so it needs no lookup. Whatever
//! ends that condition also clears the entry. For stores an entry says besides whether the line is
//! already owned and modified.

use crate::address::Address;
use crate::counters::{Counters, Counting, add};
use std::cell::Cell;

const ENTRIES: usize = 4096;
const NOTHING: u32 = u32::MAX;

/// A CPU as programs and the kernel see it. Cheap to share: everything is in cells.
pub struct Port {
    now_ps: Cell<u64>,
    limit_ps: Cell<u64>,
    horizon_ps: Cell<u64>,
    cycle_ps: u64,
    hit_ps: u64,
    line_shift: u32,
    /// Virtual line << 1 | writable, by the low bits of the line.
    data: Box<[Cell<u32>; ENTRIES]>,
    /// Virtual line.
    code: Box<[Cell<u32>; ENTRIES]>,
    pub(crate) counting: Counting,
    task: Cell<u16>,
    moved: Cell<bool>,
    index: usize,
}

fn empty_filter() -> Box<[Cell<u32>; ENTRIES]> {
    Box::new([const { Cell::new(NOTHING) }; ENTRIES])
}

impl Port {
    pub(crate) fn new(index: usize, cycle_ps: u64, hit_cycles: u32, line_bytes: u64) -> Self {
        Self {
            now_ps: Cell::new(0),
            limit_ps: Cell::new(0),
            horizon_ps: Cell::new(0),
            cycle_ps,
            hit_ps: cycle_ps * u64::from(hit_cycles),
            line_shift: line_bytes.trailing_zeros(),
            data: empty_filter(),
            code: empty_filter(),
            counting: Counting::default(),
            task: Cell::new(0),
            moved: Cell::new(false),
            index,
        }
    }

    /// Number of the CPU.
    pub fn index(&self) -> usize {
        self.index
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

    /// All counts so far.
    pub fn counters(&self) -> Counters {
        self.counting.read()
    }

    /// A load that the filter can answer: done, or `false` and nothing has happened.
    #[inline(always)]
    pub fn read_filtered(&self, address: Address) -> bool {
        let line = (address >> self.line_shift) as u32;
        let hit = self.data[line as usize % ENTRIES].get() >> 1 == line;
        if hit {
            add(&self.counting.reads, 1);
            self.advance_ps(self.hit_ps);
        }
        hit
    }

    /// A store that the filter can answer: done, or `false` and nothing has happened.
    #[inline(always)]
    pub fn write_filtered(&self, address: Address) -> bool {
        let line = (address >> self.line_shift) as u32;
        let hit = self.data[line as usize % ENTRIES].get() == line << 1 | 1;
        if hit {
            add(&self.counting.writes, 1);
            self.advance_ps(self.hit_ps);
        }
        hit
    }

    /// A fetch of a code line that the filter can answer. Takes no time: executing does.
    #[inline(always)]
    pub fn fetch_filtered(&self, address: Address) -> bool {
        let line = (address >> self.line_shift) as u32;
        let hit = self.code[line as usize % ENTRIES].get() == line;
        if hit {
            add(&self.counting.fetches, 1);
        }
        hit
    }

    pub(crate) fn remember_data(&self, virtual_line: u32, writable: bool) {
        self.data[virtual_line as usize % ENTRIES].set(virtual_line << 1 | u32::from(writable));
    }

    pub(crate) fn remember_code(&self, virtual_line: u32) {
        self.code[virtual_line as usize % ENTRIES].set(virtual_line);
    }

    pub(crate) fn forget_data(&self, virtual_line: u32) {
        let entry = &self.data[virtual_line as usize % ENTRIES];
        if entry.get() >> 1 == virtual_line {
            entry.set(NOTHING);
        }
    }

    pub(crate) fn forget_code(&self, virtual_line: u32) {
        let entry = &self.code[virtual_line as usize % ENTRIES];
        if entry.get() == virtual_line {
            entry.set(NOTHING);
        }
    }

    pub(crate) fn forget(&self, virtual_line: u32) {
        self.forget_data(virtual_line);
        self.forget_code(virtual_line);
    }

    pub(crate) fn forget_everything(&self) {
        self.data.iter().chain(self.code.iter()).for_each(|entry| entry.set(NOTHING));
    }
}
