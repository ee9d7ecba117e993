//! One run of QEMU: its files, its end, and its limit.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use tempfile::TempDir;

use crate::monitor::wrong;
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

    /// Where QEMU's monitor listens.
    pub(crate) fn monitor(&self) -> PathBuf {
        self.folder.path().join("monitor")
    }

    /// Where QEMU writes its process's number.
    pub(crate) fn pid_file(&self) -> PathBuf {
        self.folder.path().join("pid")
    }

    /// What a guest is given after its boot.
    pub(crate) fn given(&self) -> PathBuf {
        self.folder.path().join("given")
    }

    fn errors(&self) -> PathBuf {
        self.folder.path().join("errors")
    }

    fn spawn(&self, qemu: &mut Command) -> Result<Child, GuestError> {
        let errors = self.errors();
        let file = File::create(&errors).map_err(GuestError::file(&errors))?;
        let child = qemu.stdin(Stdio::null()).stdout(Stdio::null()).stderr(file).spawn();
        child.map_err(not_started)
    }

    /// Runs QEMU while `work` has it do something, at the end of which it ends; if `work` fails, it is ended.
    pub(crate) fn with(
        &self,
        qemu: &mut Command,
        limit: Duration,
        work: impl FnOnce(&mut Child) -> Result<(), GuestError>,
    ) -> Result<(), GuestError> {
        let mut child = self.spawn(qemu)?;
        let done = self.attempt(&mut child, work);
        let status = child.wait().map_err(not_started)?;
        self.within(limit, status)?;
        done
    }

    /// Whether QEMU, which has ended, did so within a limit.
    fn within(&self, limit: Duration, status: ExitStatus) -> Result<(), GuestError> {
        if status.code() != Some(KILLED_BY_TIMEOUT) {
            return Ok(());
        }
        Err(GuestError::TimeLimit {
            limit,
            tail: tail(&self.read(self.console()), &self.read(self.results())),
        })
    }

    /// What the guest said, behind what was said `before`; nothing if it did not come to its end.
    pub(crate) fn output(&self, before: &str) -> Option<Output> {
        Output::parse(&(before.to_owned() + &self.read(self.results())), &self.read(self.console()))
    }

    /// Does something with QEMU, which is ended if that fails.
    fn attempt(
        &self,
        child: &mut Child,
        work: impl FnOnce(&mut Child) -> Result<(), GuestError>,
    ) -> Result<(), GuestError> {
        let done = work(child);
        done.map_err(|error| {
            // It may have ended by itself, which is what `error` is about.
            let _ = kill_process(Pid::from_child(child), Signal::TERM);
            let said = self.read(self.errors());
            if said.trim().is_empty() { error } else { wrong(format!("{error}; QEMU said: {}", said.trim())) }
        })
    }

    /// Runs QEMU to its end and reads what the guest wrote, behind what was said `before` it; `begin` does what QEMU
    /// needs to begin.
    pub(crate) fn run(
        &self,
        mut qemu: Command,
        limit: Duration,
        stop: &AtomicBool,
        before: &str,
        begin: impl FnOnce(&mut Child) -> Result<(), GuestError>,
    ) -> Result<Output, GuestError> {
        let mut child = self.spawn(&mut qemu)?;
        if let Err(error) = self.attempt(&mut child, begin) {
            child.wait().map_err(not_started)?;
            return Err(error);
        }
        let Some(status) = wait(child, stop).map_err(not_started)? else { return Err(GuestError::Stopped) };
        self.within(limit, status)?;
        self.output(before).ok_or_else(|| GuestError::Incomplete {
            qemu: format!("QEMU: {status} {}", self.read(self.errors()).trim()),
            tail: tail(&self.read(self.console()), &self.read(self.results())),
        })
    }

    pub(crate) fn read(&self, path: PathBuf) -> String {
        fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
    }
}

fn not_started(source: std::io::Error) -> GuestError {
    GuestError::Start { program: "qemu-system-x86_64", source }
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
