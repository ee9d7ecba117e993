//! Commands for the real kernel.

pub mod choice;
pub mod cpus;
pub mod doctor;
pub mod explain;
mod isolation;
pub mod pages;
pub mod plan;
pub mod set;
pub mod start;
pub mod status;
pub mod stop;
pub mod trace;
pub mod undo;

use anyhow::anyhow;
use hearth_command::failure::{Failure, Outcome};

/// That there is a process, or thread, of this number.
fn require_process(pid: i32) -> Outcome {
    if hearth_host::task::exists(pid) { Ok(()) } else { Err(no_process(pid)) }
}

pub fn no_process(pid: i32) -> Failure {
    Failure::Input(anyhow!("there is no process {pid}; `ps -e` or `hearth top` lists those that are"))
}
