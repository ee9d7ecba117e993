//! Encodes what one thread executes.

use std::collections::HashMap;
use std::ops::Range;

use crate::chunk::ChunkBuilder;
use crate::event::{Event, Kind, MAX_INSTRUCTIONS, PAGE_BYTES};
use crate::format::Counts;
use crate::pages::Pages;
use crate::shape::{Dictionary, MAX_ACCESSES};
use crate::word::{self, Word};

/// A block with more references is split into several shapes.
const PART_REFERENCES: usize = MAX_ACCESSES / 2;

/// A run of consecutive instructions, as translated by the recorder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Block {
    pub address: u64,
    pub bytes: u32,
    pub instructions: u32,
}

/// What the encoder knows of a shape beyond the dictionary.
struct Known {
    /// The reference words' upper bits, to recognize the shape; none if it can only be looked up.
    pattern: Option<(u32, u16)>,
    writes: u32,
    instructions: u32,
}

pub(crate) struct ThreadEncoder {
    pub chunk: ChunkBuilder,
    /// Writes and instructions so far, and the events of finished chunks.
    written: Counts,
    dictionary: Dictionary,
    known: Vec<Known>,
    patterns: Vec<u16>,
    by_events: HashMap<Box<[Event]>, u16>,
    /// For each block, the shape that it had the last time.
    latest: Vec<Option<u16>>,
    /// The block that executes.
    running: usize,
    /// A block whose references may go on in the thread's next buffer.
    open: Vec<Word>,
    scratch: Vec<Event>,
    addresses: Vec<u64>,
}

impl ThreadEncoder {
    pub fn new() -> Self {
        ThreadEncoder {
            chunk: ChunkBuilder::new(),
            written: Counts::default(),
            dictionary: Dictionary::default(),
            known: Vec::new(),
            patterns: Vec::new(),
            by_events: HashMap::new(),
            latest: Vec::new(),
            running: usize::MAX,
            open: Vec::new(),
            scratch: Vec::new(),
            addresses: Vec::new(),
        }
    }

