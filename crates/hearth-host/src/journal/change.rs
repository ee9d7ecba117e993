//! One change on the host: what is needed to undo it, and to see that it is still ours.

use crate::damon::{self, Claim};
use crate::error::errno;
use crate::task::{Class, EXT, OTHER, Thread, class_name, name_of};
use crate::{Outcome, cgroup, cpuset, weight};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::fmt;
use std::path::{Path, PathBuf};

/// Passes over a cgroup whose tasks fork meanwhile.
const PASSES: usize = 20;

/// A change, as the journal has it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "change", rename_all = "snake_case", deny_unknown_fields)]
pub enum Change {
    /// A thread was put into another scheduling class.
    Class {
        /// Which.
        thread: Thread,
        /// What it was in.
        before: Class,
        /// `SCHED_EXT`, but for tests.
        policy: u32,
    },
    /// The threads of a cgroup are put into another scheduling class, and their children inherit it.
    Cgroup {
        /// Its folder.
        folder: PathBuf,
        /// Those that were in the class before, by themselves.
        others: Vec<Thread>,
        /// `SCHED_EXT`, but for tests.
        policy: u32,
    },
    /// Entries of Hearth's own were put into the empty list of DAMON's threads.
    Damon {
        /// Which.
        claim: Claim,
    },
    /// NUMA balancing was switched off.
    NumaBalancing {
        /// Its mode.
        before: u32,
    },
    /// Cpusets were switched on for the cgroups of a hierarchy.
    Cpusets {
        /// The folder of its root.
        root: PathBuf,
    },
    /// A cgroup was made, for processes that were in another.
    NewCgroup {
        /// Its folder.
        folder: PathBuf,
        /// Where its processes were, and are to go back to.
        back: PathBuf,
    },
    /// The weight of a cgroup was scaled.
    Weight {
        /// Which, and what it was and is.
        claim: weight::Claim,
    },
}

/// The file of NUMA balancing's mode.
const NUMA_BALANCING: &str = "/proc/sys/kernel/numa_balancing";

impl Change {
    /// A thread that goes into `SCHED_EXT`.
    pub fn to_ext(thread: Thread, before: Class) -> Self {
        Self::Class { thread, before, policy: EXT }
    }

    /// Whether what it was done to is still there.
    pub fn is_alive(&self) -> bool {
        match self {
            Self::Class { thread, .. } => thread.is_there(),
            Self::NewCgroup { folder, .. } => folder.is_dir(),
            Self::Weight { claim } => claim.is_there(),
            Self::Cgroup { .. } | Self::Damon { .. } | Self::NumaBalancing { .. } | Self::Cpusets { .. } => {
                true
            }
        }
    }

    /// Makes the change. A cgroup's is made by the changes of its threads.
    pub fn make(&self) -> Result<(), Errno> {
        match self {
            Self::Class { thread, before, policy } => Class { policy: *policy, ..*before }.set(thread.tid),
            Self::Cgroup { .. } => Ok(()),
            Self::Damon { claim } => damon::make(*claim),
            Self::NumaBalancing { .. } => set_numa_balancing(0),
            Self::Cpusets { root } => cpuset::switch_on(root),
            Self::NewCgroup { folder, .. } => cpuset::make_group(folder),
            Self::Weight { claim } => claim.make(),
        }
    }

    /// NUMA balancing switched off; nothing if it is off, or not there.
    pub fn numa_balancing_off() -> Option<Self> {
        let before = numa_balancing().filter(|mode| *mode != 0)?;
        Some(Self::NumaBalancing { before })
    }

    /// Takes the change back, if it is still ours.
    pub fn undo(&self) -> Outcome {
        match self {
            Self::Class { thread, before, policy } => undo_class(*thread, before, *policy),
            Self::Cgroup { folder, others, policy } => undo_cgroup(folder, others, *policy),
            Self::Damon { claim } => damon::take_back(*claim),
            Self::NumaBalancing { before } => undo_numa_balancing(*before),
            Self::Cpusets { root } => cpuset::switch_off(root),
            Self::NewCgroup { folder, back } => cpuset::remove_group(folder, back),
            Self::Weight { claim } => claim.undo(),
        }
    }

