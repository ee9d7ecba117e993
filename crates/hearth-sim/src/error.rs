//! Why a run came to nothing.

use hearth_hardware::Unsupported;
use thiserror::Error;

/// Why a run came to nothing.
#[derive(Debug, Error)]
pub enum SimError {
    /// The machine cannot be simulated.
    #[error(transparent)]
    Machine(#[from] Unsupported),
    /// Pages cannot move in this way.
    #[error("page policy {policy}: {reason}")]
    PagePolicy {
        /// The policy's name.
        policy: String,
        /// What is in the way.
        reason: String,
    },
    /// The scheduler object could not be loaded.
    #[error("cannot load the scheduler: {0}")]
    Load(#[from] std::io::Error),
    /// The scheduler did what the kernel does not allow; the kernel's words.
    #[error("the scheduler was thrown out at {at_ms} ms: {reason}")]
    Scheduler {
        /// The kernel's reason.
        reason: String,
        /// Simulated time.
        at_ms: u64,
    },
    /// The audit found a defect of the scheduler.
    #[error("at {at_ns} ns: {reason}")]
    Audit {
        /// What is wrong.
        reason: String,
        /// Simulated time.
        at_ns: u64,
    },
    /// No task can ever run again.
    #[error("all {tasks} remaining tasks wait for each other at {at_ms} ms: {names}")]
    Deadlock {
        /// How many.
        tasks: usize,
        /// Some of their names.
        names: String,
        /// Simulated time.
        at_ms: u64,
    },
    /// The time limit was reached.
    #[error("the programs did not end within {0} s of simulated time")]
    TimeLimit(u64),
    /// Stopped from outside.
    #[error("interrupted")]
    Interrupted,
}
