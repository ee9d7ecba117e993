//! Storage as an embedded database has it: B-trees whose pages are looked up in a page cache and locked, rows, and a
//! log in memory.
//!
//! Trees, rows and log are real. Synthetic is the program text: its length, and how long it executes. Fedorova,
//! Seltzer and Smith built theirs on Oracle Berkeley DB; its makers' "Performance Metrics and Benchmarks" has, for
//! data in memory, some 350,000 transactional reads of a record a second on a 2 GHz Athlon, and some 100,000
//! writes where the log is not waited for (recalled): some 6,000 and 20,000 cycles. The lengths of text are
//! assumptions.

use crate::filled::touch_pages;
use crate::oltp::btree::{self, NODE_WORDS};
use crate::oltp::words::{Charged, Peeked};
use hearth_hardware::{Address, Placement, Segment};
use hearth_sim::memory::{Array, Code, Memory};
use hearth_sim::program::Cpu;
use std::cell::{Cell, RefCell};

/// Text and cycles to read a record; what changing one takes more; and what beginning and ending a transaction takes.
const GET: (u64, u64) = (8 << 10, 6_000);
const PUT: (u64, u64) = (8 << 10, 14_000);
const TRANSACTION: (u64, u64) = (8 << 10, 10_000);
/// Cycles of going on to a record that lies beside the last one.
const NEXT_CYCLES: u64 = 1_000;

/// The page cache and the table of locks have hashed buckets of two words, and for each page a header, for each lock
/// that a transaction holds an entry, both of a line.
const BUCKETS: usize = 1024;
const BUCKET_WORDS: usize = 2;
const HEADERS: usize = 1 << 16;
const LOCKS: usize = 1000;
const ENTRY_WORDS: usize = 8;
/// A page is a node of a tree.
const NODE_BYTES: u64 = NODE_WORDS as u64 * 8;
/// Bytes of the log's buffer, which is written again and again, and of a record's header.
const LOG_BYTES: u64 = 32 << 10;
const LOG_HEADER_BYTES: u64 = 48;

/// What all tables share.
pub(super) struct Engine {
    get: Code,
    put: Code,
    transaction: Code,
    pages: Array<u64>,
    headers: Array<u64>,
    lock_buckets: Array<u64>,
    locks: Array<u64>,
    /// Pages that the transaction has locked, in order.
    locked: RefCell<Vec<u64>>,
    log: Segment,
    log_end: Cell<u64>,
}

impl Engine {
    pub(super) fn new(memory: &Memory) -> Self {
        let [get, put, transaction] = [GET, PUT, TRANSACTION].map(|(bytes, _)| memory.code(bytes));
        let words = |count: usize, words: usize| memory.array(count * words, Placement::FirstTouch);
        Self {
            get,
            put,
            transaction,
            pages: words(BUCKETS, BUCKET_WORDS),
            headers: words(HEADERS, ENTRY_WORDS),
            lock_buckets: words(BUCKETS, BUCKET_WORDS),
            locks: words(LOCKS, ENTRY_WORDS),
            locked: RefCell::default(),
            log: memory.segment(LOG_BYTES, Placement::FirstTouch),
            log_end: Cell::new(0),
        }
    }

    /// Begins a transaction.
    pub(super) fn begin(&self, cpu: &mut Cpu<'_>) {
        cpu.fetch(self.transaction);
        cpu.compute(TRANSACTION.1 / 2);
        self.append(cpu, 0);
    }

    /// Ends it, and frees its locks.
    pub(super) fn end(&self, cpu: &mut Cpu<'_>) {
        self.begin(cpu);
        for (lock, page) in self.locked.take().into_iter().enumerate() {
            self.locks.set(cpu, lock % LOCKS * ENTRY_WORDS, 0);
            self.lock_buckets.set(cpu, bucket(page), 0);
        }
    }

    /// Finds a page in the cache, notes its use, and locks it until the transaction ends.
    fn page(&self, cpu: &mut Cpu<'_>, page: u64) {
        self.pages.get(cpu, bucket(page));
        let header = page as usize % HEADERS * ENTRY_WORDS;
        (1..ENTRY_WORDS / 2).for_each(|word| _ = self.headers.get(cpu, header + word));
        let uses = self.headers.get(cpu, header);
        self.headers.set(cpu, header, uses + 1);
        let mut locked = self.locked.borrow_mut();
        let lock = locked.iter().position(|&other| other == page).unwrap_or_else(|| {
            locked.push(page);
            locked.len() - 1
        });
        drop(locked);
        self.lock_buckets.set(cpu, bucket(page), page);
        self.locks.set(cpu, lock % LOCKS * ENTRY_WORDS, page);
    }

    /// Puts a record with so many bytes of data into the log.
    fn append(&self, cpu: &mut Cpu<'_>, bytes: u64) {
        let bytes = bytes + LOG_HEADER_BYTES;
        let at = self.log_end.get();
        let at = if at + bytes > LOG_BYTES { 0 } else { at };
        cpu.write_span(self.log.base + at, bytes);
        self.log_end.set(at + bytes.next_multiple_of(8));
    }
}

/// The bucket of a page.
fn bucket(page: u64) -> usize {
    (page.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40) as usize % BUCKETS * BUCKET_WORDS
}

/// Rows of one length.
pub(super) struct Rows {
    segment: Segment,
    row_bytes: u64,
}

impl Rows {
    pub(super) fn new(memory: &Memory, rows: u64, row_bytes: u64) -> Self {
        let row_bytes = row_bytes.next_multiple_of(8);
        Self { segment: memory.segment(rows * row_bytes, Placement::FirstTouch), row_bytes }
    }

