//! Cpusets of control groups, version 2: CPUs that the processes of a cgroup run on.
//!
//! A cgroup directly below the root can be a *partition*: the kernel then takes its CPUs away from everybody
//! else, and nobody else's cgroup is written for it. Whether it is one, it says itself, at any time: a CPU may
//! go offline, or another manager ask for the same CPUs.

mod own;

pub(crate) use own::go_back;
pub use own::{is_on, make_group, remove_group, switch_off, switch_on};

use crate::Error;
use crate::cgroup::{self, write};
use hearth_machine::list::{parse_list, show_list};
use procfs::process::Process;
use std::collections::BTreeSet;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// The controller's name.
const CONTROLLER: &str = "cpuset";

/// The hierarchy of version 2, where it has cpusets.
#[derive(Clone, Debug)]
pub struct Hierarchy {
    root: PathBuf,
}

/// What the kernel says of a cgroup's CPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Partition {
    /// They are its own.
    Own,
    /// Others may run there, too: it did not ask for more.
    Shared,
    /// Others may run there, too, for this reason.
    Invalid(String),
}

impl Hierarchy {
    /// This machine's.
    ///
    /// # Errors
    /// If there is none, or if it has no cpusets.
    pub fn find() -> Result<Self, Error> {
        let mounts = Process::myself().and_then(|own| own.mountinfo()).map(|mounts| mounts.0);
        let mounts = mounts.unwrap_or_default();
        let mounted = |kind: &str| mounts.iter().find(|mount| mount.fs_type == kind);
        match (mounted("cgroup2"), mounted("cgroup")) {
            (Some(mount), _) => Self::at(&mount.mount_point),
            (None, Some(_)) => Err(impossible(
                "sets without sched_ext are cpusets of control groups, version 2, and this machine has version 1 \
                 only; boot it with systemd.unified_cgroup_hierarchy=1",
            )),
            (None, None) => Err(impossible(
                "sets without sched_ext are cpusets of control groups, and none are mounted; \
                 mount -t cgroup2 none /sys/fs/cgroup",
            )),
        }
    }

    /// The one that is mounted here.
    ///
    /// # Errors
    /// If it has no cpusets.
    pub fn at(root: &Path) -> Result<Self, Error> {
        let path = root.join("cgroup.controllers");
        let controllers = fs::read_to_string(&path).map_err(Error::file(&path))?;
        if controllers.split_whitespace().any(|name| name == CONTROLLER) {
            return Ok(Self { root: root.to_owned() });
        }
        Err(impossible(format!(
            "the control groups at {} have no cpusets: version 1 has them (boot with cgroup_no_v1=cpuset), the \
             kernel was built without (CONFIG_CPUSETS), or who started this container keeps them",
            root.display()
        )))
    }

    /// Its folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The cgroup of a process.
    ///
    /// # Errors
    /// If the process is gone, or its cgroup is not seen from here.
    pub fn of_process(&self, pid: i32) -> Result<PathBuf, Error> {
        cgroup::of_process(&self.root, pid)
    }

    /// CPUs that are online and no partition's.
    ///
    /// # Errors
    /// What the system says.
    pub fn free_cpus(&self) -> Result<BTreeSet<usize>, Error> {
        cpus(&self.root, "cpuset.cpus.effective").map_err(Error::file(&self.root))
    }

    /// CPUs that other managers have given to cgroups of theirs, those that have all of `cpus` aside. `is_ours`
    /// tells Hearth's own.
    pub fn named_by_others(
        &self,
        cpus: &BTreeSet<usize>,
        is_ours: impl Fn(&Path) -> bool,
    ) -> BTreeSet<usize> {
        let folders = cgroup::descendants(&self.root).into_iter().filter(|folder| !is_ours(folder));
        let named = folders.filter_map(|folder| self::cpus(&folder, "cpuset.cpus").ok());
        named.filter(|named| !cpus.is_subset(named)).flatten().collect()
    }

    /// Why a process cannot leave its cgroup without losing what that means for it; nothing if it can.
    pub fn holds(&self, folder: &Path) -> Option<String> {
        cgroup::limit(&self.root, folder)
    }
}

/// Gives a cgroup these CPUs, for itself if the kernel agrees.
///
/// # Errors
/// What the system refuses.
pub fn give(folder: &Path, cpus: &[usize], own: bool) -> io::Result<()> {
    write(folder, "cpuset.cpus", show_list(cpus))?;
    if own { write(folder, "cpuset.cpus.partition", "root") } else { Ok(()) }
}

/// Has others share a cgroup's CPUs again, so that they can be changed.
///
/// # Errors
/// What the system refuses.
pub fn share(folder: &Path) -> io::Result<()> {
    write(folder, "cpuset.cpus.partition", "member")
}

/// The CPUs that a cgroup has now, and whether they are its own.
///
/// # Errors
/// What the system says.
pub fn look(folder: &Path) -> io::Result<(BTreeSet<usize>, Partition)> {
    let text = fs::read_to_string(folder.join("cpuset.cpus.partition"))?;
    Ok((cpus(folder, "cpuset.cpus.effective")?, Partition::parse(&text)))
}

impl Partition {
    /// Such as `root`, or `root invalid (Cpu list in cpuset.cpus not exclusive)`.
    fn parse(text: &str) -> Self {
        match text.trim() {
            "root" | "isolated" => Self::Own,
            "member" => Self::Shared,
            other => {
                let reason = other.split_once('(').and_then(|(_, rest)| rest.strip_suffix(')'));
                Self::Invalid(reason.unwrap_or("the kernel does not say why").to_owned())
            }
        }
    }
}

/// The processes of a cgroup, without those below it. None if it is gone.
pub fn processes(folder: &Path) -> Vec<i32> {
    let text = fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
    // One of another container is 0.
    text.lines().filter_map(|line| line.parse().ok()).filter(|pid| *pid > 0).collect()
}

/// Moves a process, with all its threads, into a cgroup.
///
/// # Errors
/// What the system refuses.
pub fn enter(folder: &Path, pid: i32) -> io::Result<()> {
    write(folder, "cgroup.procs", pid.to_string())
}

fn cpus(folder: &Path, file: &str) -> io::Result<BTreeSet<usize>> {
    let text = fs::read_to_string(folder.join(file))?;
    let list = parse_list(text.trim());
    list.map(|list| list.into_iter().collect())
        .ok_or_else(|| io::Error::new(ErrorKind::InvalidData, format!("{file}: {text:?} is no list of CPUs")))
}

fn impossible(problem: impl Into<String>) -> Error {
    Error::Impossible(problem.into().into())
}

/// What is wrong with a process.
pub fn wrong(pid: i32, problem: impl std::fmt::Display) -> Error {
    Error::Process { pid, problem: problem.to_string() }
}

#[cfg(test)]
mod tests;
