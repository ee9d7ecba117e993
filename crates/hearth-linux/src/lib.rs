//! The real kernel as a host.
//!
//! [`Scheduler`] loads the scheduler (`bpf/`) as a sched_ext program, sets its policy and the
//! machine's shape, reads its statistics, and says why the kernel let go of it. Nothing here decides
//! anything: policies come from `hearth-policy`, the topology from `hearth-machine`.

pub mod cgroup;
pub mod daemon;
mod decisions;
pub mod doctor;
pub mod ending;
mod error;
pub mod hogs;
pub mod journal;
pub mod kernel;
mod log;
pub mod observe;
pub mod only;
pub mod pages;
pub mod scheduler;
mod shape;
pub mod task;
mod tasks;
pub mod threads;

pub use decisions::{Decision, Source};
pub use error::Error;
pub use hearth_seam::CpuStats;
pub use scheduler::{Exit, Options, Scheduler};
pub use tasks::Task;
