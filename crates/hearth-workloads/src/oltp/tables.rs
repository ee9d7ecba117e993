//! Tables and their indices in memory: what a transaction reads and changes.

use super::btree::{self, NODE_WORDS};
use super::text::{GET_PAGE, Process, SEARCH, UPDATE_ROW};
use super::words::{Charged, Peeked};
use hearth_hardware::Placement;
use hearth_sim::memory::{Array, Memory};
use hearth_sim::program::Cpu;
use hearth_sim::sync::Lock;
use std::rc::Rc;

/// A row of accounts, tellers or branches: 96 bytes.
#[derive(Clone, Copy, Default)]
pub struct Row {
    key: u64,
    /// The money in it.
    pub balance: i64,
    _filler: [u64; 10],
}

/// Bytes of a row that an update looks at.
const ROW_READ_BYTES: u64 = 48;
const ROW_BYTES: u64 = size_of::<Row>() as u64;
/// Bytes of a page of rows.
const PAGE_BYTES: u64 = 2048;

/// Headers of the page cache, hashed by page: four words each.
const HEADERS: usize = 1024;
const HEADER_WORDS: usize = 4;
/// Latches of the page cache, each for many headers.
const LATCHES: usize = 16;

/// The page cache's directory. All pages are in memory; each use of one looks it up here.
#[derive(Clone)]
pub struct PageCache {
    headers: Array<u64>,
    latches: Rc<[Lock]>,
}

impl PageCache {
    /// A page cache that holds everything.
    pub fn new(memory: &Memory) -> Self {
        Self {
            headers: memory.array(HEADERS * HEADER_WORDS, Placement::FirstTouch),
            latches: (0..LATCHES).map(|_| Lock::new(memory)).collect(),
        }
    }

    /// Finds a page, and notes its use.
    fn get(&self, cpu: &mut Cpu<'_>, process: &Process, page: u64) {
        process.run(cpu, GET_PAGE);
        let bucket = (page.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40) as usize % HEADERS;
        let latch = &self.latches[bucket % LATCHES];
        latch.acquire(cpu);
        let header = bucket * HEADER_WORDS;
        (1..HEADER_WORDS).for_each(|word| _ = self.headers.get(cpu, header + word));
        let uses = self.headers.get(cpu, header);
        self.headers.set(cpu, header, uses + 1);
        latch.release(cpu);
    }
}

/// An index: a B-tree with a latch that keeps it consistent.
#[derive(Clone)]
pub struct Index {
    words: Array<u64>,
    latch: Lock,
    cache: PageCache,
}

impl Index {
    /// An empty index with room for `keys` keys.
    pub fn new(memory: &Memory, cache: &PageCache, keys: usize) -> Self {
        let words = memory.array(btree::words_for(keys), Placement::FirstTouch);
        btree::create(&mut Peeked(&words));
        Self { words, latch: Lock::new(memory), cache: cache.clone() }
    }

    /// What it takes to look into a node.
    fn visit(&self, cpu: &mut Cpu<'_>, process: &Process, node: u64) {
        let page = self.words.address(node as usize * NODE_WORDS) / PAGE_BYTES;
        self.cache.get(cpu, process, page);
        process.run(cpu, SEARCH);
    }

    /// Looks a key up.
    fn find(&self, cpu: &mut Cpu<'_>, process: &Process, key: u64) -> Option<u64> {
        self.latch.acquire(cpu);
        let found = btree::find(&mut Charged { words: &self.words, cpu }, key, |words, node| {
            self.visit(words.cpu, process, node);
        });
        self.latch.release(cpu);
        found
    }

    /// Puts a new key in, where a search for it ends.
    pub fn insert(&self, cpu: &mut Cpu<'_>, process: &Process, key: u64, value: u64) {
        self.latch.acquire(cpu);
        btree::find(&mut Charged { words: &self.words, cpu }, key, |words, node| {
            self.visit(words.cpu, process, node);
        });
        btree::insert(&mut Charged { words: &self.words, cpu }, key, value);
        self.latch.release(cpu);
    }

    /// Checks the tree; returns its keys and values.
    pub fn check(&self) -> Result<Vec<(u64, u64)>, String> {
        btree::check(&mut Peeked(&self.words))
    }
}

/// Rows with a balance, and an index of their keys.
#[derive(Clone)]
pub struct Table {
    rows: Array<Row>,
    index: Index,
}

impl Table {
    /// A table of `rows` rows without money. Row `i` has the key `i`; the rows lie in another order.
    pub fn new(memory: &Memory, cache: &PageCache, rows: usize) -> Self {
        let table =
            Self { rows: memory.array(rows, Placement::FirstTouch), index: Index::new(memory, cache, rows) };
        for key in 0..rows {
            let at = (key * 7919 + 13) % rows;
            table.rows.poke(at, Row { key: key as u64, ..Row::default() });
            btree::insert(&mut Peeked(&table.index.words), key as u64, at as u64);
        }
        table
    }

    /// Adds to the balance of the row with this key, if there is one. Returns the new balance.
    pub fn add(&self, cpu: &mut Cpu<'_>, process: &Process, key: u64, amount: i64) -> Option<i64> {
        let at = self.index.find(cpu, process, key)? as usize;
        let address = self.rows.address(at);
        self.index.cache.get(cpu, process, address / PAGE_BYTES);
        process.run(cpu, UPDATE_ROW);
        cpu.read_span(address, ROW_READ_BYTES);
        let mut row = self.rows.peek(at);
        row.balance += amount;
        self.rows.poke(at, row);
        cpu.write_span(address, 16);
        Some(row.balance)
    }

    /// The sum of all balances, after checking the index.
    pub fn sum(&self) -> Result<i64, String> {
        for (key, at) in self.index.check()? {
            if self.rows.peek(at as usize).key != key {
                return Err(format!("the index leads from key {key} to another row"));
            }
        }
        Ok((0..self.rows.len()).map(|at| self.rows.peek(at).balance).sum())
    }
}

const _: () = assert!(ROW_BYTES == 96);
