//! One run of QEMU: its files, its end, and its limit.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use tempfile::TempDir;

use crate::{GuestError, Output};

const TAIL_LINES: usize = 30;
/// How `timeout --signal=KILL` says that it had to.
const KILLED_BY_TIMEOUT: i32 = 137;
/// How often a running guest is looked at.
const LOOK: Duration = Duration::from_millis(20);

/// The folder of one run.
pub(crate) struct Boot {
    folder: TempDir,
}

/// QEMU that is killed after a limit even if this process is gone by then, and by Ctrl-C with it.
pub(crate) fn qemu_within(limit: Duration) -> Command {
    let mut command = Command::new("timeout");
    command
        .args(["--foreground", "--signal=KILL"])
        .arg(limit.as_secs().max(1).to_string())
        .arg("qemu-system-x86_64");
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
    pub(crate) fn run(
        &self,
        mut qemu: Command,
        limit: Duration,
        stop: &AtomicBool,
    ) -> Result<Output, GuestError> {
        let errors = self.folder.path().join("errors");
        let file = File::create(&errors).map_err(GuestError::file(&errors))?;
        let child = qemu.stdin(Stdio::null()).stdout(Stdio::null()).stderr(file).spawn();
        let ended = child.and_then(|child| wait(child, stop));
        let ended = ended.map_err(|source| GuestError::Start { program: "qemu-system-x86_64", source })?;
        let Some(status) = ended else { return Err(GuestError::Stopped) };
        let console = self.read(self.console());
        let results = self.read(self.results());
        if status.code() == Some(KILLED_BY_TIMEOUT) {
            return Err(GuestError::TimeLimit { limit, tail: tail(&console, &results) });
        }
        match Output::parse(&results, &console) {
            Some(output) => Ok(output),
            None => Err(GuestError::Incomplete {
                qemu: format!("QEMU: {status} {}", self.read(errors).trim()),
                tail: tail(&console, &results),
            }),
        }
    }

    fn read(&self, path: PathBuf) -> String {
        fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
    }
}

/// How it ended; nothing if it was made to end because `stop` became true.
fn wait(mut child: Child, stop: &AtomicBool) -> std::io::Result<Option<ExitStatus>> {
    loop {
        if let Some(status) = child.try_wait()? {
            // Ctrl-C reaches QEMU by itself, and may have ended it before anybody looked.
            return Ok((!stop.load(Ordering::Relaxed)).then_some(status));
        }
        if stop.load(Ordering::Relaxed) {
            // `timeout` passes this one on to QEMU, and would leave QEMU behind at any harder one.
            kill_process(Pid::from_child(&child), Signal::TERM)?;
            child.wait()?;
            return Ok(None);
        }
        thread::sleep(LOOK);
    }
}

fn tail(console: &str, results: &str) -> String {
    let last = |text: &str| {
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
    };
    format!("-- console\n{}\n-- results\n{}", last(console), last(results))
}
