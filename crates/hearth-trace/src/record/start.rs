//! Starts the tool that runs the program.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{Signal, set_parent_process_death_signal};

/// Starts `command` with these descriptors open under the numbers that they have here. It ends
/// when this process dies, rather than run on for nobody.
pub(super) fn start(mut command: Command, descriptors: Vec<OwnedFd>) -> io::Result<Child> {
    let prepare = move || {
        set_parent_process_death_signal(Some(Signal::TERM))?;
        descriptors.iter().try_for_each(|descriptor| Ok(fcntl_setfd(descriptor, FdFlags::empty())?))
    };
    // SAFETY: between fork and exec, the closure does nothing but system calls.
    unsafe { command.pre_exec(prepare) };
    command.spawn()
}
