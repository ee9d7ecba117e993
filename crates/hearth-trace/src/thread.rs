//! Encodes what one thread executes.

use std::collections::HashMap;

use crate::chunk::ChunkBuilder;
use crate::event::{Event, Kind, MAX_INSTRUCTIONS, PAGE_BYTES};
use crate::format::{CHUNK_EVENTS, Counts, MAX_CHUNK_EVENTS};
use crate::pages::Pages;
use crate::shape::{MAX_ACCESSES, MAX_FETCHES, MAX_SHAPES, MAX_SLOTS, write_definition};
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

/// A shape that has been defined.
#[derive(Clone, Copy)]
struct Shape {
    /// Its data references in `places`.
    first: u32,
    references: u16,
    fetches: u16,
    writes: u16,
    instructions: u16,
    /// Each word is one event, so that the shape can be recognized from the words.
    from_words: bool,
}

/// A data reference of a shape.
#[derive(Clone, Copy)]
struct Place {
    /// Where it went the last time: a dense address.
    last: u64,
    /// The upper bits of its word.
    pattern: u16,
}

/// In `latest`: the block has not been executed yet.
const NO_SHAPE: u32 = u32::MAX;

pub(crate) struct ThreadEncoder {
    pub chunk: ChunkBuilder,
    /// Writes and instructions so far, and the events of finished chunks.
    written: Counts,
    shapes: Vec<Shape>,
    places: Vec<Place>,
    by_events: HashMap<Box<[Event]>, u16>,
    /// For each block, the shape that it had the last time.
    latest: Vec<u32>,
    /// The block that executes.
    running: usize,
    /// A block whose references may go on in the thread's next buffer.
    open: Vec<Word>,
    events: Vec<Event>,
    addresses: Vec<u64>,
}

impl ThreadEncoder {
    pub fn new() -> Self {
        ThreadEncoder {
            chunk: ChunkBuilder::new(),
            written: Counts::default(),
            shapes: Vec::new(),
            places: Vec::new(),
            by_events: HashMap::new(),
            latest: Vec::new(),
            running: usize::MAX,
            open: Vec::new(),
            events: Vec::new(),
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
            self.encode_open(!words.is_empty(), blocks, pages);
        }
        while !self.chunk_is_full() {
            words = self.repeat(words, pages);
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

    /// Encodes the block that was left open: the thread does nothing more.
    pub fn close(&mut self, blocks: &[Block], pages: &mut Pages) {
        self.encode_open(true, blocks, pages);
    }

    /// Encodes the open block, but for its last part if it has not `ended`.
    fn encode_open(&mut self, ended: bool, blocks: &[Block], pages: &mut Pages) {
        let mut open = std::mem::take(&mut self.open);
        let mut words = open.as_slice();
        while !words.is_empty() {
            let (begins, references) = part(words);
            let (now, later) = words.split_at(begins + references);
            if later.is_empty() && !ended {
                break;
            }
            self.execute(now, later.first().map(|word| word::instruction(*word)), blocks, pages);
            words = later;
        }
        let left = words.len();
        open.drain(..open.len() - left);
        self.open = open;
    }

    /// A chunk ends when it has its events, or when the dictionary must be started afresh.
    pub fn chunk_is_full(&self) -> bool {
        self.chunk.is_full() || self.dictionary_is_nearly_full()
    }

    /// Encodes one part of a block: its marker, unless this part continues the block, then
    /// references. `end` is the instruction at which a continued block goes on.
    fn execute(&mut self, words: &[Word], end: Option<u32>, blocks: &[Block], pages: &mut Pages) {
        let begins = word::is_block(words[0]);
        if begins {
            self.running = word::block(words[0]);
        }
        let references = &words[usize::from(begins)..];
        let whole = begins && end.is_none();
        let block = blocks.get(self.running).copied().unwrap_or_default();
        let end = end.unwrap_or(block.instructions);
        self.list_events(begins.then_some(block), references, end, pages);
        self.append_listed(references, whole);
    }

    /// Encodes the blocks at the front of `words` that do what they did the last time, but for
    /// the addresses. Returns the other words. This is where nearly all the time goes.
    fn repeat<'a>(&mut self, mut words: &'a [Word], pages: &mut Pages) -> &'a [Word] {
        while let Some((first, rest)) = words.split_first()
            && word::is_block(*first)
            && !self.chunk.is_full()
        {
            let number = self.latest.get(word::block(*first)).copied().unwrap_or(NO_SHAPE);
            let Some(shape) = self.shapes.get(number as usize) else { break };
            let count = usize::from(shape.references);
            let Some((references, after)) = rest.split_at_checked(count) else { break };
            let Some(next) = after.first() else { break };
            let places = &mut self.places[shape.first as usize..][..count];
            let mut same = shape.from_words && word::is_block(*next);
            for (word, place) in references.iter().zip(&*places) {
                same &= word::pattern(*word) == place.pattern && !word::crosses_page(*word);
            }
            if !same {
                break;
            }
            self.written.writes += u64::from(shape.writes);
            self.written.instructions += u64::from(shape.instructions);
            let addresses = references.iter().map(|word| dense(word::address(*word), pages));
            let moves = places.iter_mut().zip(addresses).map(|(place, address)| (&mut place.last, address));
            self.chunk.execute(number as u16, usize::from(shape.fetches), moves);
            words = after;
        }
        words
    }

