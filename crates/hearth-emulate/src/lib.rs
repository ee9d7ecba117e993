//! A real kernel and real programs in an emulator, over the caches of `hearth-hardware`.
//!
//! An [`Emulation`] is a command on a machine. Each of its runs boots a guest whose kernel sees that
//! machine's CPUs, last-level caches and memory nodes ([`topology`]), with what the command needs of
//! this host ([`Files`]), under one [`Scheduler`]. QEMU loads a plugin that keeps the machine's
//! caches and writes what it counted ([`counts`]) while the command ran, and not before.

pub mod counts;
mod emulation;
mod error;
mod files;
mod kept;
mod measures;
mod plugin;
mod runner;
mod scheduler;
mod script;
pub mod topology;

pub use emulation::{Emulation, Run};
pub use error::EmulateError;
pub use files::Files;
pub use kept::Kept;
pub use plugin::arguments as plugin_arguments;
pub use runner::{Job, Outcome, Progress, run_all};
pub use scheduler::{Named, Other, Scheduler};
