//! Two-phase waiting: spin for as long as blocking would cost, then block until woken. Whoever waits so
//! loses at most twice what the better of the two would have taken (Karlin, Li, Manasse and Owicki,
//! "Empirical Studies of Competitive Spinning for a Shared-Memory Multiprocessor", SOSP 1991). Programs
//! that share their CPUs with others leave them to those that can go on.
//!
//! The locks and barriers of [`crate::sync`] spin, yield, and stay runnable.

use crate::memory::Array;
use crate::program::{Cpu, TaskId};
use crate::sync;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

/// Cycles of spinning: about what it costs to block and to be woken, two switches and two system calls with
/// their misses.
pub const PATIENCE_CYCLES: u64 = 4_000;

/// Spins until `done`, or until patience is at an end; says whether it came.
pub fn spin(cpu: &mut Cpu<'_>, done: impl FnMut(&mut Cpu<'_>) -> bool) -> bool {
    sync::spin(cpu, PATIENCE_CYCLES, done)
}

/// A lock on which tasks block, in a word of an array. Clones name the same lock.
#[derive(Clone)]
pub struct BlockingLock {
    words: Array<u64>,
    at: usize,
    waiters: Rc<RefCell<VecDeque<TaskId>>>,
}

impl BlockingLock {
    /// A free lock: element `at` of `words`, which must be 0.
    pub fn new(words: &Array<u64>, at: usize) -> Self {
        Self { words: words.clone(), at, waiters: Rc::default() }
    }

    /// Takes the lock. Not re-entrant.
    pub fn acquire(&self, cpu: &mut Cpu<'_>) {
        while !self.try_acquire(cpu) {
            if !spin(cpu, |cpu| self.words.get(cpu, self.at) == 0) {
                self.block(cpu);
            }
        }
    }

    fn try_acquire(&self, cpu: &mut Cpu<'_>) -> bool {
        self.words.update(cpu, self.at, |_| 1) == 0
    }

    /// Blocks until the lock is given back, unless it is free.
    fn block(&self, cpu: &mut Cpu<'_>) {
        cpu.synchronize();
        if self.words.peek(self.at) != 0 {
            self.waiters.borrow_mut().push_back(cpu.task());
            cpu.block();
        }
    }

    /// Gives the lock back, and wakes the first of those that block. Who comes first then has it.
    pub fn release(&self, cpu: &mut Cpu<'_>) {
        cpu.synchronize();
        self.words.poke(self.at, 0);
        let waiter = self.waiters.borrow_mut().pop_front();
        cpu.write(self.words.address(self.at));
        if let Some(task) = waiter {
            cpu.wake(task);
        }
    }
}
