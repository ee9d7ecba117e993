//! Data affinity as a model: what it costs to run tasks on CPUs whose caches hold data fragments. After
//! "Thread Scheduling Based on Data Affinity", sections 2 and 3: all caches are equal, a fragment fills one
//! whole, and each task uses a single fragment.
//!
//! [`schedule`] charges an order of tasks as the paper's figures 2 and 3 do, and makes the two orders that
//! they compare. [`batches`] has the algorithm for one CPU and the exhaustive search that it is held against;
//! [`partition`] deals batches to several CPUs, at best and by the rule of a load balancer.
//!
//! ```
//! use hearth_policy::fragments::{Cache, schedule};
//!
//! let (tasks, cache) = (schedule::worked_example(), Cache { read: 4, write: 4 });
//! let last_busy = |queues: Vec<_>| schedule::last_busy_unit(&schedule::run(&tasks, cache, &queues));
//! assert_eq!(last_busy(schedule::by_cpu_affinity(&tasks, 2)), 22);
//! assert_eq!(last_busy(schedule::by_data_affinity(&tasks, 2)), 14);
//! ```

pub mod batches;
pub mod partition;
pub mod schedule;

/// A task of the model (section 2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Task {
    /// `ex(v)`: how long it executes, in time units.
    pub execution: u64,
    /// `DF(v)`: the data fragment that it uses, from 0.
    pub fragment: usize,
    /// Whether it changes its fragment, so that the cache must be flushed before it holds another.
    pub writes: bool,
}

/// What a CPU's cache costs when it changes fragments, in time units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cache {
    /// `T_r`: to fill it.
    pub read: u64,
    /// `T_w`: to flush it.
    pub write: u64,
}

/// What a cache holds: a fragment, and whether it is dirty. A CPU that has run nothing holds nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Held {
    fragment: Option<usize>,
    dirty: bool,
}

impl Cache {
    /// The penalty `g` for the switch to a task (section 3): the time to flush, and the time to fill. Nothing
    /// while the fragment stays.
    pub(crate) fn switch(self, held: Held, task: &Task) -> (u64, u64) {
        if held.fragment == Some(task.fragment) {
            return (0, 0);
        }
        (self.last_flush(held), self.read)
    }

    /// The time to flush what a CPU leaves in its cache when it has run all its tasks.
    pub(crate) fn last_flush(self, held: Held) -> u64 {
        if held.dirty { self.write } else { 0 }
    }
}

impl Held {
    /// What the cache holds when a task has run.
    pub(crate) fn after(self, task: &Task) -> Self {
        let stays = self.fragment == Some(task.fragment);
        Self { fragment: Some(task.fragment), dirty: task.writes || (stays && self.dirty) }
    }
}
