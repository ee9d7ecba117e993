//! How a run is done.

use crate::kernel::Flush;

/// How a run is done, besides machine, policy and programs.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Decides page frames; programs have seeds of their own.
    pub seed: u64,
    /// How far a CPU may run ahead of the others, in cycles.
    pub window_cycles: u64,
    /// When caches are emptied.
    pub flush: Flush,
    /// Whether to keep what ran where.
    pub timeline: bool,
    /// Whether to check after every step that no task is lost or run twice and no CPU idles beside
    /// work. Slow: for tests.
    pub audit: bool,
    /// How long a task may wait before the audit, if there is one, says so.
    pub longest_wait_ns: u64,
    /// How long a CPU may idle beside work before the audit says so. Where tasks have masks, a CPU that was
    /// woken for one may find another, and who idles beside the first is found at a tick.
    pub longest_idle_ns: u64,
    /// Whether all CPUs tick at once; if not, when each does follows from the seed.
    pub ticks_in_step: bool,
    /// How long a task may wait before the kernel's watchdog ends the scheduler, in ms.
    pub watchdog_ms: u32,
    /// Whether the scheduler has a defect: no task leaves a queue. For tests.
    pub stalls: bool,
    /// Whether to count misses by cause, which takes two bytes for each line and cache domain. Otherwise all such
    /// counts are 0.
    pub causes: bool,
    /// Whether to keep every miss of the programs' loads and stores, eight bytes each.
    pub record_misses: bool,
    /// Whether to keep what each task counted in each run beside the same others.
    pub record_runs: bool,
    /// Time between two samples of CPU time.
    pub sample_ns: u64,
    /// Give up after this much simulated time.
    pub time_limit_ns: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            seed: 1,
            window_cycles: 1000,
            flush: Flush::Never,
            timeline: false,
            audit: false,
            longest_wait_ns: u64::MAX,
            longest_idle_ns: 0,
            ticks_in_step: true,
            watchdog_ms: hearth_abi::WATCHDOG_MS,
            stalls: false,
            causes: true,
            record_misses: false,
            record_runs: false,
            sample_ns: 200_000_000,
            time_limit_ns: 3_600_000_000_000,
        }
    }
}
