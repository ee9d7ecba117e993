//! One step of a recorded program, packed into eight bytes.

use std::fmt;

/// Bytes in a page of a trace. Addresses are dense page number x `PAGE_BYTES` + offset.
pub const PAGE_BYTES: u64 = 4096;

pub(crate) const ADDRESS_BITS: u32 = 40;
pub(crate) const ADDRESS_MASK: u64 = (1 << ADDRESS_BITS) - 1;
const BYTES_SHIFT: u32 = ADDRESS_BITS;
const INSTRUCTIONS_SHIFT: u32 = BYTES_SHIFT + 12;
const KIND_SHIFT: u32 = INSTRUCTIONS_SHIFT + 10;
const _: () = assert!(KIND_SHIFT == 62, "address, bytes, instructions and kind fill 64 bits");

/// Most instructions that one event can carry.
pub const MAX_INSTRUCTIONS: u32 = (1 << 10) - 1;

/// What an [`Event`] does to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// The program starts to execute a run of consecutive code bytes.
    Fetch = 0,
    /// A data read.
    Read = 1,
    /// A data write. An atomic read-modify-write is one write.
    Write = 2,
}

/// A code fetch, data read or data write, and the instructions that execute from it on.
///
/// ```text
/// 63 62 | 61 ... 52    | 51 ... 40 | 39 ... 0
/// kind  | instructions | bytes - 1 | address
/// ```
///
/// An event never crosses a page. The time that a program takes between two references is in
/// [`Event::instructions`]: the sum over all events is exactly the instructions executed.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Event(u64);

impl Event {
    /// Packs an event. Values are cut to their fields: address 40 bits, `bytes` 1 to 4096,
    /// `instructions` at most [`MAX_INSTRUCTIONS`].
    pub const fn new(kind: Kind, address: u64, bytes: u64, instructions: u32) -> Self {
        Event(
            (kind as u64) << KIND_SHIFT
                | (instructions as u64 & MAX_INSTRUCTIONS as u64) << INSTRUCTIONS_SHIFT
                | (bytes.wrapping_sub(1) & (PAGE_BYTES - 1)) << BYTES_SHIFT
                | address & ADDRESS_MASK,
        )
    }

    pub(crate) const fn from_bits(bits: u64) -> Self {
        Event(bits)
    }

    /// The packed form, as drawn above.
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// What the event does.
    #[inline]
    pub const fn kind(self) -> Kind {
        match self.0 >> KIND_SHIFT {
            0 => Kind::Fetch,
            1 => Kind::Read,
            _ => Kind::Write,
        }
    }

    /// Whether this is a code fetch rather than a data reference.
    #[inline]
    pub const fn is_fetch(self) -> bool {
        self.0 >> KIND_SHIFT == Kind::Fetch as u64
    }

    /// Whether this is a data write.
    #[inline]
    pub const fn is_write(self) -> bool {
        self.0 >> KIND_SHIFT == Kind::Write as u64
    }

    /// First byte touched: dense page number x [`PAGE_BYTES`] + offset within the page.
    #[inline]
    pub const fn address(self) -> u64 {
        self.0 & ADDRESS_MASK
    }

    /// Dense page number: pages are numbered 0, 1, 2 ... in the order of their first appearance.
    #[inline]
    pub const fn page(self) -> u32 {
        (self.address() / PAGE_BYTES) as u32
    }

    /// Bytes touched, 1 to 4096.
    #[inline]
    pub const fn bytes(self) -> u32 {
        ((self.0 >> BYTES_SHIFT) as u32 & (PAGE_BYTES as u32 - 1)) + 1
    }

    /// Instructions that execute from this event on, up to the thread's next event.
    #[inline]
    pub const fn instructions(self) -> u32 {
        (self.0 >> INSTRUCTIONS_SHIFT) as u32 & MAX_INSTRUCTIONS
    }

    pub(crate) const fn kind_is_known(self) -> bool {
        self.0 >> KIND_SHIFT <= Kind::Write as u64
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, address, bytes) = (self.kind(), self.address(), self.bytes());
        write!(f, "{kind:?} {bytes} bytes at {address:#x}, {} instructions", self.instructions())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_do_not_disturb_each_other() {
        let event = Event::new(Kind::Write, ADDRESS_MASK, 4096, MAX_INSTRUCTIONS);
        assert_eq!(event.kind(), Kind::Write);
        assert_eq!(event.address(), ADDRESS_MASK);
        assert_eq!(event.bytes(), 4096);
        assert_eq!(event.instructions(), MAX_INSTRUCTIONS);
        let event = Event::new(Kind::Fetch, 0, 1, 0);
        assert_eq!(event.bits(), 0);
        assert_eq!((event.bytes(), event.is_fetch()), (1, true));
    }
}
