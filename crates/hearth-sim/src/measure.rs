//! What a run measured, in the words of the cache-affinity paper (Torrellas, Tucker and Gupta,
//! section 3).
//!
//! A *dispatch interval* starts and ends when the kernel inspects the run queue, whether or not the
//! same task goes on. An *effective time slice* is the time that a task runs on a CPU without another
//! task running there in between.

mod planned;

pub use planned::{Place, Places, Planned};

use crate::program::{End, TaskId};
use hearth_abi::native::CpuStats;
use hearth_hardware::{Counters, MissLog};
use hearth_policy::snapshot::Run;
use serde::{Deserialize, Serialize};

/// Intervals shorter than this are left out of distributions, as the paper does.
pub const SHORTEST_NS: u64 = 1_000_000;

/// Counts of durations by length.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Histogram {
    /// Width of a bin.
    pub width_ns: u64,
    /// Durations from `i * width` up to `(i + 1) * width`; the last bin holds all longer ones too.
    pub counts: Vec<u64>,
}

impl Histogram {
    fn new(width_ns: u64, bins: usize) -> Self {
        Self { width_ns, counts: vec![0; bins] }
    }

    fn add(&mut self, ns: u64) {
        let bin = (ns / self.width_ns).min(self.counts.len() as u64 - 1);
        self.counts[bin as usize] += 1;
    }

    fn merge(&mut self, other: &Histogram) {
        self.counts.iter_mut().zip(&other.counts).for_each(|(a, b)| *a += b);
    }

    /// How many durations were counted.
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The share of durations of `from_ns` up to `to_ns` (multiples of the width).
    pub fn share(&self, from_ns: u64, to_ns: u64) -> f64 {
        let bins = (from_ns / self.width_ns) as usize..(to_ns / self.width_ns) as usize;
        let inside: u64 = self.counts.iter().take(bins.end).skip(bins.start).sum();
        inside as f64 / self.total().max(1) as f64
    }
}

/// Sums over stretches of CPU time of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Stretches {
    /// How many.
    pub count: u64,
    /// Time in all.
    pub ns: u64,
    /// Misses in all.
    pub misses: u64,
}

impl Stretches {
    fn add(&mut self, ns: u64, misses: u64) {
        self.count += 1;
        self.ns += ns;
        self.misses += misses;
    }

    fn merge(&mut self, other: &Stretches) {
        self.count += other.count;
        self.ns += other.ns;
        self.misses += other.misses;
    }

    /// Mean length in milliseconds.
    pub fn mean_ms(&self) -> f64 {
        self.ns as f64 / 1e6 / self.count.max(1) as f64
    }

    /// Mean number of misses.
    pub fn mean_misses(&self) -> f64 {
        self.misses as f64 / self.count.max(1) as f64
    }
}

/// Moves to a CPU whose running task, still runnable, had to make way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Displacements {
    /// How many.
    pub count: u64,
    /// Least CPU time that the one had had less than the other.
    least_ns: Option<u64>,
}

impl Displacements {
    pub(crate) fn add(&mut self, lack_ns: u64) {
        self.count += 1;
        self.merge(&Displacements { count: 0, least_ns: Some(lack_ns) });
    }

    fn merge(&mut self, other: &Displacements) {
        self.count += other.count;
        self.least_ns = self.least_ns.into_iter().chain(other.least_ns).min();
    }

    /// The least CPU time that a task which moved had had less than the task that it displaced.
    pub fn least_ns(&self) -> Option<u64> {
        self.least_ns
    }
}

/// What was counted for one application, or for all.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Tally {
    /// CPU time used.
    pub cpu_ns: u64,
    /// Switches to a task that did not run there just before.
    pub switches: u64,
    /// Tasks that started on another CPU than their last.
    pub cpu_moves: u64,
    /// Of these, to another cache domain.
    pub domain_moves: u64,
    /// Of these, to another memory node.
    pub node_moves: u64,
    /// Moves that displaced a running task.
    pub displacements: Displacements,
    /// Wake-ups (and starts), and how long from each until the task ran.
    pub wakeups: u64,
    /// Sum of those waits: the response time is this over `wakeups`.
    pub wake_wait_ns: u64,
    /// Events of the memory system.
    pub counters: Counters,
    /// Dispatch intervals of 1 ms or more by why they ended, in the order of [`End::ALL`].
    pub ends: [u64; 6],
    /// Dispatch intervals of 1 ms or more.
    pub intervals: Stretches,
    /// Effective time slices of 1 ms or more.
    pub slices: Stretches,
    /// Lengths of dispatch intervals of 1 ms or more.
    pub interval_lengths: Histogram,
    /// Lengths of effective time slices of 1 ms or more.
    pub slice_lengths: Histogram,
}

impl Default for Tally {
    fn default() -> Self {
        Self {
            cpu_ns: 0,
            switches: 0,
            cpu_moves: 0,
            domain_moves: 0,
            node_moves: 0,
            displacements: Displacements::default(),
            wakeups: 0,
            wake_wait_ns: 0,
            counters: Counters::default(),
            ends: [0; 6],
            intervals: Stretches::default(),
            slices: Stretches::default(),
            interval_lengths: Histogram::new(1_000_000, 128),
            slice_lengths: Histogram::new(10_000_000, 128),
        }
    }
}

