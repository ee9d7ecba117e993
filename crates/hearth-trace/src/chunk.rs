//! A chunk's payload: new block shapes, the blocks executed, and the data addresses.
//!
//! `docs/trace-format.md` describes the layout. Encoder and decoder sit here side by side.

use crate::delta::{self, BYTES_OF_FOUR, CLASS_BYTES, CLASS_MASK, LONGEST, PADDING};
use crate::event::{ADDRESS_MASK, Event, PAGE_BYTES};
use crate::format::{CHUNK_EVENTS, MAX_CHUNK_EVENTS};
use crate::shape::{Dictionary, Slot, take};

const FLAG_NEW_DICTIONARY: u32 = 1;
const PAYLOAD_HEADER_BYTES: usize = 24;

/// Collects one chunk of one thread.
pub(crate) struct ChunkBuilder {
    pub new_dictionary: bool,
    pub definitions: Vec<u8>,
    pub new_shapes: u32,
    pub events: usize,
    blocks: Vec<u8>,
    classes: Vec<u8>,
    deltas: Vec<u8>,
    delta_bytes: usize,
}

impl ChunkBuilder {
    pub fn new() -> Self {
        ChunkBuilder {
            new_dictionary: true,
            definitions: Vec::new(),
            new_shapes: 0,
            events: 0,
            blocks: Vec::new(),
            classes: Vec::new(),
            deltas: Vec::new(),
            delta_bytes: 0,
        }
    }

    pub fn is_full(&self) -> bool {
        self.events >= CHUNK_EVENTS
    }

    /// Adds the execution of a block: its shape's number, and where each of its references went.
    #[inline]
    pub fn execute(&mut self, shape: u16, fetches: usize, slots: &mut [Slot], addresses: impl Iterator<Item = u64>) {
        self.blocks.extend(shape.to_le_bytes());
        self.events += fetches + slots.len();
        let needed = self.delta_bytes + slots.len() * LONGEST + PADDING;
        if self.deltas.len() < needed {
            self.deltas.resize(needed.next_power_of_two(), 0);
        }
        let deltas = &mut self.deltas[self.delta_bytes..];
        let mut position = 0;
        self.classes.extend(slots.iter_mut().zip(addresses).map(|(slot, address)| {
            let delta = delta::zigzag(slot.address, address);
            let class = delta::class(delta);
            deltas[position..][..8].copy_from_slice(&delta.to_le_bytes());
            position += usize::from(CLASS_BYTES[usize::from(class)]);
            slot.address = address;
            class
        }));
        self.delta_bytes += position;
    }

    /// Data references so far.
    pub fn references(&self) -> usize {
        self.classes.len()
    }

    /// Writes the payload to `out` and starts afresh.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        out.clear();
        let flags = if self.new_dictionary { FLAG_NEW_DICTIONARY } else { 0 };
        let counts = [
            flags,
            self.new_shapes,
            self.definitions.len() as u32,
            (self.blocks.len() / 2) as u32,
            self.classes.len() as u32,
            self.delta_bytes as u32,
        ];
        counts.iter().for_each(|count| out.extend(count.to_le_bytes()));
        out.append(&mut self.definitions);
        out.append(&mut self.blocks);
        self.classes.resize(self.classes.len().next_multiple_of(4), 0);
        out.extend(self.classes.as_chunks().0.iter().map(|[a, b, c, d]| a | b << 2 | c << 4 | d << 6));
        out.extend(&self.deltas[..self.delta_bytes]);
        self.classes.clear();
        (self.new_dictionary, self.new_shapes, self.events, self.delta_bytes) = (false, 0, 0, 0);
    }
}

/// The parts of a payload, their lengths checked against each other.
struct Payload<'a> {
    new_dictionary: bool,
    new_shapes: u32,
    definitions: &'a [u8],
    blocks: &'a [[u8; 2]],
    accesses: usize,
    classes: &'a [u8],
    deltas: &'a [u8],
}

impl<'a> Payload<'a> {
    fn parse(raw: &'a [u8]) -> Result<Self, String> {
        let mut rest = raw;
        let header = take::<PAYLOAD_HEADER_BYTES>(&mut rest)?;
        let field = |i: usize| u32::from_le_bytes([header[i], header[i + 1], header[i + 2], header[i + 3]]);
        let [flags, new_shapes, definition_bytes, blocks, accesses, delta_bytes] =
            [0, 4, 8, 12, 16, 20].map(field);
        if flags > FLAG_NEW_DICTIONARY {
            return Err(format!("unknown flags {flags:#x}"));
        }
        let mut part = |bytes: usize| {
            let (part, tail) = rest.split_at_checked(bytes).ok_or("its parts are longer than the chunk")?;
            rest = tail;
            Ok::<_, String>(part)
        };
        let payload = Payload {
            new_dictionary: flags & FLAG_NEW_DICTIONARY != 0,
            new_shapes,
            definitions: part(definition_bytes as usize)?,
            blocks: part(blocks as usize * 2)?.as_chunks().0,
            accesses: accesses as usize,
            classes: part((accesses as usize).div_ceil(4))?,
            deltas: part(delta_bytes as usize)?,
        };
        match rest.len() {
            0 => Ok(payload),
            extra => Err(format!("{extra} bytes too many")),
        }
    }
}

