//! What Hearth changes, and how it takes that back: the controller, and cgroups of its own.

use super::{CONTROLLER, enter, processes};
use crate::Outcome;
use crate::cgroup::{self, LETTING_GO, write};
use crate::error::errno;
use rustix::io::Errno;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::thread;

/// Passes over a cgroup whose processes fork meanwhile, or have ended.
const PASSES: usize = 20;

const SWITCH: &str = "cgroup.subtree_control";

/// Switches cpusets on for the cgroups directly below this one.
pub fn switch_on(root: &Path) -> Result<(), Errno> {
    write(root, SWITCH, "+cpuset").map_err(errno)
}

/// Whether cpusets are on for the cgroups directly below this one.
pub fn is_on(root: &Path) -> bool {
    cgroup::is_on(root, CONTROLLER)
}

/// Switches them off, unless another manager has begun to use them.
pub fn switch_off(root: &Path) -> Outcome {
    if !is_on(root) {
        return Outcome::Already;
    }
    if let Some(user) = user(root) {
        return Outcome::Changed(format!("{} uses cpusets now", user.display()));
    }
    match write(root, SWITCH, "-cpuset") {
        Ok(()) => Outcome::Undone(1),
        Err(error) => Outcome::Failed(error.to_string()),
    }
}

/// A cgroup directly below that has CPUs or nodes of its own, or passes cpusets on.
fn user(root: &Path) -> Option<PathBuf> {
    let below = fs::read_dir(root).into_iter().flatten().flatten().map(|entry| entry.path());
    below.filter(|path| path.is_dir()).find(|folder| {
        let says = |file: &str| fs::read_to_string(folder.join(file)).unwrap_or_default();
        ["cpuset.cpus", "cpuset.mems"].iter().any(|file| !says(file).trim().is_empty()) || is_on(folder)
    })
}

/// Makes a cgroup.
pub fn make_group(folder: &Path) -> Result<(), Errno> {
    fs::create_dir(folder).map_err(errno)
}

/// Moves a cgroup's processes back to where they were, or as near as there still is something, and removes it.
pub fn remove_group(folder: &Path, back: &Path) -> Outcome {
    remove_patiently(folder, back, || thread::sleep(LETTING_GO))
}

pub(super) fn remove_patiently(folder: &Path, back: &Path, mut pause: impl FnMut()) -> Outcome {
    let mut moved = 0;
    let mut refused = String::new();
    for _ in 0..PASSES {
        let pids = processes(folder);
        for pid in &pids {
            match go_back(back, *pid) {
                Ok(()) => moved += 1,
                Err(error) if Errno::from_io_error(&error) == Some(Errno::SRCH) => {}
                Err(error) => return Outcome::Failed(format!("process {pid}: {error}")),
            }
        }
        match fs::remove_dir(folder) {
            Ok(()) => return Outcome::Undone(moved.max(1)),
            Err(error) if error.kind() == ErrorKind::NotFound => return Outcome::Gone,
            Err(error) => refused = error.to_string(),
        }
        if pids.is_empty() {
            pause();
        }
    }
    Outcome::Failed(refused)
}

/// Moves a process to a cgroup, or to the nearest above it that takes it.
pub(crate) fn go_back(back: &Path, pid: i32) -> io::Result<()> {
    let mut refused = io::Error::from(ErrorKind::NotFound);
    for folder in
        back.ancestors().filter(|folder| folder.is_dir()).take_while(|folder| cgroup::is_cgroup(folder))
    {
        match enter(folder, pid) {
            Ok(()) => return Ok(()),
            Err(error) => refused = error,
        }
    }
    Err(refused)
}
