//! Shapes: what executing a block does, all but the data addresses.
//!
//! Programs execute few blocks many times, and nearly always a block's references differ from
//! the last time only in their addresses. A shape is the list of a block's events with the data
//! addresses left out; the trace then names a shape for each block executed.

use crate::event::{ADDRESS_BITS, Event, Kind, PAGE_BYTES};
use std::sync::Arc;

/// Shape numbers have 16 bits.
pub(crate) const MAX_SHAPES: usize = 1 << 16;
/// Most events that a dictionary's shapes may have together.
pub(crate) const MAX_SLOTS: usize = 1 << 18;
/// Most data references of one shape; a block with more is split.
pub(crate) const MAX_ACCESSES: usize = 2048;
/// Most code fetches of one shape: a block may cross a page.
pub(crate) const MAX_FETCHES: usize = 2;

/// A data reference of a shape: the event's bits above its address.
pub(crate) type Template = u32;

/// The event that a reference is when it goes to `address`.
#[inline(always)]
pub(crate) fn event_at(template: Template, address: u64) -> Event {
    Event::from_bits(u64::from(template) << ADDRESS_BITS | address)
}

/// Bytes of a reference.
#[inline(always)]
pub(crate) fn bytes_of(template: Template) -> u32 {
    event_at(template, 0).bytes()
}

/// Whether a reference is a write, and no read.
#[inline(always)]
pub(crate) fn is_write(template: Template) -> bool {
    const WRITE: Template = (Event::new(Kind::Write, 0, 1, 0).bits() >> ADDRESS_BITS) as Template;
    template & WRITE != 0
}

/// A shape, and what executing it adds to each count.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    /// Its code fetches; the first `fetch_count` are.
    code: [Event; MAX_FETCHES],
    /// Place of its first reference among all of the dictionary.
    first: u32,
    pub instructions: u32,
    /// Of the instructions, those that are no load or store.
    pub computed: u32,
    pub references: u16,
    pub writes: u16,
    pub fetch_count: u8,
}

impl Shape {
    #[inline(always)]
    pub fn fetches(&self) -> &[Event] {
        &self.code[..usize::from(self.fetch_count)]
    }

    /// The places of its references in the dictionary.
    #[inline(always)]
    pub fn places(&self) -> std::ops::Range<usize> {
        let first = self.first as usize;
        first..first + usize::from(self.references)
    }

    fn add(&mut self, event: Event) {
        let instructions = event.instructions();
        self.instructions += instructions;
        self.computed += if event.is_fetch() { instructions } else { instructions.saturating_sub(1) };
        self.writes += u16::from(event.is_write());
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

/// Shapes by number. Those once defined stay as they are, so that decoded chunks share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shapes {
    pub shapes: Vec<Shape>,
    /// The references of all shapes, one after the other.
    pub templates: Vec<Template>,
    /// Fetches and references of all shapes.
    events: usize,
}

impl Shapes {
    /// Reads one definition from the front of `bytes`. `pages` bounds the code addresses.
    fn read_definition(&mut self, bytes: &mut &[u8], pages: u64) -> Result<(), String> {
        let [fetches, low, high] = *take::<3>(bytes)?;
        let references = u16::from_le_bytes([low, high]);
        let events = usize::from(fetches) + usize::from(references);
        if usize::from(fetches) > MAX_FETCHES || usize::from(references) > MAX_ACCESSES {
            return Err(format!("a block of {fetches} fetches and {references} references"));
        }
        if self.shapes.len() >= MAX_SHAPES || self.events + events > MAX_SLOTS {
            return Err("more block shapes than a dictionary holds".into());
        }
        let mut shape = Shape {
            code: [Event::from_bits(0); MAX_FETCHES],
            first: self.templates.len() as u32,
            instructions: 0,
            computed: 0,
            references,
            writes: 0,
            fetch_count: fetches,
        };
        for place in 0..usize::from(fetches) {
            let event = Event::from_bits(u64::from_le_bytes(*take::<8>(bytes)?));
            let end = event.address() % PAGE_BYTES + u64::from(event.bytes());
            if event.kind() != Kind::Fetch || u64::from(event.page()) >= pages || end > PAGE_BYTES {
                return Err(format!("impossible code fetch ({event:?})"));
            }
            shape.code[place] = event;
            shape.add(event);
        }
        for _ in 0..references {
            let [a, b, c] = *take::<3>(bytes)?;
            let template = Template::from_le_bytes([a, b, c, 0]);
            let event = event_at(template, 0);
            if event.is_fetch() || !event.kind_is_known() {
                return Err(format!("impossible data reference (bits {:#x})", event.bits()));
            }
            self.templates.push(template);
            shape.add(event);
        }
        self.shapes.push(shape);
        self.events += events;
        Ok(())
    }
}

/// The shapes that a thread's chunks have defined so far, and where their references went.
#[derive(Clone, Debug, Default)]
pub(crate) struct Dictionary {
    pub shapes: Arc<Shapes>,
    /// By place of a reference.
    pub slots: Vec<Slot>,
}

/// What is known of a reference of a shape from one execution to the next.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot {
    /// Where it went the last time.
    pub address: u64,
    /// From its first byte to its last.
    pub reach: u64,
}

impl Dictionary {
    pub fn clear(&mut self) {
        self.shapes = Arc::default();
        self.slots.clear();
    }

    /// Reads `count` definitions, which `bytes` must hold exactly.
    pub fn read_definitions(&mut self, count: u32, mut bytes: &[u8], pages: u64) -> Result<(), String> {
        if count > 0 {
            let shapes = Arc::make_mut(&mut self.shapes);
            (0..count).try_for_each(|_| shapes.read_definition(&mut bytes, pages))?;
            let new = &shapes.templates[self.slots.len()..];
            let reach = |template: &Template| u64::from(bytes_of(*template) - 1);
            self.slots.extend(new.iter().map(|template| Slot { address: 0, reach: reach(template) }));
        }
        match bytes.is_empty() {
            true => Ok(()),
            false => Err("bytes left over after the block shapes".into()),
        }
    }
}

/// Takes the first `N` bytes off `bytes`.
pub(crate) fn take<'a, const N: usize>(bytes: &mut &'a [u8]) -> Result<&'a [u8; N], String> {
    let (head, tail) = bytes.split_first_chunk::<N>().ok_or("a field reaches past the end of its chunk")?;
    *bytes = tail;
    Ok(head)
}
