//! Makes unmodified parallel programs follow the CPUs that they can get: `hearth exec`.
//!
//! A library of ours is preloaded into the program (`preload/`, embedded here) and has the program's
//! runtimes use as many threads as the program can get CPUs, from one parallel region to the next.
//! What reads the CPUs that it may run on while it runs, Go and the JVM, has its mask changed. What reads
//! a number once, at its start, gets it through the environment. A program that can do none of it runs as
//! it is. In every case the program's exit code, signals and terminal are its own.

mod environment;
mod library;
mod mask;
mod pages;
mod program;
mod run;
mod signals;
mod told;
mod way;

pub use run::{Ended, ExecError, exec};
pub use signals::end_by;
pub use told::Told;
