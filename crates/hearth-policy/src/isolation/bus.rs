//! What a miss costs, beside other traffic.

use hearth_machine::Machine;

/// A part of time that a bus is taken for, above which the queue before it is no longer that of the model:
/// tasks that wait for their lines ask for no others.
const MOST_TAKEN: f64 = 0.95;

/// A memory bus that all CPUs of a cache domain share. The default is one on which nothing takes time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Bus {
    /// The latency of a miss that finds the bus free, beyond that of a hit, in cycles.
    pub memory_cycles: f64,
    /// Cycles for which one line takes the bus; 0 for an infinite one.
    pub transfer_cycles: f64,
}

impl Bus {
    /// That of a machine: what a miss costs beyond a hit of the last level, and for how long a line takes it.
    pub fn of(machine: &Machine) -> Self {
        let hit = machine.caches.last().map_or(0, |cache| cache.latency_cycles);
        let memory = &machine.memory;
        let line_seconds = machine.line_bytes as f64 / memory.bandwidth_bytes_per_s as f64;
        Self {
            memory_cycles: f64::from(memory.local_cycles.saturating_sub(hit)),
            transfer_cycles: line_seconds * machine.clock_hz as f64,
        }
    }

    /// The latency of a miss where all CPUs together move so many lines for each cycle: `L(u)`.
    pub fn latency_cycles(&self, lines_per_cycle: f64) -> f64 {
        let taken = self.taken(lines_per_cycle).min(MOST_TAKEN);
        self.memory_cycles.max(0.0) + self.transfer_cycles.max(0.0) * taken / (2.0 * (1.0 - taken))
    }

    /// What the latency grows by with each line per cycle more.
    pub(super) fn latency_slope(&self, lines_per_cycle: f64) -> f64 {
        let taken = self.taken(lines_per_cycle);
        if taken >= MOST_TAKEN {
            return 0.0;
        }
        self.transfer_cycles.max(0.0).powi(2) / (2.0 * (1.0 - taken).powi(2))
    }

    fn taken(&self, lines_per_cycle: f64) -> f64 {
        self.transfer_cycles.max(0.0) * lines_per_cycle.max(0.0)
    }
}
