//! One run of QEMU: its files, its end, and its limit.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;

use crate::{GuestError, Output};

const TAIL_LINES: usize = 30;
/// How `timeout --signal=KILL` says that it had to.
const KILLED_BY_TIMEOUT: i32 = 137;

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
    pub(crate) fn run(&self, mut qemu: Command, limit: Duration) -> Result<Output, GuestError> {
        let ended = qemu.stdin(Stdio::null()).stdout(Stdio::null()).output();
        let ended = ended.map_err(|source| GuestError::Start { program: "qemu-system-x86_64", source })?;
        let console = self.read(self.console());
        let results = self.read(self.results());
        if ended.status.code() == Some(KILLED_BY_TIMEOUT) {
            return Err(GuestError::TimeLimit { limit, tail: tail(&console, &results) });
        }
        match Output::parse(&results, &console) {
            Some(output) => Ok(output),
            None => Err(GuestError::Incomplete {
                qemu: format!("QEMU: {} {}", ended.status, String::from_utf8_lossy(&ended.stderr).trim()),
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