    /// Lists the events of an execution in `events`, and the data addresses in `addresses`.
    fn list_events(&mut self, block: Option<Block>, part: &[Word], end: u32, pages: &mut Pages) {
        self.events.clear();
        self.addresses.clear();
        let bounded = |from: u32, to: u32| to.saturating_sub(from).min(MAX_INSTRUCTIONS);
        if let Some(block) = block.filter(|block| block.bytes > 0) {
            let before = bounded(0, part.first().map_or(end, |word| word::instruction(*word)));
            let (this_page, next_page) = split(block.address, block.bytes);
            let first_gets = if next_page == 0 { before } else { 0 };
            let address = dense(block.address, pages);
            self.events.push(Event::new(Kind::Fetch, address, this_page.into(), first_gets));
            if next_page > 0 {
                let address = dense(block.address + u64::from(this_page), pages);
                self.events.push(Event::new(Kind::Fetch, address, next_page.into(), before));
            }
        }
        for (i, reference) in part.iter().enumerate() {
            let next = part.get(i + 1).map_or(end, |word| word::instruction(*word));
            let instructions = bounded(word::instruction(*reference), next);
            let kind = if word::is_store(*reference) { Kind::Write } else { Kind::Read };
            let address = word::address(*reference);
            let (this_page, next_page) = split(address, word::bytes(*reference));
            let first_gets = if next_page == 0 { instructions } else { 0 };
            self.events.push(Event::new(kind, 0, this_page.into(), first_gets));
            self.addresses.push(dense(address, pages));
            if next_page > 0 {
                self.events.push(Event::new(kind, 0, next_page.into(), instructions));
                self.addresses.push(dense(address + u64::from(this_page), pages));
            }
        }
    }

    /// Appends the listed execution. A `whole` block is recognized by its shape the next time.
    fn append_listed(&mut self, part: &[Word], whole: bool) {
        let number = match self.by_events.get(self.events.as_slice()) {
            Some(number) => *number,
            None => self.define(part),
        };
        if whole {
            if self.latest.len() <= self.running {
                self.latest.resize(self.running + 1, NO_SHAPE);
            }
            self.latest[self.running] = number.into();
        }
        let shape = self.shapes[usize::from(number)];
        self.written.writes += u64::from(shape.writes);
        self.written.instructions += u64::from(shape.instructions);
        let places = &mut self.places[shape.first as usize..][..self.addresses.len()];
        let moves =
            places.iter_mut().zip(&self.addresses).map(|(place, address)| (&mut place.last, *address));
        self.chunk.execute(number, usize::from(shape.fetches), moves);
    }

    /// Defines the listed execution as a new shape.
    fn define(&mut self, part: &[Word]) -> u16 {
        let mut counts = Counts::default();
        self.events.iter().for_each(|event| counts.count(*event));
        let from_words = self.addresses.len() == part.len();
        let number = self.shapes.len() as u16;
        self.shapes.push(Shape {
            first: self.places.len() as u32,
            references: counts.references() as u16,
            fetches: counts.fetches as u16,
            writes: counts.writes as u16,
            instructions: counts.instructions as u16,
            from_words,
        });
        let pattern = |i: usize| if from_words { word::pattern(part[i]) } else { 0 };
        self.places.extend((0..self.addresses.len()).map(|i| Place { last: 0, pattern: pattern(i) }));
        write_definition(&self.events, &mut self.chunk.definitions);
        self.chunk.new_shapes += 1;
        self.by_events.insert(self.events.as_slice().into(), number);
        number
    }

    fn dictionary_is_nearly_full(&self) -> bool {
        let events = self.places.len() + self.shapes.len() * MAX_FETCHES;
        self.shapes.len() + 256 > MAX_SHAPES || events + MAX_CHUNK_EVENTS - CHUNK_EVENTS > MAX_SLOTS
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
        if self.dictionary_is_nearly_full() {
            self.shapes.clear();
            self.places.clear();
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
