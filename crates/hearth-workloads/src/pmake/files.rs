//! Files: reads that wait for the disk or the file server, and writes that a daemon carries out.

use hearth_hardware::Placement;
use hearth_sim::memory::{Array, Memory};
use hearth_sim::program::Cpu;
use hearth_sim::sync::Semaphore;
use std::cell::Cell;
use std::rc::Rc;

/// How long the file server takes to say where a file is, or that a write has been taken: a message
/// each way and a look into its own cache.
const SERVER_NS: u64 = 5_000_000;
/// Bytes of a block of a file, the unit of reading and writing.
pub const BLOCK_BYTES: u64 = 4 << 10;
/// Blocks that the daemon gathers before it writes them to disk.
const BLOCKS_PER_WRITE: u64 = 8;
/// Words of the kernel's buffer for blocks on their way.
const BUFFER_WORDS: usize = 8 << 10;
const BLOCK_WORDS: usize = BLOCK_BYTES as usize / 8;

/// The file system. Clones name the same one.
#[derive(Clone)]
pub struct Files {
    buffer: Array<u64>,
    next: Rc<Cell<usize>>,
    written: Semaphore,
    open: Rc<Cell<bool>>,
}

impl Files {
    /// A file system.
    pub fn new(memory: &Memory) -> Self {
        Self {
            buffer: memory.array(BUFFER_WORDS, Placement::FirstTouch),
            next: Rc::default(),
            written: Semaphore::new(0),
            open: Rc::new(Cell::new(true)),
        }
    }

    /// Where the next block of the buffer starts.
    fn block(&self) -> usize {
        let block = self.next.get();
        self.next.set((block + BLOCK_WORDS) % BUFFER_WORDS);
        block
    }

    /// Waits for the file server.
    pub fn ask_server(&self, cpu: &mut Cpu<'_>) {
        cpu.sleep_ns(SERVER_NS);
    }

    /// Reads a block from disk into a task's own `block`.
    pub fn read(&self, cpu: &mut Cpu<'_>, into: &Array<u64>) {
        cpu.io(BLOCK_BYTES);
        let from = self.block();
        cpu.read_span(self.buffer.address(from), BLOCK_BYTES);
        cpu.write_span(into.address(0), BLOCK_BYTES);
    }

    /// Writes a block: the daemon will take it to disk.
    pub fn write(&self, cpu: &mut Cpu<'_>, from: &Array<u64>) {
        let to = self.block();
        cpu.read_span(from.address(0), BLOCK_BYTES);
        cpu.write_span(self.buffer.address(to), BLOCK_BYTES);
        self.written.post(cpu);
    }

    /// The daemon, until the file system is closed.
    pub fn serve(&self, cpu: &mut Cpu<'_>) {
        let mut blocks = 0;
        loop {
            self.written.wait(cpu);
            if !self.open.get() {
                return;
            }
            blocks += 1;
            if blocks == BLOCKS_PER_WRITE {
                cpu.io(blocks * BLOCK_BYTES);
                blocks = 0;
            }
        }
    }

    /// Ends the daemon.
    pub fn close(&self, cpu: &mut Cpu<'_>) {
        self.open.set(false);
        self.written.post(cpu);
    }
}
