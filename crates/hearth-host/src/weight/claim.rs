//! One cgroup's weight: how it is read and written, and what the journal has to know to take it back.

use crate::Outcome;
use crate::cgroup::{is_cgroup, write};
use crate::error::errno;
use hearth_policy::isolation::weights::{LEAST_WEIGHT, MOST_WEIGHT};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

const WEIGHT: &str = "cpu.weight";

/// A weight of Hearth's, as the journal has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    folder: PathBuf,
    /// The folder's, which another that is made in its place has not.
    number: u64,
    /// The cgroup's own.
    before: u32,
    /// What it was when this was written down: the cgroup's own, or an earlier one of Hearth's. A crash may
    /// have left it there.
    from: u32,
    after: u32,
}

/// Why a cgroup has no weight that could be changed.
#[derive(Debug, thiserror::Error)]
pub(super) enum Problem {
    #[error("it is gone")]
    Gone,
    #[error("the `cpu` controller is not on for it: echo +cpu > {}/cgroup.subtree_control", .0.display())]
    Off(PathBuf),
    #[error(
        "it is the root of its hierarchy, which has no weight; give the program a cgroup of its own: \
         systemd-run --scope"
    )]
    Root,
    #[error("its cpu.idle is 1: it runs when nobody else wants to, and has no weight; echo 0 > {}/cpu.idle", .0.display())]
    Idle(PathBuf),
    #[error("{}: {text:?} is no weight", path.display())]
    Garbage { path: PathBuf, text: String },
    #[error("{}: {source}", path.display())]
    File { path: PathBuf, source: io::Error },
}

impl Claim {
    pub(super) fn new(folder: &Path, number: u64, before: u32, from: u32, after: u32) -> Self {
        Self { folder: folder.to_owned(), number, before, from, after }
    }

    /// The cgroup's folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The cgroup's own weight.
    pub fn before(&self) -> u32 {
        self.before
    }

    /// The weight that Hearth gives it.
    pub fn after(&self) -> u32 {
        self.after
    }

    /// Whether the cgroup is still there.
    pub(crate) fn is_there(&self) -> bool {
        number(&self.folder) == Some(self.number)
    }

    pub(crate) fn make(&self) -> Result<(), Errno> {
        self.write(self.after).map_err(errno)
    }

    /// Gives the cgroup its own weight back, if it has one of Hearth's.
    pub(crate) fn undo(&self) -> Outcome {
        if !self.is_there() {
            return Outcome::Gone;
        }
        match read(&self.folder) {
            Ok(now) if now == self.before => Outcome::Already,
            Ok(now) if now == self.after || now == self.from => match self.write(self.before) {
                Ok(()) => Outcome::Undone(1),
                Err(_) if !self.is_there() => Outcome::Gone,
                Err(error) => Outcome::Failed(error.to_string()),
            },
            Ok(now) => Outcome::Changed(format!("its weight is {now} now")),
            // Its weight went with the controller.
            Err(Problem::Gone | Problem::Off(_) | Problem::Root) => Outcome::Gone,
            Err(Problem::Idle(_)) => Outcome::Changed("its cpu.idle is 1 now".into()),
            Err(problem) => Outcome::Failed(problem.to_string()),
        }
    }

    fn write(&self, weight: u32) -> io::Result<()> {
        write(&self.folder, WEIGHT, weight.to_string())
    }
}

/// What tells a cgroup from another that is made in its place; nothing if it is gone.
pub(super) fn number(folder: &Path) -> Option<u64> {
    folder.metadata().ok().filter(fs::Metadata::is_dir).map(|folder| folder.ino())
}

/// The weight that a cgroup has now.
pub(super) fn read(folder: &Path) -> Result<u32, Problem> {
    let is_idle = fs::read_to_string(folder.join("cpu.idle")).is_ok_and(|text| text.trim() == "1");
    if is_idle {
        return Err(Problem::Idle(folder.to_owned()));
    }
    let path = folder.join(WEIGHT);
    match fs::read_to_string(&path) {
        Ok(text) => match text.trim().parse() {
            Ok(weight @ LEAST_WEIGHT..=MOST_WEIGHT) => Ok(weight),
            _ => Err(Problem::Garbage { path, text }),
        },
        Err(error) if error.kind() == ErrorKind::NotFound => Err(missing(folder)),
        Err(source) => Err(Problem::File { path, source }),
    }
}

/// Why there is no weight.
fn missing(folder: &Path) -> Problem {
    match folder.parent() {
        _ if !folder.is_dir() => Problem::Gone,
        Some(parent) if is_cgroup(parent) => Problem::Off(parent.to_owned()),
        _ => Problem::Root,
    }
}
