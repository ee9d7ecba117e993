//! What can go wrong with a guest.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Why a guest gave no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GuestError {
    /// A file of the host could not be read or written.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A program of the host could not be started.
    #[error("cannot run {program}: {source}; tools/install-guest installs it on Debian 12")]
    Start {
        /// The program.
        program: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// The guest is not installed.
    #[error("{0}")]
    NotInstalled(String),
    /// The guest did not end in time and was killed.
    #[error("the guest did not end within {} s; it had said:\n{tail}", limit.as_secs())]
    TimeLimit {
        /// The limit.
        limit: Duration,
        /// The last lines of its console and results.
        tail: String,
    },
    /// The guest was made to end.
    #[error("the guest was stopped")]
    Stopped,
    /// The guest ended without running its script to the end.
    #[error("the guest ended before its script did ({qemu}); it had said:\n{tail}")]
    Incomplete {
        /// How QEMU ended.
        qemu: String,
        /// The last lines of its console and results.
        tail: String,
    },
    /// QEMU did not do what it was asked for.
    #[error("QEMU's monitor: {what}")]
    Monitor {
        /// What went wrong.
        what: String,
    },
    /// A shape that QEMU or the kernel cannot make.
    #[error("{0}")]
    Shape(String),
    /// The script printed no such section.
    #[error("the guest printed no section {name:?}; it printed {found}, and at the end:\n{tail}")]
    NoSection {
        /// The section asked for.
        name: String,
        /// The sections that there are.
        found: String,
        /// The lines of the last of them.
        tail: String,
    },
    /// A line of a section is not what a caller expects.
    #[error("{what} in the guest's line {line:?}")]
    Line {
        /// What is missing or wrong.
        what: String,
        /// The line.
        line: String,
    },
}

impl GuestError {
    pub(crate) fn file(path: impl AsRef<Path>) -> impl FnOnce(io::Error) -> Self {
        let path = path.as_ref().to_owned();
        move |source| Self::File { path, source }
    }
}
