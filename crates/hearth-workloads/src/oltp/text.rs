//! The database's program text: what each operation executes, and what it does in the private area.
//!
//! A transaction goes through more text than an instruction cache of 64 KB holds, most of it once, so a process
//! finds little of it where another one has run. That is what the paper's figures say of Oracle: 620 misses in
//! a busy millisecond (table V), as many as an interval that starts with empty caches has (table IV). It is a small part
//! of the whole text: procedures here and there, in the order in which they were linked and not in that of their use.

use hearth_hardware::{Address, Placement};
use hearth_sim::memory::{Array, Code, Memory};
use hearth_sim::program::Cpu;
use rand_core::Rng;
use rand_pcg::Pcg32;
use std::rc::Rc;

/// A part of the database's work. Its text is fetched in full, and takes `cycles` to execute with
/// its loops; it uses a stretch of the process's private area of its own.
#[derive(Clone, Copy)]
pub struct Operation {
    /// Which of the text in use is its own, and how long that is.
    offset: u64,
    bytes: u64,
    /// Cycles to execute it, beside the references that are made one by one.
    cycles: u64,
    /// Bytes of the private area that it reads and writes.
    private_bytes: u64,
}

const fn after(previous: Operation, bytes: u64, cycles: u64, private_bytes: u64) -> Operation {
    Operation { offset: previous.offset + previous.bytes, bytes, cycles, private_bytes }
}

/// Bytes of the shared dictionary that an operation reads, for each byte of its text: the
/// statements' plans and the descriptions of tables, which hardly ever change.
const DICTIONARY_SHARE: (u64, u64) = (5, 8);

/// Takes a request from the driver and checks it.
pub const REQUEST: Operation = Operation { offset: 0, bytes: 7 << 10, cycles: 6_300, private_bytes: 512 };
/// Binds the values of the request to the prepared statements.
pub const PREPARE: Operation = after(REQUEST, 13 << 10, 12_600, 1024);
/// Gets one page from the page cache.
pub const GET_PAGE: Operation = after(PREPARE, 2 << 10, 400, 64);
/// Searches one level of an index.
pub const SEARCH: Operation = after(GET_PAGE, 2 << 10, 2_800, 64);
/// Changes a row.
pub const UPDATE_ROW: Operation = after(SEARCH, 7 << 10, 3_500, 256);
/// Writes what is needed to undo and to redo a change.
pub const REDO: Operation = after(UPDATE_ROW, 7 << 10, 2_400, 256);
/// Puts a new row in.
pub const INSERT_ROW: Operation = after(REDO, 7 << 10, 2_100, 256);
/// Ends a transaction up to its wait for the log.
pub const COMMIT: Operation = after(INSERT_ROW, 7 << 10, 4_900, 256);
/// Cleans up after the commit: cursors, locks, statistics.
pub const CLEAN_UP: Operation = after(COMMIT, 13 << 10, 22_400, 1024);
/// Makes the answer and hands it to the driver.
pub const ANSWER: Operation = after(CLEAN_UP, 9 << 10, 14_000, 1024);
/// The log writer's round.
pub const WRITE_LOG: Operation = after(ANSWER, 2 << 10, 700, 256);
/// The driver's draw of the next transaction.
pub const DRIVE: Operation = after(WRITE_LOG, 2 << 10, 500, 128);

/// Text in use.
const USED_BYTES: u64 = DRIVE.offset + DRIVE.bytes;
/// The text as a whole (estimate; all that matters is that a cache holds little of it).
const TEXT_BYTES: u64 = 1 << 20;
/// Text that lies together: a procedure or two.
const PIECE_BYTES: u64 = 1 << 10;
/// Bytes of a process's private area.
const PRIVATE_BYTES: u64 = 8 << 10;
const WORD_BYTES: u64 = 8;

/// The text and the dictionary, which all processes share.
#[derive(Clone)]
pub struct Text {
    code: Code,
    dictionary: Address,
    /// Where each piece of the text in use lies, counted in pieces.
    places: Rc<[u64]>,
}

impl Text {
    /// Loads the program.
    pub fn new(memory: &Memory, random: &mut Pcg32) -> Self {
        let mut free: Vec<u64> = (0..TEXT_BYTES / PIECE_BYTES).collect();
        let mut draw = |_| free.swap_remove(random.next_u32() as usize % free.len());
        Self {
            code: memory.code(TEXT_BYTES),
            dictionary: memory.segment(dictionary_part(TEXT_BYTES), Placement::FirstTouch).base,
            places: (0..USED_BYTES / PIECE_BYTES).map(&mut draw).collect(),
        }
    }
}

/// Where in the dictionary lies what belongs to the text up to an offset.
fn dictionary_part(bytes: u64) -> u64 {
    bytes * DICTIONARY_SHARE.0 / DICTIONARY_SHARE.1
}

/// A process: the shared text, and an area of its own.
pub struct Process {
    text: Text,
    area: Array<u64>,
}

impl Process {
    /// A process of the database.
    pub fn new(memory: &Memory, text: Text) -> Self {
        Self { text, area: memory.array((PRIVATE_BYTES / WORD_BYTES) as usize, Placement::FirstTouch) }
    }

    /// Does an operation.
    pub fn run(&self, cpu: &mut Cpu<'_>, operation: Operation) {
        let pieces = operation.offset / PIECE_BYTES..(operation.offset + operation.bytes) / PIECE_BYTES;
        for piece in pieces {
            let offset = self.text.places[piece as usize] * PIECE_BYTES;
            cpu.fetch(self.text.code.part(offset, PIECE_BYTES));
            cpu.read_span(self.text.dictionary + dictionary_part(offset), dictionary_part(PIECE_BYTES));
        }
        let start = operation.offset / 4 % (PRIVATE_BYTES - operation.private_bytes) / WORD_BYTES;
        for word in start..start + operation.private_bytes / WORD_BYTES {
            let value = self.area.get(cpu, word as usize);
            self.area.set(cpu, word as usize, value + 1);
        }
        cpu.compute(operation.cycles);
    }
}
