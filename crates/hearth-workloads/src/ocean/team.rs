//! The processes that work on the grids together: who does which rows, and where they meet.

use hearth_sim::program::Cpu;
use hearth_sim::sync::Barrier;
use std::ops::Range;

/// One process's place among the others.
pub struct Team {
    barrier: Barrier,
    number: usize,
    processes: usize,
}

impl Team {
    /// Process `number` of those that meet at the barrier.
    pub fn new(barrier: &Barrier, number: usize, processes: usize) -> Self {
        Self { barrier: barrier.clone(), number, processes }
    }

    /// Which of the processes this is.
    pub fn number(&self) -> usize {
        self.number
    }

    /// This process's rows of a grid: a strip, counted from 1.
    pub fn rows(&self, side: usize) -> Range<usize> {
        let start = |number: usize| 1 + side * number / self.processes;
        start(self.number)..start(self.number + 1)
    }

    /// Waits for the others.
    pub fn meet(&self, cpu: &mut Cpu<'_>) {
        self.barrier.wait(cpu);
    }
}
