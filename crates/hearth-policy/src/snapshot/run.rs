//! What a planner is told of tasks that run side by side: counters, and who is to be isolated.

/// A *run* (Fedorova et al. 2007, section 4): a stretch in which the same tasks ran side by side on the CPUs
/// of a cache domain, as one of these tasks counted it. It ends when any CPU of the domain switches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Run {
    /// Whose.
    pub tid: i32,
    /// Its control group.
    pub group: u64,
    /// Where it ran.
    pub cpu: usize,
    /// Cycles of the CPU while the task ran in it.
    pub cycles: u64,
    /// Instructions that the task completed.
    pub instructions: u64,
    /// Misses of the last-level cache by this task.
    pub misses: u64,
    /// Lines that it moved over the memory bus: misses and write-backs. Equal to misses where write-backs
    /// cannot be counted.
    pub transfers: u64,
    /// Misses of all co-runners in the run, summed.
    pub others_misses: u64,
    /// Lines that all co-runners moved, summed.
    pub others_transfers: u64,
    /// How many co-runners there were.
    pub others: u32,
}

/// How a group's tasks are to be isolated from what runs beside them. (Section 2.)
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// They get CPU time such that they are as fast as with a fair part of the cache.
    CacheFair,
    /// What others get more, they get less.
    BestEffort,
}

/// Cycles that no run reaches: most of a day.
const MOST_CYCLES: u64 = 1 << 48;

/// Instructions that no CPU completes in a cycle.
const MOST_PER_CYCLE: u64 = 16;

impl Run {
    /// Whether counters can have said so. They may have gone backwards, or be of another task.
    pub fn is_possible(&self) -> bool {
        let lines = |misses: u64, transfers: u64, tasks: u64| {
            misses <= self.cycles.saturating_mul(tasks) && transfers <= self.cycles.saturating_mul(2 * tasks)
        };
        (1..MOST_CYCLES).contains(&self.cycles)
            && (1..=self.cycles * MOST_PER_CYCLE).contains(&self.instructions)
            && lines(self.misses, self.transfers, 1)
            && lines(self.others_misses, self.others_transfers, self.others.into())
    }

    /// Instructions for each cycle; 0 where there was none.
    pub fn ipc(&self) -> f64 {
        self.per_cycle(self.instructions)
    }

    /// So many events, for each cycle of the run.
    pub(crate) fn per_cycle(&self, events: u64) -> f64 {
        events as f64 / (self.cycles as f64).max(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_counter_can_have_said_is_known() {
        let run = Run { cycles: 1000, instructions: 500, misses: 10, transfers: 20, ..Run::default() };
        assert!(run.is_possible());
        assert!(Run { others: 2, others_misses: 2000, others_transfers: 4000, ..run }.is_possible());
        for wrong in [
            Run { cycles: 0, ..run },
            Run { cycles: u64::MAX, ..run },
            Run { instructions: 0, ..run },
            Run { instructions: 16_001, ..run },
            Run { misses: u64::MAX - 5, ..run },
            Run { transfers: 2001, ..run },
            Run { others_misses: 1, ..run },
            Run { others: 1, others_misses: 1001, ..run },
        ] {
            assert!(!wrong.is_possible(), "{wrong:?}");
        }
    }
}
