//! One run of QEMU: its files, its end, and its limit.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tempfile::TempDir;

use crate::{GuestError, Output};

const TAIL_LINES: usize = 30;
/// How `timeout --signal=KILL` says that it had to.
const KILLED_BY_TIMEOUT: i32 = 137;

/// The folder of one run.
pub(crate) struct Boot {
    folder: TempDir,
}

/// QEMU that is killed after a limit even if this process is gone by then.
pub(crate) fn qemu_within(limit: Duration) -> Command {
    let mut command = Command::new("timeout");
    command.arg("--signal=KILL").arg(limit.as_secs().max(1).to_string()).arg("qemu-system-x86_64");
    command
}

impl Boot {
    pub(crate) fn new() -> Result<Self, GuestError> {
        let folder = tempfile::Builder::new().prefix("hearth-guest-").tempdir();
        Ok(Self { folder: folder.map_err(GuestError::file(std::env::temp_dir()))? })
    }

    pub(crate) fn initrd(&self) -> PathBuf {
        self.folder.path().join("initrd")
    }

    pub(crate) fn console(&self) -> PathBuf {
        self.folder.path().join("console")
    }

    pub(crate) fn results(&self) -> PathBuf {
        self.folder.path().join("results")
    }

    /// Runs QEMU to its end and reads what the guest wrote.
    pub(crate) fn run(&self, mut qemu: Command, limit: Duration) -> Result<Output, GuestError> {
        qemu.process_group(0).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let child =
            qemu.spawn().map_err(|source| GuestError::Start { program: "qemu-system-x86_64", source })?;
        let (status, complaint) = Running(Some(child)).wait()?;
        let console = self.read(self.console());
        let results = self.read(self.results());
        if status.code() == Some(KILLED_BY_TIMEOUT) {
            return Err(GuestError::TimeLimit { limit, tail: tail(&console, &results) });
        }
        match Output::parse(&results, &console) {
            Some(output) => Ok(output),
            None => Err(GuestError::Incomplete {
                qemu: format!("QEMU: {status} {}", complaint.trim()),
                tail: tail(&console, &results),
            }),
        }
    }

    fn read(&self, path: PathBuf) -> String {
        fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
    }
}

fn tail(console: &str, results: &str) -> String {
    let last = |text: &str| {
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
    };
    format!("-- console\n{}\n-- results\n{}", last(console), last(results))
}

/// A child with a process group of its own, killed when it is dropped.
struct Running(Option<Child>);

impl Running {
    fn wait(mut self) -> Result<(ExitStatus, String), GuestError> {
        let Some(child) = self.0.take() else { unreachable!("a running child is taken once") };
        let output = child.wait_with_output();
        let output = output.map_err(|source| GuestError::Start { program: "qemu-system-x86_64", source })?;
        Ok((output.status, String::from_utf8_lossy(&output.stderr).into_owned()))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(child) = &self.0 {
            let group = Pid::from_child(child);
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}
