//! Whose tasks are observed.

use super::error::ObserveError;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

/// Where control groups of version 2 usually are.
const CGROUP_ROOTS: [&str; 2] = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];
/// The type of that file system.
const CGROUP2_MAGIC: u64 = 0x6367_7270;

/// Whose tasks are observed.
#[derive(Clone, Debug)]
pub enum Target {
    /// A command, which is started, and all that it starts.
    Command(Vec<OsString>),
    /// A process with its threads, and what it started or starts.
    Process(u32),
    /// A control group and those below it.
    Cgroup(PathBuf),
    /// All processes.
    Host,
}

/// As the BPF side knows it.
pub(super) struct Scope {
    pub kind: u32,
    pub target: u64,
}

/// A target that was found.
pub(super) struct Found {
    pub scope: Scope,
    /// Becomes readable when the process has ended.
    pub process: Option<OwnedFd>,
}

impl Target {
    /// Its name for people.
    pub fn describe(&self) -> String {
        match self {
            Target::Command(words) => {
                let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
                words.join(" ")
            }
            Target::Process(pid) => format!("process {pid}"),
            Target::Cgroup(path) => format!("control group {}", path.display()),
            Target::Host => "the whole host".to_owned(),
        }
    }

    pub(super) fn find(&self) -> Result<Found, ObserveError> {
        let (kind, target, process) = match self {
            Target::Host => (0, 0, None),
            Target::Command(_) => (1, u64::from(std::process::id()), None),
            Target::Process(pid) => (2, u64::from(*pid), Some(open_process(*pid)?)),
            Target::Cgroup(path) => (3, cgroup_number(path)?, None),
        };
        Ok(Found { scope: Scope { kind, target }, process })
    }
}

/// Starts a command.
pub(super) fn start(words: &[OsString]) -> Result<Child, ObserveError> {
    let Some((program, arguments)) = words.split_first() else {
        return Err(ObserveError::NotFound { name: String::new() });
    };
    let name = program.to_string_lossy().into_owned();
    Command::new(program).args(arguments).spawn().map_err(|reason| match reason.kind() {
        std::io::ErrorKind::NotFound => ObserveError::NotFound { name },
        _ => ObserveError::NotStarted { name, reason },
    })
}

pub(super) fn open_process(pid: u32) -> Result<OwnedFd, ObserveError> {
    let process = process_of(pid).ok_or(ObserveError::NoProcess { pid })?;
    if process != pid {
        return Err(ObserveError::Thread { pid, process });
    }
    let number = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let number = number.ok_or(ObserveError::NoProcess { pid })?;
    pidfd_open(number, PidfdFlags::empty()).map_err(|_| ObserveError::NoProcess { pid })
}

/// The process that a task belongs to.
fn process_of(pid: u32) -> Option<u32> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("Tgid:"))?;
    line.trim().parse().ok()
}

/// A control group's number is that of its folder.
fn cgroup_number(path: &Path) -> Result<u64, ObserveError> {
    let relative = path.strip_prefix("/").unwrap_or(path);
    let below = CGROUP_ROOTS.iter().map(|root| Path::new(root).join(relative));
    std::iter::once(path.to_owned())
        .chain(below)
        .find_map(|folder| {
            let system = rustix::fs::statfs(&folder).ok()?;
            let metadata = folder.metadata().ok()?;
            let is_cgroup = u64::try_from(system.f_type).ok()? == CGROUP2_MAGIC && metadata.is_dir();
            is_cgroup.then(|| metadata.ino())
        })
        .ok_or_else(|| ObserveError::NoCgroup { path: path.to_owned() })
}
