//! `hearth stop`: the kernel's own scheduler again.

use super::start::{ending, failure};
use super::undo;
use anyhow::anyhow;
use clap::Args;
use hearth_command::failure::{Failure, Outcome};
use hearth_command::output;
use hearth_host::privilege;
use hearth_linux::daemon;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

#[derive(Debug, Args)]
pub struct Arguments {}

pub fn run(_arguments: &Arguments) -> Outcome {
    let folder = daemon::run_folder();
    let Some(holder) = daemon::holder(&folder) else {
        let report = daemon::undo().map_err(failure)?;
        output::print(&format!("Hearth does not run\n{}", undo::text(&report)))?;
        return undo::outcome(&report);
    };
    if holder.ending_for.is_some() {
        anstream::eprintln!("{}; waiting until it has ended", ending(&holder));
    } else {
        end(holder.pid)?;
    }
    if let Some(holder) = daemon::await_end(&folder, daemon::PATIENCE) {
        let pid = holder.pid.map(|pid| pid.to_string()).unwrap_or_default();
        return Err(Failure::failed(anyhow!(
            "process {pid} does not end; kill -9 {pid} gives the CPUs back to the kernel's own scheduler"
        )));
    }
    output::print("The kernel's own scheduler runs again\n")
}

/// Asks the daemon to end.
fn end(pid: Option<u32>) -> Outcome {
    let pid = pid.and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw);
    let pid = pid.ok_or_else(|| Failure::failed(anyhow!("Hearth is starting; try again in a moment")))?;
    let asked =
        pidfd_open(pid, PidfdFlags::empty()).and_then(|process| pidfd_send_signal(process, Signal::TERM));
    let pid = pid.as_raw_nonzero();
    match asked {
        // It has ended by itself.
        Ok(()) | Err(Errno::SRCH) => Ok(()),
        Err(Errno::PERM) => {
            Err(Failure::Code(5, anyhow!("process {pid} is not yours to end; {}", privilege::advice())))
        }
        Err(error) => Err(Failure::failed(anyhow!("cannot end process {pid}: {error}"))),
    }
}
