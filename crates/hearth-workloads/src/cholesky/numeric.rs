//! The parallel factorization: a shared queue of panels that are ready to be finished.

use super::factor::{Factor, Tools};
use super::plate::Lower;
use super::queue::Queue;
use crate::calls::{Calls, Rates};
use hearth_hardware::Placement;
use hearth_sim::memory::Memory;
use hearth_sim::program::Cpu;
use hearth_sim::sync::Lock;
use std::rc::Rc;

/// Columns of a panel at most, as in SPLASH-2's program (its "postpass partition size").
const MAX_WIDTH: usize = 32;
/// Locks that protect panels, each several of them: the machine has few.
const LOCKS: usize = 64;

/// Calls, in updates: 2.3 and 2.1 % of the dispatch intervals end by them (table III).
const CALLS: Rates = Rates { transfer: 200, call: 250 };

/// A factorization under way.
#[derive(Clone)]
pub struct Factorization {
    factor: Factor,
    locks: Rc<[Lock]>,
    queue: Queue,
    /// For each process.
    tools: Rc<[Tools]>,
}

impl Factorization {
    /// Sets a factorization up, and queues the panels that wait for nothing.
    pub fn new(memory: &Memory, matrix: Lower, processes: usize) -> Self {
        let factor = Factor::new(memory, matrix, MAX_WIDTH, Placement::FirstTouch);
        let factorization = Self {
            locks: (0..LOCKS).map(|_| Lock::new(memory)).collect(),
            queue: Queue::new(memory, factor.panels().len()),
            tools: Tools::new(memory, &factor, processes).into(),
            factor,
        };
        factorization.factor.ready().for_each(|panel| factorization.queue.start_with(panel));
        factorization
    }

    /// What each process does until all panels are finished.
    pub fn work(&self, cpu: &mut Cpu<'_>, process: usize, seed: u64) {
        let mut calls = Calls::new(CALLS, seed, process);
        let tools = &self.tools[process];
        while let Some(source) = self.queue.take(cpu) {
            self.factor.begin(cpu, tools);
            let panel = &self.factor.panels()[source];
            self.factor.finish(cpu, panel, tools);
            for update in &panel.updates {
                let lock = &self.locks[update.target % LOCKS];
                lock.acquire(cpu);
                let last = self.factor.apply(cpu, source, update, tools);
                lock.release(cpu);
                if last {
                    self.queue.put(cpu, update.target);
                }
                calls.pass(cpu);
            }
        }
    }

    /// Whether the factor is right.
    pub fn check(&self) -> Result<(), String> {
        self.factor.check().map_err(|wrong| format!("cholesky: {wrong}"))
    }
}
