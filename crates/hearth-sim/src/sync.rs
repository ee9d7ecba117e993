//! Locks, barriers and semaphores of simulated programs. Their words lie in simulated memory, so
//! contention costs coherence misses, and each operation happens in its true order of time.

use crate::memory::{Array, Memory};
use crate::program::{Cpu, TaskId};
use hearth_hardware::Placement;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

/// Cycles between two looks at a word that a program spins on.
const LOOK_CYCLES: u64 = 40;
/// Cycles of spinning before a program gives up its CPU: about what a switch costs.
const PATIENCE_CYCLES: u64 = 1600;

/// Looks at something again and again until `done`, for at most so many cycles of spinning; says whether it came.
pub fn spin(cpu: &mut Cpu<'_>, cycles: u64, mut done: impl FnMut(&mut Cpu<'_>) -> bool) -> bool {
    for _ in 0..cycles / LOOK_CYCLES {
        cpu.synchronize();
        if done(cpu) {
            return true;
        }
        cpu.compute(LOOK_CYCLES);
    }
    false
}

/// A two-phase lock: spins for about the cost of a switch, then yields the CPU and tries again.
#[derive(Clone)]
pub struct Lock {
    word: Array<u64>,
}

impl Lock {
    /// A free lock in a page line of its own.
    pub fn new(memory: &Memory) -> Self {
        Self { word: memory.array(1, Placement::FirstTouch) }
    }

    /// Takes the lock. Not re-entrant.
    pub fn acquire(&self, cpu: &mut Cpu<'_>) {
        while !self.try_acquire(cpu) {
            if !spin(cpu, PATIENCE_CYCLES, |cpu| self.word.get(cpu, 0) == 0) {
                cpu.yield_for_synchronization();
            }
        }
    }

    /// Takes the lock if it is free.
    pub fn try_acquire(&self, cpu: &mut Cpu<'_>) -> bool {
        self.word.update(cpu, 0, |_| 1) == 0
    }

    /// Gives the lock back.
    pub fn release(&self, cpu: &mut Cpu<'_>) {
        self.word.update(cpu, 0, |_| 0);
    }
}

/// A barrier for a fixed number of tasks; waits as [`Lock`] does.
#[derive(Clone)]
pub struct Barrier {
    /// Tasks still missing.
    missing: Array<u64>,
    /// How often the barrier has opened.
    opened: Array<u64>,
    tasks: u64,
}

impl Barrier {
    /// A barrier for `tasks` tasks.
    pub fn new(memory: &Memory, tasks: usize) -> Self {
        let missing = memory.array(1, Placement::FirstTouch);
        missing.poke(0, tasks as u64);
        Self { missing, opened: memory.array(1, Placement::FirstTouch), tasks: tasks as u64 }
    }

    /// Waits until all tasks have come.
    pub fn wait(&self, cpu: &mut Cpu<'_>) {
        cpu.synchronize();
        let round = self.opened.peek(0);
        let missing = self.missing.peek(0) - 1;
        if missing == 0 {
            self.missing.poke(0, self.tasks);
            self.opened.poke(0, round + 1);
            cpu.write(self.missing.address(0));
            cpu.write(self.opened.address(0));
            return;
        }
        self.missing.poke(0, missing);
        cpu.write(self.missing.address(0));
        while !spin(cpu, PATIENCE_CYCLES, |cpu| self.opened.get(cpu, 0) != round) {
            cpu.yield_for_synchronization();
        }
    }
}

/// A counting semaphore: waiting blocks the task in the kernel.
#[derive(Clone)]
pub struct Semaphore {
    state: Rc<RefCell<SemaphoreState>>,
}

struct SemaphoreState {
    count: u64,
    waiters: VecDeque<TaskId>,
}

impl Semaphore {
    /// A semaphore that lets `count` tasks through.
    pub fn new(count: u64) -> Self {
        Self { state: Rc::new(RefCell::new(SemaphoreState { count, waiters: VecDeque::new() })) }
    }

    /// Waits for the count to be above zero, and takes one off. First come, first served.
    pub fn wait(&self, cpu: &mut Cpu<'_>) {
        cpu.synchronize();
        let mut state = self.state.borrow_mut();
        if state.count > 0 {
            state.count -= 1;
            drop(state);
            cpu.system_call();
        } else {
            state.waiters.push_back(cpu.task());
            drop(state);
            cpu.block();
        }
    }

    /// Lets one task through.
    pub fn post(&self, cpu: &mut Cpu<'_>) {
        cpu.synchronize();
        let waiter = self.state.borrow_mut().waiters.pop_front();
        match waiter {
            Some(task) => cpu.wake(task),
            None => {
                self.state.borrow_mut().count += 1;
                cpu.system_call();
            }
        }
    }
}
