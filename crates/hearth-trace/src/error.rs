//! What can be wrong with a trace file, and how to mend it.

use std::io;
use std::path::PathBuf;

/// A trace file cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The operating system refused.
    #[error("{path}: cannot {action}: {source}", path = path.display())]
    Io {
        /// The trace file.
        path: PathBuf,
        /// What was being done to it.
        action: &'static str,
        /// The system's reason.
        source: io::Error,
    },
    /// The file does not begin as a trace does.
    #[error(
        "{path}: byte 0: not a Hearth trace (its first bytes are not the trace magic); \
         name a trace: `hearth record -o NEW.trace -- COMMAND` writes one", path = path.display()
    )]
    NotATrace {
        /// The file that is no trace.
        path: PathBuf,
    },
    /// The file was written by a newer recorder.
    #[error(
        "{path}: byte 8: trace format version {found}, but this program reads version {known}; \
         update Hearth, or record the program again with this version", path = path.display()
    )]
    Version {
        /// The trace file.
        path: PathBuf,
        /// Its version.
        found: u32,
        /// The version that this crate reads.
        known: u32,
    },
    /// The file ends too early or has no complete trailer.
    #[error(
        "{path}: byte {offset}: truncated: {what}; \
         copy the file again in full, or record the program again", path = path.display()
    )]
    Truncated {
        /// The trace file.
        path: PathBuf,
        /// Where in the file.
        offset: u64,
        /// What is missing.
        what: String,
    },
    /// The file's contents contradict themselves.
    #[error(
        "{path}: byte {offset}{where_}: corrupt: {what}; \
         copy the file again, or record the program again",
        path = path.display(), where_ = chunk.map_or(String::new(), |chunk| format!(" (chunk {chunk})"))
    )]
    Corrupt {
        /// The trace file.
        path: PathBuf,
        /// Where in the file the damaged part begins.
        offset: u64,
        /// The chunk's number, if the damage is in one.
        chunk: Option<u64>,
        /// What is wrong.
        what: String,
    },
    /// A thread was asked for that the trace does not have.
    #[error("{path}: has no thread {thread}: its threads are 0 to {last}", path = path.display())]
    NoSuchThread {
        /// The trace file.
        path: PathBuf,
        /// The thread asked for.
        thread: u32,
        /// The highest thread number.
        last: u32,
    },
    /// The trace is larger than the memory that the caller allowed for it.
    #[error(
        "{path}: {events} events do not fit in the allowed {limit}; stream it with `Trace::thread`",
        path = path.display()
    )]
    TooLarge {
        /// The trace file.
        path: PathBuf,
        /// Its events.
        events: u64,
        /// The events allowed.
        limit: u64,
    },
}