impl Tally {
    /// The share of dispatch intervals that ended so.
    pub fn end_share(&self, end: End) -> f64 {
        self.ends[end as usize] as f64 / self.ends.iter().sum::<u64>().max(1) as f64
    }

    pub(crate) fn interval(&mut self, ns: u64, counters: Counters, end: End) {
        self.cpu_ns += ns;
        self.counters += counters;
        if ns >= SHORTEST_NS {
            self.ends[end as usize] += 1;
            self.intervals.add(ns, counters.misses());
            self.interval_lengths.add(ns);
        }
    }

    pub(crate) fn slice(&mut self, ns: u64, misses: u64) {
        if ns >= SHORTEST_NS {
            self.slices.add(ns, misses);
            self.slice_lengths.add(ns);
        }
    }

    fn merge(&mut self, other: &Tally) {
        self.cpu_ns += other.cpu_ns;
        self.switches += other.switches;
        self.cpu_moves += other.cpu_moves;
        self.domain_moves += other.domain_moves;
        self.node_moves += other.node_moves;
        self.displacements.merge(&other.displacements);
        self.wakeups += other.wakeups;
        self.wake_wait_ns += other.wake_wait_ns;
        self.counters += other.counters;
        self.ends.iter_mut().zip(other.ends).for_each(|(a, b)| *a += b);
        self.intervals.merge(&other.intervals);
        self.slices.merge(&other.slices);
        self.interval_lengths.merge(&other.interval_lengths);
        self.slice_lengths.merge(&other.slice_lengths);
    }
}

/// One application of a run.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct ApplicationResult {
    /// Name, unique within the run.
    pub name: String,
    /// When it started.
    pub start_ns: u64,
    /// From then until its last task ended.
    pub execution_ns: u64,
    /// When a task of it began to run on another node than the one that ran there last.
    pub node_switches_ns: Vec<u64>,
    /// What was counted for its tasks.
    pub tally: Tally,
    /// What happened in its parallel section, if it marks one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parallel: Option<Parallel>,
    /// Whether it only ran beside the others, until they had ended.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_background: bool,
}

/// The parallel section of a program: what its wall clock and a monitor of the whole machine tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Parallel {
    /// Time from its begin to its end.
    pub ns: u64,
    /// Events of the memory system in that time, on all CPUs of the machine.
    pub counters: Counters,
}

/// CPU time of each application up to an instant.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Sample {
    /// The instant.
    pub at_ns: u64,
    /// CPU time so far, by application.
    pub cpu_ns: Vec<u64>,
    /// Where its memory is, by application.
    pub pages: Vec<PagesAt>,
}

/// Where an application's memory is at an instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct PagesAt {
    /// Pages on the node where the application last ran.
    pub local: u32,
    /// Pages that it has touched.
    pub all: u32,
}

/// A task on a CPU: an effective time slice with the idle time around it left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Stretch {
    /// The CPU.
    pub cpu: usize,
    /// The task.
    pub task: TaskId,
    /// When it began.
    pub start_ns: u64,
    /// When it ended.
    pub end_ns: u64,
}

/// Who a task is.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct TaskInfo {
    /// The task's name.
    pub name: String,
    /// Index of its application.
    pub application: usize,
}

/// Everything that a run measured.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct RunResult {
    /// Time from the start until the last task ended.
    pub elapsed_ns: u64,
    /// CPUs of the machine.
    pub cpus: usize,
    /// Time that CPUs were idle, of all their time until the last task ended.
    pub idle_share: f64,
    /// Mean of the applications' execution times, without those in the background: the paper's execution time of a
    /// workload.
    pub mean_execution_ns: u64,
    /// All applications together.
    pub total: Tally,
    /// Each application.
    pub applications: Vec<ApplicationResult>,
    /// What the scheduler's dispatches led to, by CPU.
    pub dispatches: Vec<CpuStats>,
    /// CPU time over time.
    pub samples: Vec<Sample>,
    /// Tasks by number.
    pub tasks: Vec<TaskInfo>,
    /// What ran where; empty unless asked for.
    pub timeline: Vec<Stretch>,
    /// Misses of programs' loads and stores; if asked for.
    #[serde(skip)]
    pub misses: Option<MissLog>,
    /// What tasks counted while they ran beside the same others; if asked for.
    #[serde(skip)]
    pub runs: Vec<Run>,
    /// What the planner did, if there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub planned: Option<Planned>,
    /// References simulated, for speed figures.
    pub references: u64,
}

impl RunResult {
    /// The applications whose end the run is about, not those in the background, each with its place among all.
    pub fn awaited(&self) -> impl Iterator<Item = (usize, &ApplicationResult)> {
        self.applications.iter().enumerate().filter(|(_, application)| !application.is_background)
    }

    pub(crate) fn sum(applications: &[ApplicationResult]) -> Tally {
        let mut total = Tally::default();
        applications.iter().for_each(|application| total.merge(&application.tally));
        total
    }
}
