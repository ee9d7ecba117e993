//! A chunk's payload: new block shapes, the blocks executed, and the data addresses.
//!
//! `docs/trace-format.md` describes the layout. Encoder and decoder sit here side by side.

use crate::delta::{self, BYTES_OF_FOUR, LONGEST, PADDING};
use crate::event::PAGE_BYTES;
use crate::executions::Executions;
use crate::format::{CHUNK_EVENTS, Counts, MAX_CHUNK_EVENTS};
use crate::shape::{Dictionary, Shapes, take};
use std::sync::Arc;

const FLAG_NEW_DICTIONARY: u32 = 1;
const PAYLOAD_HEADER_BYTES: usize = 24;

/// Collects one chunk of one thread.
pub(crate) struct ChunkBuilder {
    pub new_dictionary: bool,
    pub definitions: Vec<u8>,
    pub new_shapes: u32,
    pub events: usize,
    blocks: Vec<u8>,
    /// A class for each reference so far, and spare room.
    classes: Vec<u8>,
    references: usize,
    /// `delta_bytes` so far, and spare room.
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
            references: 0,
            deltas: Vec::new(),
            delta_bytes: 0,
        }
    }

    pub fn is_full(&self) -> bool {
        self.events >= CHUNK_EVENTS
    }

    /// Adds the execution of a block: its shape's number and, for each of its references, where
    /// it went the last time (which is brought up to date) and where it goes now.
    #[inline]
    pub fn execute<'a>(
        &mut self,
        shape: u16,
        fetches: usize,
        moves: impl ExactSizeIterator<Item = (&'a mut u64, u64)>,
    ) {
        let count = moves.len();
        let (end, longest) = (self.references + count, self.delta_bytes + count * LONGEST + PADDING);
        if self.classes.len() < end || self.deltas.len() < longest {
            self.classes.resize(end.next_power_of_two().max(CHUNK_EVENTS), 0);
            self.deltas.resize(longest.next_power_of_two().max(CHUNK_EVENTS * LONGEST), 0);
        }
        self.blocks.extend(shape.to_le_bytes());
        self.events += fetches + count;
        let classes = &mut self.classes[self.references..end];
        let deltas = self.deltas.as_mut_slice();
        let mut position = self.delta_bytes;
        for ((last, address), class) in moves.zip(classes) {
            let delta = delta::between(*last, address);
            *last = address;
            let its_class = delta::class(delta);
            *class = its_class as u8;
            deltas[position..position + 8].copy_from_slice(&delta.to_le_bytes());
            position += delta::class_bytes(its_class);
        }
        self.references = end;
        self.delta_bytes = position;
    }

    /// Data references so far.
    pub fn references(&self) -> usize {
        self.references
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
            self.references as u32,
            self.delta_bytes as u32,
        ];
        counts.iter().for_each(|count| out.extend(count.to_le_bytes()));
        out.append(&mut self.definitions);
        out.append(&mut self.blocks);
        let padded = self.references.next_multiple_of(4);
        self.classes.resize(self.classes.len().max(padded), 0);
        self.classes[self.references..padded].fill(0);
        out.extend(
            self.classes[..padded].as_chunks().0.iter().map(|[a, b, c, d]| a | b << 2 | c << 4 | d << 6),
        );
        out.extend(&self.deltas[..self.delta_bytes]);
        (self.new_dictionary, self.new_shapes) = (false, 0);
        (self.events, self.references, self.delta_bytes) = (0, 0, 0);
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

/// Decodes a payload of `events` events into `out`. `raw` gets spare bytes at its end.
pub(crate) fn decode(
    raw: &mut Vec<u8>,
    dictionary: &mut Dictionary,
    pages: u64,
    events: usize,
    out: &mut Executions,
) -> Result<(), String> {
    // What shares no shapes lets the dictionary grow in place.
    out.shapes = Arc::default();
    let length = raw.len();
    let payload = Payload::parse(raw)?;
    if payload.new_dictionary {
        dictionary.clear();
    }
    dictionary.read_definitions(payload.new_shapes, payload.definitions, pages)?;
    let delta_start = length - payload.deltas.len();
    let class_start = delta_start - payload.classes.len();
    let (accesses, counts) = (payload.accesses, check_counts(&payload, &dictionary.shapes, events)?);
    out.blocks.clear();
    out.blocks.extend(payload.blocks.iter().map(|number| u16::from_le_bytes(*number)));
    out.addresses.resize(payload.classes.len() * 4, 0);
    raw.resize(length + PADDING, 0);
    read_deltas(&raw[class_start..delta_start], &raw[delta_start..], &mut out.addresses);
    out.addresses.truncate(accesses);
    follow(&out.blocks, dictionary, pages, &mut out.addresses)?;
    (out.shapes, out.counts) = (Arc::clone(&dictionary.shapes), counts);
    Ok(())
}

/// Spreads the deltas of these classes out over `out`, four of a byte of classes at a time. Their lengths have been
/// checked; spare bytes follow them.
fn read_deltas(classes: &[u8], mut deltas: &[u8], out: &mut [u64]) {
    for (packed, out) in classes.iter().zip(out.as_chunks_mut::<4>().0) {
        let Some(four) = deltas.first_chunk() else { return };
        *out = delta::read_four(*packed, four).map(i64::cast_unsigned);
        deltas = &deltas[usize::from(BYTES_OF_FOUR[usize::from(*packed)])..];
    }
}

