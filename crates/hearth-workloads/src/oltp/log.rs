//! The redo log: a buffer that all processes write to, and a process that writes it to disk. All
//! transactions that ended while a write was under way are committed by the next one.

use super::text::{Process, WRITE_LOG};
use hearth_hardware::Placement;
use hearth_sim::memory::{Array, Memory};
use hearth_sim::program::Cpu;
use hearth_sim::sync::{Lock, Semaphore};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// Words of the buffer, used round and round.
const BUFFER_WORDS: usize = 16 << 10;
/// How long a write takes: a request of a disk of 1990, and a few KB. It ends without an interrupt, for the paper's
/// database processes "do not cause interrupts" (section 5.4.1).
const WRITE_NS: u64 = 16_000_000;

/// The log. Clones name the same one.
#[derive(Clone)]
pub struct Log {
    buffer: Array<u64>,
    /// Words written so far.
    end: Array<u64>,
    latch: Lock,
    /// Servers whose commit record is in the buffer but not on disk.
    waiting: Rc<RefCell<Vec<usize>>>,
    /// Whether the log writer is at work.
    busy: Rc<Cell<bool>>,
    work: Semaphore,
    committed: Rc<[Semaphore]>,
    open: Rc<Cell<bool>>,
}

impl Log {
    /// A log for `servers` servers.
    pub fn new(memory: &Memory, servers: usize) -> Self {
        Self {
            buffer: memory.array(BUFFER_WORDS, Placement::FirstTouch),
            end: memory.array(1, Placement::FirstTouch),
            latch: Lock::new(memory),
            waiting: Rc::default(),
            busy: Rc::default(),
            work: Semaphore::new(0),
            committed: (0..servers).map(|_| Semaphore::new(0)).collect(),
            open: Rc::new(Cell::new(true)),
        }
    }

    /// Copies a record into the buffer.
    pub fn append(&self, cpu: &mut Cpu<'_>, record: &[u64]) {
        self.latch.acquire(cpu);
        self.copy(cpu, record);
        self.latch.release(cpu);
    }

    fn copy(&self, cpu: &mut Cpu<'_>, record: &[u64]) {
        let end = self.end.get(cpu, 0);
        for (word, &value) in record.iter().enumerate() {
            self.buffer.set(cpu, (end as usize + word) % BUFFER_WORDS, value);
        }
        self.end.set(cpu, 0, end + record.len() as u64);
    }

    /// Copies a commit record, and waits until it is on disk. `between` runs when the record is in
    /// the buffer: what the transaction holds can be given up then.
    pub fn commit(
        &self,
        cpu: &mut Cpu<'_>,
        server: usize,
        record: &[u64],
        between: impl FnOnce(&mut Cpu<'_>),
    ) {
        self.latch.acquire(cpu);
        self.copy(cpu, record);
        self.waiting.borrow_mut().push(server);
        let idle = !self.busy.replace(true);
        self.latch.release(cpu);
        between(cpu);
        if idle {
            self.work.post(cpu);
        }
        self.committed[server].wait(cpu);
    }

    /// The log writer: writes while there is something to write, until the log is closed.
    pub fn write(&self, cpu: &mut Cpu<'_>, process: &Process) {
        loop {
            self.work.wait(cpu);
            if !self.open.get() {
                return;
            }
            while let Some(servers) = self.take(cpu) {
                process.run(cpu, WRITE_LOG);
                cpu.sleep_ns(WRITE_NS);
                servers.into_iter().for_each(|server| self.committed[server].post(cpu));
            }
        }
    }

    /// The servers that wait for the buffer up to its present end; `None` if there are none.
    fn take(&self, cpu: &mut Cpu<'_>) -> Option<Vec<usize>> {
        self.latch.acquire(cpu);
        self.end.get(cpu, 0);
        let servers = self.waiting.take();
        if servers.is_empty() {
            self.busy.set(false);
        }
        self.latch.release(cpu);
        (!servers.is_empty()).then_some(servers)
    }

    /// Ends the log writer.
    pub fn close(&self, cpu: &mut Cpu<'_>) {
        self.open.set(false);
        self.work.post(cpu);
    }
}
