//! The real kernel as a host.
//!
//! [`Scheduler`] loads the scheduler (`bpf/`) as a sched_ext program, sets its policy and the
//! machine's shape, reads its statistics, and says why the kernel let go of it. Nothing here decides
//! anything: policies come from `hearth-policy`, the topology from `hearth-machine`.

mod board;
mod cpusets;
pub mod daemon;
mod decisions;
mod door;
pub mod ending;
mod error;
pub mod exposition;
mod fragments;
pub mod isolation;
mod log;
mod memory;
mod object;
pub mod only;
mod planning;
mod programs;
pub mod scheduler;
mod shape;
mod snapshot;
mod tasks;
mod words;

pub use decisions::{Decision, Source};
pub use error::Error;
pub use fragments::{Declared, FragmentsStatus};
pub use hearth_abi::CpuStats;
pub use planning::PlannerStatus;
pub use programs::ProgramStatus;
pub use scheduler::{Exit, Options, Scheduler};
pub use snapshot::Snapshots;
pub use tasks::{Planned, Task};
