//! What an observation tells: figures by program, and their ceilings. `figures.rs` works them out.

use super::counters::Present;
use super::estimate::{Baseline, Estimate};
use super::layout::Before;
use serde::{Serialize, Serializer};

/// Programs with less of the watched CPU time are left out of what is pooled and first shown.
pub const SMALL_SHARE: f64 = 0.005;

/// Everything that an observation tells.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// What was observed.
    pub target: String,
    /// The result in a sentence.
    pub summary: String,
    /// Whether it was stopped before its end.
    pub partial: bool,
    /// How long, in seconds.
    pub elapsed_s: f64,
    /// CPUs of the host.
    pub cpus: usize,
    /// Switches a second, of all tasks on all CPUs.
    pub switches_per_s: f64,
    /// Which counters there were.
    pub counters: Present,
    /// Share of intervals whose counters were read, in percent.
    pub counted_percent: f64,
    /// Where CPU time went.
    pub cpu_time: CpuShares,
    /// The part of the CPUs' time that a hypervisor took, in percent; nothing if the kernel does not say.
    pub stolen_percent: Option<f64>,
    /// The part of the time in which some task of the host waited for a CPU, in percent; nothing if the kernel does
    /// not say.
    pub pressure_percent: Option<f64>,
    /// What observing cost.
    pub overhead: Overhead,
    /// What is missing or limits the figures, for people.
    pub notes: Vec<String>,
    /// By CPU time, most first.
    pub programs: Vec<ProgramReport>,
}

/// Where the CPUs' time went, in percent.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct CpuShares {
    /// What was observed.
    pub watched: f64,
    /// Other processes.
    pub others: f64,
    /// Kernel threads.
    pub kernel: f64,
    /// Nothing.
    pub idle: f64,
}

/// What observing cost.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Overhead {
    /// CPU time of the BPF programs, in percent of the time that CPUs were busy; nothing if the
    /// kernel did not say.
    pub percent: Option<f64>,
    /// Nanoseconds for each switch, on average.
    pub ns_per_switch: Option<f64>,
    /// Nanoseconds to read all counters once; nothing if none were read.
    pub read_ns: Option<f64>,
}

/// One program.
#[derive(Clone, Debug, Serialize)]
pub struct ProgramReport {
    /// Its name; with a number it is a task.
    pub name: String,
    /// CPU time in seconds.
    pub cpu_s: f64,
    /// In percent of the watched CPU time.
    pub share_percent: f64,
    /// Dispatch intervals.
    pub intervals: Stretches,
    /// Why they ended, in percent.
    #[serde(serialize_with = "as_map")]
    pub ends_percent: Vec<(&'static str, f64)>,
    /// Effective time slices.
    pub slices: Stretches,
    /// Where it ran, seen from where it ran before.
    pub moves: Moves,
    /// For how long it waited for a CPU, and behind whom.
    pub waits: Waits,
    /// From the counters, if they were read often enough.
    pub counted: Option<Counted>,
}

fn as_map<S: Serializer>(pairs: &[(&'static str, f64)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(pairs.iter().copied())
}

/// Intervals or slices.
#[derive(Clone, Debug, Serialize)]
pub struct Stretches {
    /// How many.
    pub count: u64,
    /// Mean length in milliseconds.
    pub mean_ms: f64,
    /// Median length in milliseconds.
    pub median_ms: f64,
    /// How many of each length: where the bin begins in milliseconds, and the count.
    pub lengths: Vec<(f64, u64)>,
}

/// How long tasks waited for a CPU.
#[derive(Clone, Debug, Serialize)]
pub struct Waits {
    /// In percent of the time in which they could have run: while they ran and while they waited.
    pub percent: f64,
    /// Waits after a wake-up.
    pub wakeups: u64,
    /// Half of those were shorter; in microseconds.
    pub wakeup_median_us: f64,
    /// And 99 in 100 were.
    pub wakeup_p99_us: f64,
    /// How many of each length: where the bin begins in microseconds, and the count.
    pub wakeup_lengths: Vec<(f64, u64)>,
    /// Waits after they had been taken off a CPU though they could have gone on.
    pub taken_off: u64,
    /// Behind whom, the most first.
    pub behind: Vec<Behind>,
}

/// Who had the CPU while others waited for it.
#[derive(Clone, Debug, Serialize)]
pub struct Behind {
    /// Its program: `(kernel)` for kernel threads, `(others)` for tasks that were not observed.
    pub program: String,
    /// For what part of all the waiting it had the CPU, in percent.
    pub percent: f64,
    /// How often it preempted one.
    pub preempted: u64,
}

/// Intervals by what happened before.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Moves {
    /// The task's first, or the first of a new program.
    pub starts: u64,
    /// Nothing else ran on the same CPU.
    pub same: u64,
    /// Others ran on the same CPU.
    pub others: u64,
    /// From another CPU of the cache domain.
    pub cpu: u64,
    /// From another cache domain of the node.
    pub domain: u64,
    /// From another node.
    pub node: u64,
}

/// What counters tell of a program.
#[derive(Clone, Debug, Serialize)]
pub struct Counted {
    /// Intervals that were counted.
    pub intervals: u64,
    /// Instructions, in millions; scaled up from the counted intervals.
    pub instructions_millions: f64,
    /// Misses, in millions; scaled up from the counted intervals.
    pub misses_millions: f64,
    /// Misses for each thousand instructions.
    pub misses_per_ki: f64,
    /// The same in the steady state.
    pub steady_misses_per_ki: Option<Estimate>,
    /// Where the steady state was seen.
    pub baseline: Option<Baseline>,
    /// Cycles for each instruction.
    pub cycles_per_instruction: f64,
    /// Nanoseconds for each miss, with where the figure comes from.
    pub miss_ns: Option<MissCost>,
    /// What is loaded again, by what happened before.
    pub reloads: Vec<Reload>,
    /// Misses beyond the steady state, by time into the interval.
    pub transient: Vec<Transient>,
    /// The share of the program's CPU time that affinity could win at most.
    pub ceiling: Option<Ceiling>,
    /// The same from cycles beyond the steady state, whatever they were lost to.
    pub ceiling_by_cycles_percent: Option<Estimate>,
}

/// What a miss costs.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct MissCost {
    /// Nanoseconds.
    pub ns: Estimate,
    /// Whether it is this program's own figure, or that of all programs.
    pub own: bool,
}

/// Reload after one kind of disturbance.
#[derive(Clone, Debug, Serialize)]
pub struct Reload {
    /// What happened before.
    pub after: &'static str,
    /// Intervals.
    pub intervals: u64,
    /// Misses for each.
    pub misses: Estimate,
    /// Microseconds for each.
    pub us: Option<Estimate>,
}

/// A curve of misses beyond the steady state.
#[derive(Clone, Debug, Serialize)]
pub struct Transient {
    /// What happened before.
    pub after: &'static str,
    /// Milliseconds into the interval, misses beyond the steady state up to there, samples.
    pub points: Vec<(f64, f64, u64)>,
}

/// The most that affinity could win.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Ceiling {
    /// In percent of CPU time. Without a steady state there is no figure, only the upper end.
    pub percent: Option<f64>,
    /// The lower end of its 95 % interval.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

/// What happened before, as it is printed.
pub fn words(before: Before) -> &'static str {
    match before {
        Before::Start => "start",
        Before::Same => "nothing else ran",
        Before::Others => "others ran",
        Before::MovedDomain => "moved within the cache domain",
        Before::MovedNode => "moved to another cache domain",
        Before::MovedRemote => "moved to another node",
    }
}
