//! The machine that Hearth runs on, as an administrator sees it: what its kernel can do, its threads
//! and control groups, and the [`journal`] of what Hearth changes there.
//!
//! Nothing here schedules. [`service`] is the seam between a daemon and what works beside its
//! scheduler.

pub mod cgroup;
pub mod clock;
pub mod cpuset;
pub mod damon;
mod error;
pub mod hogs;
pub mod journal;
pub mod kernel;
pub mod moves;
mod outcome;
pub mod planner;
pub mod pressure;
pub mod privilege;
pub mod service;
pub mod task;
pub mod threads;
pub mod ticks;
pub mod times;
pub mod weight;

pub use error::Error;
pub use outcome::Outcome;

/// Where a daemon's locks, socket and log are.
pub fn run_folder() -> std::path::PathBuf {
    std::env::var_os("HEARTH_RUN").map_or_else(|| "/run/hearth".into(), std::path::PathBuf::from)
}
