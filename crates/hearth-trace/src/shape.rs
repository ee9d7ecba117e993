//! Shapes: what executing a block does, all but the data addresses.
//!
//! Programs execute few blocks many times, and nearly always a block's references differ from
//! the last time only in their addresses. A shape is the list of a block's events with the data
//! addresses left out; the trace then names a shape for each block executed.

use crate::event::{ADDRESS_BITS, ADDRESS_MASK, Event, Kind, PAGE_BYTES};

/// Shape numbers have 16 bits.
pub(crate) const MAX_SHAPES: usize = 1 << 16;
/// Most events that a dictionary's shapes may have together.
pub(crate) const MAX_SLOTS: usize = 1 << 18;
/// Most data references of one shape; a block with more is split.
pub(crate) const MAX_ACCESSES: usize = 2048;
/// Most code fetches of one shape: a block may cross a page.
pub(crate) const MAX_FETCHES: usize = 2;

/// One event of a shape. For data, `address` is where it went the last time.
#[derive(Clone, Copy)]
pub(crate) struct Slot {
    /// The event's bits above its address.
    pub template: u64,
    pub address: u64,
}

impl Slot {
    /// The event at the slot's address.
    #[inline]
    pub fn event(&self) -> Event {
        Event::from_bits(self.template | self.address)
    }
}

/// A shape: a run of slots, code fetches first.
#[derive(Clone, Copy)]
pub(crate) struct Shape {
    pub first: u32,
    pub fetches: u16,
    pub accesses: u16,
}

impl Shape {
    pub fn slots(&self) -> std::ops::Range<usize> {
        let first = self.first as usize;
        first..first + usize::from(self.fetches) + usize::from(self.accesses)
    }
}

/// Writes the definition of a shape: code fetches first, then data references at address 0.
pub(crate) fn write_definition(events: &[Event], out: &mut Vec<u8>) {
    let fetches = events.iter().take_while(|event| event.is_fetch()).count();
    out.push(fetches as u8);
    out.extend(((events.len() - fetches) as u16).to_le_bytes());
    for event in events {
        match event.is_fetch() {
            true => out.extend(event.bits().to_le_bytes()),
            false => out.extend(&(event.bits() >> ADDRESS_BITS).to_le_bytes()[..3]),
        }
    }
}

/// The shapes that a thread's chunks have defined so far.
#[derive(Default)]
pub(crate) struct Dictionary {
    pub shapes: Vec<Shape>,
    pub slots: Vec<Slot>,
}

impl Dictionary {
    pub fn clear(&mut self) {
        self.shapes.clear();
        self.slots.clear();
    }

    fn has_room(&self, events: usize) -> bool {
        self.shapes.len() < MAX_SHAPES && self.slots.len() + events <= MAX_SLOTS
    }

    /// Reads one definition from the front of `bytes`. `pages` bounds the code addresses.
    pub fn read_definition(&mut self, bytes: &mut &[u8], pages: u64) -> Result<(), String> {
        let [fetches, low, high] = *take::<3>(bytes)?;
        let accesses = u16::from_le_bytes([low, high]);
        let events = usize::from(fetches) + usize::from(accesses);
        if usize::from(fetches) > MAX_FETCHES || usize::from(accesses) > MAX_ACCESSES {
            return Err(format!("a block of {fetches} fetches and {accesses} references"));
        }
        if !self.has_room(events) {
            return Err("more block shapes than a dictionary holds".into());
        }
        let first = self.slots.len() as u32;
        for _ in 0..fetches {
            let event = Event::from_bits(u64::from_le_bytes(*take::<8>(bytes)?));
            let end = event.address() % PAGE_BYTES + u64::from(event.bytes());
            if event.kind() != Kind::Fetch || u64::from(event.page()) >= pages || end > PAGE_BYTES {
                return Err(format!("impossible code fetch ({event:?})"));
            }
            let bits = event.bits();
            self.slots.push(Slot { template: bits & !ADDRESS_MASK, address: bits & ADDRESS_MASK });
        }
        for _ in 0..accesses {
            let [a, b, c] = *take::<3>(bytes)?;
            let event = Event::from_bits(u64::from(u32::from_le_bytes([a, b, c, 0])) << ADDRESS_BITS);
            if event.is_fetch() || !event.kind_is_known() {
                return Err(format!("impossible data reference (bits {:#x})", event.bits()));
            }
            self.slots.push(Slot { template: event.bits(), address: 0 });
        }
        self.shapes.push(Shape { first, fetches: u16::from(fetches), accesses });
        Ok(())
    }
}

/// Takes the first `N` bytes off `bytes`.
pub(crate) fn take<'a, const N: usize>(bytes: &mut &'a [u8]) -> Result<&'a [u8; N], String> {
    let (head, tail) = bytes.split_first_chunk::<N>().ok_or("a field reaches past the end of its chunk")?;
    *bytes = tail;
    Ok(head)
}
