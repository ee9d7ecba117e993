//! The processes that work on the grids together: who does which rows, and where they meet.

use hearth_hardware::Placement;
use hearth_sim::memory::{Array, Memory};
use hearth_sim::program::Cpu;
use hearth_sim::sync::{Barrier, Lock};
use std::ops::Range;

/// What the processes share.
#[derive(Clone)]
pub struct Shared {
    barrier: Barrier,
    lock: Lock,
    /// Processes that have added to the sum that is being gathered.
    added: Array<u64>,
    processes: usize,
}

impl Shared {
    /// For so many processes.
    pub fn new(memory: &Memory, processes: usize) -> Self {
        Self {
            barrier: Barrier::new(memory, processes),
            lock: Lock::new(memory),
            added: memory.array(1, Placement::FirstTouch),
            processes,
        }
    }

    /// What process `number` needs.
    pub fn team(&self, number: usize) -> Team {
        Team { shared: self.clone(), number }
    }
}

/// One process's place among the others.
pub struct Team {
    shared: Shared,
    number: usize,
}

impl Team {
    /// This process's rows of a grid: a strip, counted from 1.
    pub fn rows(&self, side: usize) -> Range<usize> {
        let start = |number: usize| 1 + side * number / self.shared.processes;
        start(self.number)..start(self.number + 1)
    }

    /// Waits for the others.
    pub fn meet(&self, cpu: &mut Cpu<'_>) {
        self.shared.barrier.wait(cpu);
    }

    /// Adds up what all processes bring, in `total`.
    pub fn sum(&self, cpu: &mut Cpu<'_>, total: &Array<f64>, mine: f64) -> f64 {
        self.shared.lock.acquire(cpu);
        let added = self.shared.added.get(cpu, 0);
        let before = if added == 0 { 0.0 } else { total.get(cpu, 0) };
        total.set(cpu, 0, before + mine);
        self.shared.added.set(cpu, 0, (added + 1) % self.shared.processes as u64);
        self.shared.lock.release(cpu);
        self.meet(cpu);
        let sum = total.get(cpu, 0);
        self.meet(cpu);
        sum
    }
}
