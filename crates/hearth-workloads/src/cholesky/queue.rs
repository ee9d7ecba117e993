//! A queue of tasks that processes share.

use hearth_hardware::Placement;
use hearth_sim::memory::{Array, Memory};
use hearth_sim::program::Cpu;
use hearth_sim::sync::{Lock, spin};

/// A queue of tasks that ends when `total` have been taken.
#[derive(Clone)]
pub struct Queue {
    lock: Lock,
    tasks: Array<u32>,
    /// Tasks put in so far, and taken so far.
    ends: Array<u64>,
}

const PUT: usize = 0;
const TAKEN: usize = 1;

impl Queue {
    /// A queue through which `total` tasks will go.
    pub fn new(memory: &Memory, total: usize) -> Self {
        Self {
            lock: Lock::new(memory),
            tasks: memory.array(total, Placement::FirstTouch),
            ends: memory.array(2, Placement::FirstTouch),
        }
    }

    /// Puts a task in before the program runs.
    pub fn start_with(&self, task: usize) {
        let put = self.ends.peek(PUT);
        self.tasks.poke(put as usize, task as u32);
        self.ends.poke(PUT, put + 1);
    }

    /// Puts a task in.
    pub fn put(&self, cpu: &mut Cpu<'_>, task: usize) {
        self.lock.acquire(cpu);
        let put = self.ends.get(cpu, PUT);
        self.tasks.set(cpu, put as usize, task as u32);
        self.ends.set(cpu, PUT, put + 1);
        self.lock.release(cpu);
    }

    /// Takes the oldest task; waits for one, and is `None` when all have been taken.
    pub fn take(&self, cpu: &mut Cpu<'_>) -> Option<usize> {
        loop {
            self.lock.acquire(cpu);
            let (put, taken) = (self.ends.get(cpu, PUT), self.ends.get(cpu, TAKEN));
            if taken < put {
                self.ends.set(cpu, TAKEN, taken + 1);
                let task = self.tasks.get(cpu, taken as usize);
                self.lock.release(cpu);
                return Some(task as usize);
            }
            self.lock.release(cpu);
            if taken as usize == self.tasks.len() {
                return None;
            }
            self.wait(cpu);
        }
    }

    /// Looks whether a task has come until one has, or none will. The process keeps its CPU meanwhile, as in
    /// SPLASH-2's program: that gives it up at a lock that is taken, and nowhere else.
    fn wait(&self, cpu: &mut Cpu<'_>) {
        spin(cpu, u64::MAX, |cpu| {
            let put = self.ends.get(cpu, PUT);
            let taken = self.ends.peek(TAKEN);
            taken < put || taken as usize == self.tasks.len()
        });
    }
}
