//! The real kernel as a host.
//!
//! [`Scheduler`] loads the scheduler (`bpf/`) as a sched_ext program, sets its policy and the
//! machine's shape, reads its statistics, and says why the kernel let go of it. Nothing here decides
//! anything: policies come from `hearth-policy`, the topology from `hearth-machine`.

pub mod daemon;
mod error;
pub mod kernel;
mod log;
pub mod scheduler;
mod shape;

pub use error::Error;
pub use scheduler::{CpuStats, Exit, Options, Scheduler};
