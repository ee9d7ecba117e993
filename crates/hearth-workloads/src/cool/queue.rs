//! The queue of a process: tasks that belong to it, in simulated memory of its own.

use super::Process;
use hearth_hardware::Placement;
use hearth_sim::memory::{Array, Memory};
use hearth_sim::program::Cpu;
use hearth_sim::two_phase::BlockingLock;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

/// What a task does.
pub type Work = Box<dyn FnOnce(&mut Cpu<'_>, &Process)>;

/// What the owner of a queue is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// A task, or the master's serial part.
    Busy,
    /// It looks for a task.
    Looking,
    /// It is blocked, for there is no task.
    Idle,
    /// It is blocked until the program has more CPUs.
    Suspended,
}

struct Task {
    work: Work,
    /// When it was put in.
    since_ns: u64,
}

/// The words of a queue: its lock, how many tasks wait, and a ring of descriptors.
const LOCK: usize = 0;
const WAITING: usize = 1;
const RING: usize = 2;
/// Words of a descriptor: function, object, affinity, link. Descriptors of a ring, used again in turn.
const DESCRIPTOR: usize = 4;
const DESCRIPTORS: usize = 64;

pub struct Queue {
    words: Array<u64>,
    lock: BlockingLock,
    tasks: RefCell<VecDeque<Task>>,
    /// Tasks put in so far, which is where the next one is described.
    put: Cell<usize>,
    pub state: Cell<State>,
}

impl Queue {
    pub fn new(memory: &Memory) -> Self {
        let words = memory.array(RING + DESCRIPTORS * DESCRIPTOR, Placement::FirstTouch);
        let lock = BlockingLock::new(&words, LOCK);
        let state = Cell::new(State::Looking);
        Self { words, lock, tasks: RefCell::default(), put: Cell::new(0), state }
    }

    /// Its owner touches it first, so it lies where the owner runs.
    pub fn touch(&self, cpu: &mut Cpu<'_>) {
        cpu.write(self.words.address(WAITING));
    }

    fn descriptor(&self, number: usize) -> u64 {
        self.words.address(RING + number % DESCRIPTORS * DESCRIPTOR)
    }

    /// Puts a task in.
    pub fn put(&self, cpu: &mut Cpu<'_>, work: Work) {
        self.lock.acquire(cpu);
        let number = self.put.get();
        cpu.write_span(self.descriptor(number), DESCRIPTOR as u64 * 8);
        self.put.set(number + 1);
        self.tasks.borrow_mut().push_back(Task { work, since_ns: cpu.now_ns() });
        self.note_waiting(cpu);
        self.lock.release(cpu);
    }

    /// Takes the oldest task, if there is one.
    pub fn take(&self, cpu: &mut Cpu<'_>) -> Option<Work> {
        if self.looks_empty(cpu) {
            return None;
        }
        self.lock.acquire(cpu);
        let number = self.put.get() - self.tasks.borrow().len();
        let task = self.tasks.borrow_mut().pop_front();
        if task.is_some() {
            cpu.read_span(self.descriptor(number), DESCRIPTOR as u64 * 8);
            self.note_waiting(cpu);
        }
        self.lock.release(cpu);
        task.map(|task| task.work)
    }

    fn note_waiting(&self, cpu: &mut Cpu<'_>) {
        self.words.set(cpu, WAITING, self.tasks.borrow().len() as u64);
    }

    /// Whether no task waits, as one sees who reads the count.
    pub fn looks_empty(&self, cpu: &mut Cpu<'_>) -> bool {
        self.words.get(cpu, WAITING) == 0
    }

    /// Whether no task waits.
    pub fn is_empty(&self) -> bool {
        self.tasks.borrow().is_empty()
    }

    /// Whether the oldest task has waited for so long.
    pub fn has_waited(&self, now_ns: u64, ns: u64) -> bool {
        self.tasks.borrow().front().is_some_and(|task| task.since_ns.saturating_add(ns) <= now_ns)
    }
}
