//! A guest: a real Linux kernel with sched_ext, booted under QEMU's software emulation for one
//! script, whose output comes back as named sections.
//!
//! ```no_run
//! use hearth_guest::{Guest, Kernel};
//!
//! let output = Guest::new(Kernel::Pinned)
//!     .file("target/release/hearth", "/bin/hearth")
//!     .run("section state\ncat /sys/kernel/sched_ext/state\n")?;
//! assert_eq!(output.section("state")?.lines, ["disabled"]);
//! # Ok::<(), hearth_guest::GuestError>(())
//! ```
//!
//! A deterministic guest counts instructions: its CPUs take turns on one host thread, its clock
//! advances by [`NS_PER_INSTRUCTION`] with each, and the same script gives the same bytes. Nothing
//! in it scales with CPUs and no cache is modelled, so it shows order, shares, latency and the
//! length of code, never speed. A timed guest is the same on a clock that a plugin moves. A concurrent
//! guest runs its CPUs at once; its timing means nothing.

mod boot;
mod error;
mod guest;
mod image;
mod install;
mod libraries;
mod monitor;
mod output;
pub mod programs;
mod run;
mod state;

pub use error::GuestError;
pub use guest::{Guest, Kernel, Mode, NS_PER_INSTRUCTION, Shape};
pub use install::{available, kernel_config, ready, stress_root};
pub use libraries::{Library, libraries};
pub use output::{KernelLine, Output, Record, Section};