    /// Takes words until the chunk is full. Returns the words not taken; a last block whose end
    /// is not in sight stays open until more words or [`Self::close`].
    pub fn feed<'a>(&mut self, mut words: &'a [Word], blocks: &[Block], pages: &mut Pages) -> &'a [Word] {
        if !self.open.is_empty() {
            let more = words.iter().position(|word| word::is_block(*word)).unwrap_or(words.len());
            self.open.extend(&words[..more]);
            words = &words[more..];
            if words.is_empty() && self.open.len() <= PART_REFERENCES {
                return words;
            }
            self.close(blocks, pages);
        }
        while !self.chunk_is_full() {
            let (begins, references) = part(words);
            let Some(next) = words.get(begins + references) else {
                self.open.extend(words);
                return &[];
            };
            let end = (!word::is_block(*next)).then(|| word::instruction(*next));
            self.execute(&words[..begins + references], end, blocks, pages);
            words = &words[begins + references..];
        }
        words
    }

    /// Encodes the block that was left open.
    pub fn close(&mut self, blocks: &[Block], pages: &mut Pages) {
        let open = std::mem::take(&mut self.open);
        let mut words = open.as_slice();
        while !words.is_empty() {
            let (begins, references) = part(words);
            let (now, later) = words.split_at(begins + references);
            self.execute(now, later.first().map(|word| word::instruction(*word)), blocks, pages);
            words = later;
        }
        self.open = open;
        self.open.clear();
    }

    /// A chunk ends when it has its events, or when the dictionary must be started afresh.
    pub fn chunk_is_full(&self) -> bool {
        self.chunk.is_full() || self.dictionary.is_nearly_full()
    }

    /// Encodes one part of a block: its marker, unless this part continues the block, then
    /// references. `end` is the instruction at which a continued block goes on.
    fn execute(&mut self, words: &[Word], end: Option<u32>, blocks: &[Block], pages: &mut Pages) {
        let begins = word::is_block(words[0]);
        if begins {
            self.running = word::block(words[0]);
        }
        let references = &words[usize::from(begins)..];
        let number = (begins && end.is_none()).then_some(self.running);
        if let Some(shape) = number.and_then(|number| self.recognize(number, references)) {
            return self.append(shape, references, pages);
        }
        let block = blocks.get(self.running).copied().unwrap_or_default();
        let end = end.unwrap_or(block.instructions);
        self.list_events(begins.then_some(block), references, end, pages);
        self.append_listed(references, number, pages);
    }

    /// The block's latest shape, if these references have the same one.
    #[inline]
    fn recognize(&self, block: usize, references: &[Word]) -> Option<u16> {
        let shape = (*self.latest.get(block)?)?;
        let (start, length) = self.known[usize::from(shape)].pattern?;
        let pattern = &self.patterns[start as usize..][..usize::from(length)];
        let mut same = references.len() == pattern.len();
        for (word, expected) in references.iter().zip(pattern) {
            same &= word::pattern(*word) == *expected && !word::crosses_page(*word);
        }
        same.then_some(shape)
    }

    /// Appends an execution whose references match the shape one to one.
    #[inline]
    fn append(&mut self, shape: u16, references: &[Word], pages: &mut Pages) {
        let (fetches, slots) = self.begin(shape);
        let slots = &mut self.dictionary.slots[slots];
        let addresses = references.iter().map(|word| dense(word::address(*word), pages));
        self.chunk.execute(shape, fetches, slots, addresses);
    }

    /// Lists the events of an execution in `scratch`, and the data addresses in `addresses`.
    fn list_events(&mut self, block: Option<Block>, part: &[Word], end: u32, pages: &mut Pages) {
        self.scratch.clear();
        self.addresses.clear();
        let bounded = |from: u32, to: u32| to.saturating_sub(from).min(MAX_INSTRUCTIONS);
        if let Some(block) = block.filter(|block| block.bytes > 0) {
            let before = bounded(0, part.first().map_or(end, |word| word::instruction(*word)));
            let (this_page, next_page) = split(block.address, block.bytes);
            let first_gets = if next_page == 0 { before } else { 0 };
            let address = dense(block.address, pages);
            self.scratch.push(Event::new(Kind::Fetch, address, this_page.into(), first_gets));
            if next_page > 0 {
                let address = dense(block.address + u64::from(this_page), pages);
                self.scratch.push(Event::new(Kind::Fetch, address, next_page.into(), before));
            }
        }
        for (i, reference) in part.iter().enumerate() {
            let next = part.get(i + 1).map_or(end, |word| word::instruction(*word));
            let instructions = bounded(word::instruction(*reference), next);
            let kind = if word::is_store(*reference) { Kind::Write } else { Kind::Read };
            let address = word::address(*reference);
            let (this_page, next_page) = split(address, word::bytes(*reference));
            let first_gets = if next_page == 0 { instructions } else { 0 };
            self.scratch.push(Event::new(kind, 0, this_page.into(), first_gets));
            self.addresses.push(dense(address, pages));
            if next_page > 0 {
                self.scratch.push(Event::new(kind, 0, next_page.into(), instructions));
                self.addresses.push(dense(address + u64::from(this_page), pages));
            }
        }
    }

    /// Appends the listed execution; `block` is remembered with its shape.
    fn append_listed(&mut self, part: &[Word], block: Option<usize>, pages: &mut Pages) {
        let events = std::mem::take(&mut self.scratch);
        let shape = match self.by_events.get(events.as_slice()) {
            Some(shape) => *shape,
            None => self.define(&events, part),
        };
        if let Some(block) = block {
            if self.latest.len() <= block {
                self.latest.resize(block + 1, None);
            }
            self.latest[block] = Some(shape);
        }
        if self.known[usize::from(shape)].pattern.is_some() {
            self.append(shape, part, pages);
        } else {
            self.append_crossing(shape);
        }
        self.scratch = events;
    }

    fn append_crossing(&mut self, shape: u16) {
        let (fetches, slots) = self.begin(shape);
        let slots = &mut self.dictionary.slots[slots];
        self.chunk.execute(shape, fetches, slots, self.addresses.iter().copied());
    }

    /// Counts an execution of a shape. Returns its number of fetches and its data slots.
    #[inline]
    fn begin(&mut self, shape: u16) -> (usize, Range<usize>) {
        let known = &self.known[usize::from(shape)];
        self.written.writes += u64::from(known.writes);
        self.written.instructions += u64::from(known.instructions);
        let shape = self.dictionary.shapes[usize::from(shape)];
        let fetches = usize::from(shape.fetches);
        (fetches, shape.slots().start + fetches..shape.slots().end)
    }

    fn define(&mut self, events: &[Event], part: &[Word]) -> u16 {
        let mut counts = Counts::default();
        events.iter().for_each(|event| counts.count(*event));
        let one_to_one = counts.references() == part.len() as u64;
        let pattern = one_to_one.then_some((self.patterns.len() as u32, part.len() as u16));
        if one_to_one {
            self.patterns.extend(part.iter().map(|word| word::pattern(*word)));
        }
        let (writes, instructions) = (counts.writes as u32, counts.instructions as u32);
        self.known.push(Known { pattern, writes, instructions });
        let shape = self.dictionary.define(events, &mut self.chunk.definitions);
        self.chunk.new_shapes += 1;
        self.by_events.insert(events.into(), shape);
        shape
    }

    /// What the thread has done so far.
    pub fn counts(&self) -> Counts {
        let mut counts = self.written;
        let references = self.chunk.references() as u64;
        counts.events += self.chunk.events as u64;
        counts.fetches += self.chunk.events as u64 - references;
        counts.reads = counts.events - counts.fetches - counts.writes;
        counts
    }

    /// Ends the chunk: its payload goes to `out`. Returns how many events it has.
    pub fn finish_chunk(&mut self, out: &mut Vec<u8>) -> usize {
        self.written = self.counts();
        let events = self.chunk.events;
        self.chunk.finish(out);
        if self.dictionary.is_nearly_full() {
            self.dictionary.clear();
            self.known.clear();
            self.patterns.clear();
            self.by_events.clear();
            self.latest.clear();
            self.chunk.new_dictionary = true;
        }
        events
    }
}

/// Whether a block begins at the front of `words` (0 or 1), and how many references follow.
fn part(words: &[Word]) -> (usize, usize) {
    let begins = usize::from(words.first().is_some_and(|word| word::is_block(*word)));
    let candidates = &words[begins..words.len().min(begins + PART_REFERENCES)];
    let references = candidates.iter().position(|word| word::is_block(*word)).unwrap_or(candidates.len());
    (begins, references)
}

fn dense(address: u64, pages: &mut Pages) -> u64 {
    u64::from(pages.number(address / PAGE_BYTES)) * PAGE_BYTES + address % PAGE_BYTES
}

/// How many of the bytes at `address` lie in its page, and how many in the next.
fn split(address: u64, bytes: u32) -> (u32, u32) {
    let room = (PAGE_BYTES - address % PAGE_BYTES) as u32;
    (bytes.min(room), bytes.saturating_sub(room).min(PAGE_BYTES as u32))
}