/// Decodes a payload, appending its events to `out`. `raw` gets spare bytes at its end.
pub(crate) fn decode(
    raw: &mut Vec<u8>,
    dictionary: &mut Dictionary,
    pages: u64,
    events: usize,
    out: &mut Vec<Event>,
) -> Result<(), String> {
    let length = raw.len();
    let payload = Payload::parse(raw)?;
    if payload.new_dictionary {
        dictionary.clear();
    }
    let mut definitions = payload.definitions;
    for _ in 0..payload.new_shapes {
        dictionary.read_definition(&mut definitions, pages)?;
    }
    if !definitions.is_empty() {
        return Err("bytes left over after the block shapes".into());
    }
    let delta_start = length - payload.deltas.len();
    let class_start = delta_start - payload.classes.len();
    let block_start = class_start - payload.blocks.len() * 2;
    check_counts(&payload, dictionary, events)?;
    raw.resize(length + PADDING, 0);
    let (blocks, _) = raw[block_start..class_start].as_chunks::<2>();
    replay(blocks, &raw[class_start..delta_start], &raw[delta_start..], dictionary, pages, out)
}

/// Checks that the blocks named exist, and that their events and addresses are all there.
fn check_counts(payload: &Payload, dictionary: &Dictionary, events: usize) -> Result<(), String> {
    let (mut fetches, mut accesses) = (0usize, 0usize);
    for block in payload.blocks {
        let number = u16::from_le_bytes(*block);
        let shape = dictionary.shapes.get(usize::from(number));
        let shape = shape.ok_or_else(|| format!("block shape {number} is not defined"))?;
        fetches += usize::from(shape.fetches);
        accesses += usize::from(shape.accesses);
    }
    if accesses != payload.accesses || fetches + accesses != events || events > MAX_CHUNK_EVENTS {
        return Err(format!(
            "its header counts {events} events and {} references, its blocks have {} and {accesses}",
            payload.accesses,
            fetches + accesses
        ));
    }
    let spare = payload.classes.len() * 4 - accesses;
    let bytes: usize = payload.classes.iter().map(|packed| usize::from(BYTES_OF_FOUR[usize::from(*packed)])).sum();
    let padding_is_zero = spare == 0 || payload.classes.last().is_none_or(|last| last >> (8 - 2 * spare) == 0);
    if bytes != payload.deltas.len() || !padding_is_zero {
        return Err(format!("{} bytes of addresses where {bytes} belong", payload.deltas.len()));
    }
    Ok(())
}

/// Executes the blocks again. The counts have been checked, so no index can be out of range.
fn replay(
    blocks: &[[u8; 2]],
    classes: &[u8],
    deltas: &[u8],
    dictionary: &mut Dictionary,
    pages: u64,
    out: &mut Vec<Event>,
) -> Result<(), String> {
    let (mut access, mut position) = (0, 0);
    let (mut highest, mut crossings) = (0u64, 0u64);
    for block in blocks {
        let shape = dictionary.shapes[usize::from(u16::from_le_bytes(*block))];
        let (fetches, accesses) = dictionary.slots[shape.slots()].split_at_mut(usize::from(shape.fetches));
        out.extend(fetches.iter().map(|slot| Event::from_bits(slot.template | slot.address)));
        out.extend(accesses.iter_mut().map(|slot| {
            let class = usize::from(classes[access >> 2] >> (2 * (access & 3)) & 3);
            let mut bytes = [0; 8];
            bytes.copy_from_slice(&deltas[position..position + 8]);
            slot.address = delta::apply(slot.address, u64::from_le_bytes(bytes) & CLASS_MASK[class]);
            access += 1;
            position += usize::from(CLASS_BYTES[class]);
            let event = Event::from_bits(slot.template | slot.address);
            highest = highest.max(slot.address);
            crossings |= (slot.address & (PAGE_BYTES - 1)) + u64::from(event.bytes()) - 1;
            event
        }));
    }
    if (highest & ADDRESS_MASK) / PAGE_BYTES >= pages && access > 0 {
        return Err(format!("address {highest:#x} lies beyond the trace's {pages} pages"));
    }
    match crossings < PAGE_BYTES {
        true => Ok(()),
        false => Err("a reference crosses the end of its page".into()),
    }
}
