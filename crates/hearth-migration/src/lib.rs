//! Pages that follow their process: memory that lies on another node than where its process runs is
//! moved there, if it is used.
//!
//! ```text
//!  running: where does it run? --> areas: where is its memory? --> sampler: what of that is used?
//!                                                                      |
//!  mover: move_pages(2) <-- plan <-- Controller of hearth-policy <-- snapshot
//! ```
//!
//! All of it is one thread of low priority in the daemon, in rounds of a second or longer. While
//! nothing lies elsewhere, nothing is sampled. The thread has a controller of its own, which knows nothing of
//! the scheduler's: neither waits for the other, and pages follow where Hearth does not schedule, too.

mod areas;
mod decide;
mod error;
mod followed;
mod mover;
mod nodes;
mod planning;
mod report;
mod running;
mod sampler;
mod service;
mod tell;
mod units;
mod worker;

pub use areas::Stays;
pub use error::MigrationError;
pub use mover::Reason;
pub use nodes::{NodeId, Nodes};
pub use report::{Moment, PagesStatus, ProcessPages, Tally};
pub use sampler::{Available, Backend, available};
pub use service::{FollowPages, NAME};
pub use worker::Follower;

use hearth_host::{Error, task};
use hearth_policy::pages::PagePolicy;
use std::path::PathBuf;

/// What is to be followed, and how.
#[derive(Clone, Debug)]
pub struct Options {
    /// When pages move.
    pub policy: PagePolicy,
    /// The folder of the cgroup whose processes alone are followed.
    pub only: Option<PathBuf>,
    /// Only processes that this one has started, and theirs, are followed.
    pub of_children: bool,
}

/// Where the memory of a process is, as the kernel tells it at this moment; nothing is known of where
/// it runs, nor of what was moved.
pub fn look(pid: i32) -> Result<ProcessPages, Error> {
    let areas = areas::read(pid).map_err(Error::file(format!("/proc/{pid}/numa_maps")))?;
    let (movable, stays) = followed::sums(&areas);
    Ok(ProcessPages { pid, name: task::name_of(pid), movable, stays, ..ProcessPages::default() })
}
