//! `hearth stop`: the kernel's own scheduler again.

use super::start::failure;
use super::undo;
use crate::failure::{Failure, Outcome};
use crate::output;
use anyhow::anyhow;
use clap::Args;
use hearth_linux::daemon;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::time::{Duration, Instant};

/// How long the daemon may take to end.
const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Debug, Args)]
pub struct Arguments {}

pub fn run(_arguments: &Arguments) -> Outcome {
    let folder = daemon::run_folder();
    let Some(pid) = daemon::holder(&folder) else {
        let report = daemon::undo().map_err(failure)?;
        output::print(&format!("Hearth does not run\n{}", undo::text(&report)))?;
        return undo::outcome(&report);
    };
    let process = Pid::from_raw(pid as i32)
        .ok_or(rustix::io::Errno::SRCH)
        .and_then(|pid| pidfd_open(pid, PidfdFlags::empty()))
        .and_then(|process| pidfd_send_signal(process, Signal::TERM));
    if let Err(error) = process {
        return Err(match error {
            rustix::io::Errno::PERM => {
                Failure::Code(5, anyhow!("process {pid} is not yours to end; run as root: sudo hearth stop"))
            }
            error => Failure::failed(anyhow!("cannot end process {pid}: {error}")),
        });
    }
    let begin = Instant::now();
    while daemon::holder(&folder).is_some() {
        if begin.elapsed() > PATIENCE {
            return Err(Failure::failed(anyhow!(
                "process {pid} does not end; kill -9 {pid} gives the CPUs back to the kernel's own scheduler"
            )));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    output::print("The kernel's own scheduler runs again\n")
}