    fn address(&self, row: u64) -> Address {
        self.segment.base + row * self.row_bytes
    }

    /// Gives all rows memory.
    pub(super) fn touch(&self, cpu: &mut Cpu<'_>) {
        touch_pages(cpu, self.segment.base, self.segment.bytes);
    }

    pub(super) fn read(&self, cpu: &mut Cpu<'_>, row: u64) {
        cpu.read_span(self.address(row), self.row_bytes);
    }

    /// Changes a row, and logs it.
    pub(super) fn write(&self, cpu: &mut Cpu<'_>, engine: &Engine, row: u64) {
        cpu.fetch(engine.put);
        cpu.compute(PUT.1);
        cpu.write_span(self.address(row), self.row_bytes);
        engine.append(cpu, self.row_bytes);
    }
}

/// A B-tree.
pub(super) struct Tree {
    words: Array<u64>,
}

impl Tree {
    /// An empty tree with room for `keys` keys.
    pub(super) fn new(memory: &Memory, keys: u64) -> Self {
        let words = memory.array(btree::words_for(keys as usize), Placement::FirstTouch);
        btree::create(&mut Peeked(&words));
        Self { words }
    }

    /// Puts a new key in while the database is set up.
    pub(super) fn load(&self, key: u64, value: u64) {
        btree::insert(&mut Peeked(&self.words), key, value);
    }

    /// Gives all nodes memory.
    pub(super) fn touch(&self, cpu: &mut Cpu<'_>) {
        touch_pages(cpu, self.words.address(0), self.words.len() as u64 * 8);
    }

    fn visit(&self, cpu: &mut Cpu<'_>, engine: &Engine, node: u64) {
        engine.page(cpu, self.words.address(node as usize * NODE_WORDS) / NODE_BYTES);
    }

    /// The value of a key.
    pub(super) fn get(&self, cpu: &mut Cpu<'_>, engine: &Engine, key: u64) -> Option<u64> {
        cpu.fetch(engine.get);
        cpu.compute(GET.1);
        btree::find(&mut Charged { words: &self.words, cpu }, key, |words, node| {
            self.visit(words.cpu, engine, node);
        })
    }

    /// The first `most` keys from `from` up to `below`, with their values.
    pub(super) fn range(
        &self,
        cpu: &mut Cpu<'_>,
        engine: &Engine,
        [from, below]: [u64; 2],
        most: usize,
    ) -> Vec<(u64, u64)> {
        let mut found = Vec::new();
        cpu.fetch(engine.get);
        cpu.compute(GET.1);
        btree::scan(
            &mut Charged { words: &self.words, cpu },
            from,
            below,
            |words, node| self.visit(words.cpu, engine, node),
            |key, value| {
                found.push((key, value));
                found.len() < most
            },
        );
        cpu.compute(NEXT_CYCLES * found.len() as u64);
        found
    }

    /// Gives a key a value, whether or not it is there.
    pub(super) fn put(&self, cpu: &mut Cpu<'_>, engine: &Engine, key: u64, value: u64) {
        let there = self.get(cpu, engine, key).is_some();
        cpu.fetch(engine.put);
        cpu.compute(PUT.1);
        let words = &mut Charged { words: &self.words, cpu };
        if there {
            btree::set(words, key, value);
        } else {
            btree::insert(words, key, value);
        }
        engine.append(cpu, 16);
    }

    /// Takes a key out.
    pub(super) fn remove(&self, cpu: &mut Cpu<'_>, engine: &Engine, key: u64) {
        self.get(cpu, engine, key);
        cpu.fetch(engine.put);
        cpu.compute(PUT.1);
        btree::remove(&mut Charged { words: &self.words, cpu }, key);
        engine.append(cpu, 16);
    }

    /// Checks the tree; returns its keys and values.
    pub(super) fn check(&self) -> Result<Vec<(u64, u64)>, String> {
        btree::check_after_removals(&mut Peeked(&self.words))
    }
}

/// Rows that are found by a key.
pub(super) struct Table {
    pub(super) tree: Tree,
    pub(super) rows: Rows,
}

impl Table {
    /// An empty table with room for `rows` rows of `row_bytes`.
    pub(super) fn new(memory: &Memory, rows: u64, row_bytes: u64) -> Self {
        Self { tree: Tree::new(memory, rows), rows: Rows::new(memory, rows, row_bytes) }
    }

    /// A table whose rows have the keys from 0.
    pub(super) fn full(memory: &Memory, rows: u64, row_bytes: u64) -> Self {
        let table = Self::new(memory, rows, row_bytes);
        (0..rows).for_each(|row| table.tree.load(row, row));
        table
    }

    /// Finds a row and reads it. False if it is not there.
    pub(super) fn read(&self, cpu: &mut Cpu<'_>, engine: &Engine, key: u64) -> bool {
        let row = self.tree.get(cpu, engine, key);
        row.is_some_and(|row| {
            self.rows.read(cpu, row);
            true
        })
    }

    /// Finds a row, reads and changes it.
    pub(super) fn change(&self, cpu: &mut Cpu<'_>, engine: &Engine, key: u64) {
        if let Some(row) = self.tree.get(cpu, engine, key) {
            self.rows.read(cpu, row);
            self.rows.write(cpu, engine, row);
        }
    }

    /// Puts a row in, or in the place of the one that has the key. The row has the number of its key.
    pub(super) fn put(&self, cpu: &mut Cpu<'_>, engine: &Engine, key: u64) {
        self.tree.put(cpu, engine, key, key);
        self.rows.write(cpu, engine, key);
    }
}
