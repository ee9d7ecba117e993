//! A heap with a nursery: objects are made one after another in it, and those that are still in use when it is full
//! are copied out of it (Ungar, "Generation Scavenging", 1984).

use hearth_hardware::{Address, Placement, Segment};
use hearth_sim::memory::Memory;
use hearth_sim::program::Cpu;
use std::cell::Cell;

/// Bytes of the nursery: some 2 MB by default where Java runs on SPARC (recalled from Sun's guide to tuning garbage
/// collection of Java 1.4.2: 2,228,224).
const NURSERY_BYTES: u64 = 2_228_224;
/// Objects begin at multiples of this.
const ALIGNMENT: u64 = 8;

/// The nursery.
pub(super) struct Nursery {
    segment: Segment,
    end: Cell<u64>,
}

impl Nursery {
    pub(super) fn new(memory: &Memory) -> Self {
        Self { segment: memory.segment(NURSERY_BYTES, Placement::FirstTouch), end: Cell::new(0) }
    }

    /// Whether so many more bytes fit.
    pub(super) fn has_room(&self, bytes: u64) -> bool {
        self.end.get() + bytes.next_multiple_of(ALIGNMENT) <= NURSERY_BYTES
    }

    /// Makes an object of so many bytes, for which there is room: all of them are set.
    pub(super) fn make(&self, cpu: &mut Cpu<'_>, bytes: u64) -> Address {
        let address = self.segment.base + self.end.get();
        cpu.write_span(address, bytes);
        self.end.set(self.end.get() + bytes.next_multiple_of(ALIGNMENT));
        address
    }

    /// Nothing in it is in use any more.
    pub(super) fn clear(&self) {
        self.end.set(0);
    }
}

/// Copies an object.
pub(super) fn copy(cpu: &mut Cpu<'_>, from: Address, to: Address, bytes: u64) {
    for offset in (0..bytes).step_by(8) {
        cpu.read(from + offset);
        cpu.write(to + offset);
    }
}