    /// Whether undoing this one undoes the other, earlier one too.
    pub(super) fn replaces(&self, old: &Self) -> bool {
        match (self, old) {
            (Self::Weight { claim }, Self::Weight { claim: old }) => claim.folder() == old.folder(),
            _ => false,
        }
    }
}

fn numa_balancing() -> Option<u32> {
    std::fs::read_to_string(NUMA_BALANCING).ok()?.trim().parse().ok()
}

fn set_numa_balancing(mode: u32) -> Result<(), Errno> {
    std::fs::write(NUMA_BALANCING, mode.to_string()).map_err(errno)
}

fn undo_numa_balancing(before: u32) -> Outcome {
    match numa_balancing() {
        None => Outcome::Gone,
        Some(now) if now == before => Outcome::Already,
        Some(0) => match set_numa_balancing(before) {
            Ok(()) => Outcome::Undone(1),
            Err(error) => Outcome::Failed(error.to_string()),
        },
        Some(now) => Outcome::Changed(format!("its mode is {now} now")),
    }
}

fn undo_class(thread: Thread, before: &Class, policy: u32) -> Outcome {
    if !thread.is_there() {
        return Outcome::Gone;
    }
    match Class::of(thread.tid) {
        Ok(None) => Outcome::Gone,
        Ok(Some(now)) if now.policy == before.policy => Outcome::Already,
        Ok(Some(now)) if now.policy != policy => {
            Outcome::Changed(format!("it is in {} now", class_name(now.policy)))
        }
        // Somebody may have reniced it meanwhile, which stays.
        Ok(Some(now)) => match (Class { nice: now.nice, ..*before }).set(thread.tid) {
            Ok(()) => Outcome::Undone(1),
            Err(Errno::SRCH) => Outcome::Gone,
            Err(error) => Outcome::Failed(error.to_string()),
        },
        Err(error) => Outcome::Failed(error.to_string()),
    }
}

/// Children have inherited the class: they get the default one, again until none is left.
fn undo_cgroup(folder: &Path, others: &[Thread], policy: u32) -> Outcome {
    if !folder.is_dir() {
        return Outcome::Gone;
    }
    let others: HashSet<Thread> = others.iter().copied().collect();
    let mut undone = 0;
    for _ in 0..PASSES {
        let before = undone;
        for tid in cgroup::threads(folder) {
            let Ok(Some(class)) = Class::of(tid) else { continue };
            if class.policy != policy || Thread::now(tid).is_none_or(|thread| others.contains(&thread)) {
                continue;
            }
            match (Class { policy: OTHER, ..class }).set(tid) {
                Ok(()) => undone += 1,
                Err(Errno::SRCH) => {}
                Err(error) => return Outcome::Failed(format!("task {tid}: {error}")),
            }
        }
        if undone == before {
            break;
        }
    }
    if undone == 0 { Outcome::Already } else { Outcome::Undone(undone) }
}

impl fmt::Display for Change {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Class { thread, before, .. } => {
                let name = if thread.is_there() { name_of(thread.tid) } else { String::new() };
                write!(out, "task {}", thread.tid)?;
                if !name.is_empty() {
                    write!(out, " ({name})")?;
                }
                write!(out, ": back to {}", class_name(before.policy))
            }
            Self::Cgroup { folder, .. } => {
                write!(out, "tasks that inherited SCHED_EXT in {}", folder.display())
            }
            Self::Damon { .. } => write!(out, "DAMON's threads: none again"),
            Self::NumaBalancing { before } => write!(out, "NUMA balancing: back to mode {before}"),
            Self::Cpusets { root } => write!(out, "cpusets in {}: off again", root.display()),
            Self::NewCgroup { folder, back } => {
                write!(out, "{}: removed, its processes back in {}", folder.display(), back.display())
            }
            Self::Weight { claim } => {
                write!(out, "{}: weight back to {}", claim.folder().display(), claim.before())
            }
        }
    }
}
