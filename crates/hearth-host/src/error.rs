//! What can go wrong with a machine: what is wrong, and what to do.

use rustix::io::Errno;
use std::io;
use std::path::PathBuf;

/// Why something of the machine could not be read or changed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The kernel has no sched_ext.
    #[error(
        "this kernel ({release}) cannot load a scheduler: {reason}; boot one of 6.12 or later built with \
         CONFIG_SCHED_CLASS_EXT, or do without one: hearth start --no-scheduler, hearth observe"
    )]
    NoSchedExt {
        /// What `uname -r` prints.
        release: String,
        /// What it lacks.
        reason: String,
    },
    /// A cgroup that cannot be meant.
    #[error("cgroup {name}: {problem}")]
    Cgroup {
        /// As it was given.
        name: String,
        /// What is wrong, and what to do.
        problem: String,
    },
    /// A process that cannot be meant.
    #[error("process {pid}: {problem}")]
    Process {
        /// Which.
        pid: i32,
        /// What is wrong.
        problem: String,
    },
    /// A file of the host.
    #[error("{}: {source}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// What is asked for is impossible on this machine.
    #[error(transparent)]
    Impossible(Box<dyn std::error::Error + Send + Sync>),
    /// The host's topology.
    #[error(transparent)]
    Topology(#[from] hearth_machine::host::HostError),
}

/// What the system says, as its number.
pub(crate) fn errno(error: io::Error) -> Errno {
    Errno::from_io_error(&error).unwrap_or(Errno::IO)
}

impl Error {
    /// What the system says of a file.
    pub fn file(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { path, source }
    }
}
