//! Makes unmodified parallel programs follow the CPUs that they can get: `hearth exec`.
//!
//! A library of ours is preloaded into the program (`preload/`, embedded here) and has the program's
//! runtimes use as many threads as the program can get CPUs, from one parallel region to the next.
//! What reads a number once, at its start, gets it through the environment. A program that can do
//! neither runs as it is. In every case the program's exit code, signals and terminal are its own.

mod environment;
mod library;
mod program;
mod run;
mod signals;
mod stub;

pub use library::LibraryError;
pub use program::Program;
pub use run::{ExecError, Options, exec};
pub use signals::end_by;