/// Checks that the blocks named exist, and that their events and addresses are all there. Returns what they do.
fn check_counts(payload: &Payload, shapes: &Shapes, events: usize) -> Result<Counts, String> {
    let (mut accesses, mut counts) = (0usize, Counts::default());
    for block in payload.blocks {
        let number = u16::from_le_bytes(*block);
        let shape = shapes.shapes.get(usize::from(number));
        let shape = shape.ok_or_else(|| format!("block shape {number} is not defined"))?;
        accesses += usize::from(shape.references);
        counts.fetches += u64::from(shape.fetch_count);
        counts.writes += u64::from(shape.writes);
        counts.instructions += u64::from(shape.instructions);
    }
    counts.reads = accesses as u64 - counts.writes;
    counts.events = counts.fetches + accesses as u64;
    if accesses != payload.accesses || counts.events != events as u64 || events > MAX_CHUNK_EVENTS {
        return Err(format!(
            "its header counts {events} events and {} references, its blocks have {} and {accesses}",
            payload.accesses, counts.events
        ));
    }
    let spare = payload.classes.len() * 4 - accesses;
    let bytes: usize =
        payload.classes.iter().map(|packed| usize::from(BYTES_OF_FOUR[usize::from(*packed)])).sum();
    let padding_is_zero =
        spare == 0 || payload.classes.last().is_none_or(|last| last >> (8 - 2 * spare) == 0);
    if bytes != payload.deltas.len() || !padding_is_zero {
        return Err(format!("{} bytes of addresses where {bytes} belong", payload.deltas.len()));
    }
    Ok(counts)
}

/// Makes addresses of the differences in `went`, in place. The counts have been checked, so no index can be out of
/// range.
fn follow(blocks: &[u16], dictionary: &mut Dictionary, pages: u64, went: &mut [u64]) -> Result<(), String> {
    let (shapes, slots) = (dictionary.shapes.shapes.as_slice(), dictionary.slots.as_mut_slice());
    let mut ends = 0;
    let mut rest = &mut *went;
    for block in blocks {
        let slots = &mut slots[shapes[usize::from(*block)].places()];
        let (of_block, tail) = rest.split_at_mut(slots.len());
        rest = tail;
        for (slot, went) in slots.iter_mut().zip(of_block) {
            let address = slot.address.wrapping_add(*went);
            (slot.address, *went) = (address, address);
            ends |= address % PAGE_BYTES + slot.reach;
        }
    }
    let last = (pages * PAGE_BYTES).wrapping_sub(1);
    let beyond = went.iter().fold(0, |beyond, address| beyond | last.wrapping_sub(*address) | address);
    match (beyond >> 63 == 0, ends < PAGE_BYTES) {
        (false, _) => Err(format!("a reference lies beyond the trace's {pages} pages")),
        (true, false) => Err("a reference crosses the end of its page".into()),
        (true, true) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Event, Kind};
    use crate::shape::write_definition;
    use proptest::prelude::*;

    const PAGES: u64 = 4;

    /// A payload of 20 blocks of three events each.
    fn sample() -> (Vec<u8>, usize) {
        let mut chunk = ChunkBuilder::new();
        let data = |kind| Event::new(kind, 0, 8, 2);
        let shape = [Event::new(Kind::Fetch, 0x1010, 16, 1), data(Kind::Read), data(Kind::Write)];
        write_definition(&shape, &mut chunk.definitions);
        chunk.new_shapes = 1;
        let mut last = [0; 2];
        for i in 0..20u64 {
            chunk.execute(0, 1, last.iter_mut().zip([0x2000 + 8 * i, 8 * (i * 77 % 256)]));
        }
        let (events, mut raw) = (chunk.events, Vec::new());
        chunk.finish(&mut raw);
        (raw, events)
    }

    fn decoded(mut raw: Vec<u8>, events: usize) -> Result<Vec<Event>, String> {
        let mut out = Executions::default();
        let decoded = decode(&mut raw, &mut Dictionary::default(), PAGES, events, &mut out);
        decoded.map(|()| out.iter().flat_map(|execution| execution.events()).collect())
    }

    #[test]
    fn a_sound_payload_is_decoded() {
        let (raw, events) = sample();
        let out = decoded(raw, events).unwrap();
        assert_eq!(out.len(), 60);
        assert_eq!(out[0], Event::new(Kind::Fetch, 0x1010, 16, 1));
        assert_eq!(out[58], Event::new(Kind::Read, 0x2000 + 8 * 19, 8, 2));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        #[test]
        fn a_payload_with_a_sound_checksum_but_wrong_contents_never_leads_out_of_bounds(
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
            cut in prop_oneof![3 => Just(0), 1 => 1..10usize],
            events in prop_oneof![Just(60usize), 0..200usize],
        ) {
            let (mut raw, _) = sample();
            for (at, value) in changes {
                let at = at.index(raw.len());
                raw[at] = value;
            }
            raw.truncate(raw.len() - cut);
            if let Ok(out) = decoded(raw, events) {
                for event in out {
                    prop_assert!(event.kind_is_known() && u64::from(event.page()) < PAGES);
                    prop_assert!(event.address() % PAGE_BYTES + u64::from(event.bytes()) <= PAGE_BYTES);
                }
            }
        }
    }
}
