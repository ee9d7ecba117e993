//! What the processes of a program share.

use super::Invocation;
use super::queue::{Queue, State};
use hearth_hardware::Placement;
use hearth_sim::memory::{Array, Code, Memory};
use hearth_sim::program::{Cpu, TaskId};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

/// Words that all share, each in a line of its own: tasks that are not done, processes that are active, and
/// the CPUs that the program has, a word of the kernel's.
const LINE_WORDS: usize = 8;
const PENDING: usize = 0;
const ACTIVE: usize = LINE_WORDS;
const ALLOTTED: usize = 2 * LINE_WORDS;
const WORDS: usize = 3 * LINE_WORDS;

/// Text of putting a task in, and of finding and ending one: some sixty instructions each (an estimate).
const PUT_BYTES: u64 = 256;
const FIND_BYTES: u64 = 256;

pub struct Team {
    name: String,
    pub invocation: Invocation,
    pub queues: Vec<Queue>,
    words: Array<u64>,
    text: Code,
    /// The kernel's number of each process.
    tasks: RefCell<Vec<TaskId>>,
    /// Processes that are idle, and that are suspended: who has been so longest comes first.
    idle: RefCell<VecDeque<usize>>,
    suspended: RefCell<VecDeque<usize>>,
    pub is_over: Cell<bool>,
}

impl Team {
    pub fn new(memory: &Memory, name: &str, invocation: &Invocation) -> Self {
        let words = memory.array(WORDS, Placement::FirstTouch);
        words.poke(ACTIVE, invocation.processes as u64);
        words.poke(ALLOTTED, invocation.told.unwrap_or(invocation.processes) as u64);
        Self {
            name: name.into(),
            invocation: invocation.clone(),
            queues: (0..invocation.processes).map(|_| Queue::new(memory)).collect(),
            words,
            text: memory.code(PUT_BYTES + FIND_BYTES),
            tasks: RefCell::default(),
            idle: RefCell::default(),
            suspended: RefCell::default(),
            is_over: Cell::new(false),
        }
    }

    /// What a process is called.
    pub fn name(&self, process: usize) -> String {
        format!("{}-{process}", self.name)
    }

    /// The next process has this number in the kernel.
    pub fn add(&self, task: TaskId) {
        self.tasks.borrow_mut().push(task);
    }

    pub fn run_put(&self, cpu: &mut Cpu<'_>) {
        cpu.execute(self.text.part(0, PUT_BYTES));
    }

    pub fn run_find(&self, cpu: &mut Cpu<'_>) {
        cpu.execute(self.text.part(PUT_BYTES, FIND_BYTES));
    }

    /// Adds to a word with nothing in between, and returns what it then is.
    fn add_to(&self, cpu: &mut Cpu<'_>, word: usize, more: i64) -> u64 {
        let add = |value: u64| value.wrapping_add_signed(more);
        add(self.words.update(cpu, word, add))
    }

    /// A task more is to be done.
    pub fn begin_task(&self, cpu: &mut Cpu<'_>) {
        self.add_to(cpu, PENDING, 1);
    }

    /// A task is done. Who does the last one wakes the master, which may wait for it.
    pub fn end_task(&self, cpu: &mut Cpu<'_>) {
        if self.add_to(cpu, PENDING, -1) == 0 {
            self.wake_idle(cpu, Some(0));
        }
    }

    /// Whether all tasks are done, as one sees who reads the word.
    pub fn looks_done(&self, cpu: &mut Cpu<'_>) -> bool {
        self.words.get(cpu, PENDING) == 0
    }

    /// Whether all tasks are done.
    pub fn is_done(&self) -> bool {
        self.words.peek(PENDING) == 0
    }

    /// Wakes a process if it is idle, or the one that has been so longest.
    pub fn wake_idle(&self, cpu: &mut Cpu<'_>, process: Option<usize>) {
        let found = {
            let mut idle = self.idle.borrow_mut();
            let at = process.map_or(Some(0), |process| idle.iter().position(|&other| other == process));
            at.and_then(|at| idle.remove(at))
        };
        if let Some(process) = found {
            self.wake(cpu, process);
        }
    }

    fn wake(&self, cpu: &mut Cpu<'_>, process: usize) {
        self.queues[process].state.set(State::Looking);
        let task = self.tasks.borrow()[process];
        cpu.wake(task);
    }

    /// Blocks a process until it is woken, unless there is a task, or `else_stays`.
    pub fn block_idle(&self, cpu: &mut Cpu<'_>, process: usize, else_stays: impl Fn() -> bool) {
        cpu.synchronize();
        if self.queues.iter().all(Queue::is_empty) && !else_stays() {
            self.queues[process].state.set(State::Idle);
            self.idle.borrow_mut().push_back(process);
            cpu.block();
        }
    }

    /// Suspends this process if more are active than the program has CPUs, or resumes one if fewer are.
    pub fn keep_to_allotment(&self, cpu: &mut Cpu<'_>, process: usize) {
        if self.invocation.told.is_none() {
            return;
        }
        let allotted = self.words.get(cpu, ALLOTTED).max(1);
        let active = self.words.get(cpu, ACTIVE);
        if active > allotted && process != 0 {
            self.suspend(cpu, process, allotted);
        } else if active < allotted {
            self.resume(cpu, allotted);
        }
    }

    fn suspend(&self, cpu: &mut Cpu<'_>, process: usize, allotted: u64) {
        cpu.synchronize();
        if self.words.peek(ACTIVE) <= allotted || self.is_over.get() {
            return;
        }
        self.queues[process].state.set(State::Suspended);
        self.suspended.borrow_mut().push_back(process);
        self.add_to(cpu, ACTIVE, -1);
        // Someone else has to do what it leaves behind, or was woken for.
        if !self.queues.iter().all(Queue::is_empty) {
            self.wake_idle(cpu, None);
        }
        cpu.block();
    }

    fn resume(&self, cpu: &mut Cpu<'_>, allotted: u64) {
        cpu.synchronize();
        let may = self.words.peek(ACTIVE) < allotted;
        let process = if may { self.suspended.borrow_mut().pop_front() } else { None };
        if let Some(process) = process {
            self.add_to(cpu, ACTIVE, 1);
            self.wake(cpu, process);
        }
    }

    /// The program is at its end: all processes go on, and end.
    pub fn end(&self, cpu: &mut Cpu<'_>) {
        self.is_over.set(true);
        let blocked = [self.idle.take(), self.suspended.take()];
        blocked.into_iter().flatten().for_each(|process| self.wake(cpu, process));
    }

    /// The kernel tells the program how many CPUs it has.
    pub fn allot(&self, cpus: usize) {
        self.words.poke(ALLOTTED, cpus as u64);
    }

    /// Processes that are active.
    #[cfg(test)]
    pub fn active(&self) -> usize {
        self.words.peek(ACTIVE) as usize
    }
}
