//! What can go wrong with an emulated run, and how to mend it.

use hearth_guest::GuestError;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EmulateError {
    /// A machine that the guest's kernel cannot be told of.
    #[error("machine {machine} cannot be emulated: {what}")]
    Machine {
        /// Its name.
        machine: String,
        /// Why not, and what to do.
        what: String,
    },
    /// No folder of `PATH` has this program.
    #[error("there is no program {0:?} here; name one in PATH, or its file")]
    NoProgram(String),
    /// A program whose libraries or interpreter cannot be found.
    #[error("{program} cannot be taken along: {what}")]
    Program {
        /// Its file.
        program: PathBuf,
        /// What is missing.
        what: String,
    },
    /// A file to take along that is not there, or cannot be read.
    #[error("{path}: {error}; name a file or folder of this host")]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said: in the message, so no source besides.
        error: io::Error,
    },
    /// A folder for what comes of guests that cannot be had.
    #[error("{path} cannot keep runs: {error}; --keep takes a folder, which is made if it is not there")]
    Keep {
        /// The folder, or the file in it.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// What a guest needs is not there, or too old.
    #[error(transparent)]
    NotReady(GuestError),
    /// The plugin that counts is not there.
    #[error("{0}")]
    NoPlugin(String),
    /// The guest's command did not end well.
    #[error("under {scheduler} the command ended with exit code {code}{}", said(.last_lines))]
    Command {
        /// The scheduler's name.
        scheduler: String,
        /// Its exit code.
        code: i32,
        /// What it last said on standard error.
        last_lines: Vec<String>,
    },
    /// What was to prepare the command did not end well.
    #[error("under {scheduler} what --before runs ended with exit code {code}{}", said(.last_lines))]
    Before {
        /// The scheduler's name.
        scheduler: String,
        /// Its exit code.
        code: i32,
        /// What it last said on standard error.
        last_lines: Vec<String>,
    },
    /// The command wrote something else into the file of its measures.
    #[error("under {scheduler} the command's own measures, in HEARTH_MEASURES: {what}")]
    Measures {
        /// The scheduler's name.
        scheduler: String,
        /// What is wrong with them.
        what: String,
    },
    /// The scheduler did not start.
    #[error("{scheduler} did not start in the guest{}", said(.last_lines))]
    NoScheduler {
        /// Its name.
        scheduler: String,
        /// What was said.
        last_lines: Vec<String>,
    },
    /// The scheduler did not last.
    #[error("{scheduler} did not schedule to the end of the run{}", said(.last_lines))]
    SchedulerEnded {
        /// Its name.
        scheduler: String,
        /// What was said.
        last_lines: Vec<String>,
    },
    /// The guest did not end in time.
    #[error(
        "under {scheduler} the guest did not end within {} s; raise --limit, or shorten the command; \
         it had said:\n{tail}", limit.as_secs()
    )]
    TimeLimit {
        /// The scheduler's name.
        scheduler: String,
        /// The limit.
        limit: Duration,
        /// The last lines of its console.
        tail: String,
    },
    /// The guest had other trouble.
    #[error("under {scheduler}: {source}")]
    Guest {
        /// The scheduler's name.
        scheduler: String,
        /// What it was.
        source: GuestError,
    },
    /// The plugin's counts are missing or not to be understood.
    #[error("under {scheduler} the plugin left no counts: {what}")]
    Counts {
        /// The scheduler's name.
        scheduler: String,
        /// What is wrong with them.
        what: String,
    },
    /// The run was stopped.
    #[error("interrupted")]
    Stopped,
}

impl EmulateError {
    /// Whether somebody wanted it so.
    pub fn is_interruption(&self) -> bool {
        matches!(self, Self::Stopped)
    }
}

fn said(lines: &[String]) -> String {
    if lines.is_empty() { String::new() } else { format!("; it had said:\n{}", lines.join("\n")) }
}
