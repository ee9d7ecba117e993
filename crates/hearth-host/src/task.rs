//! Threads of the host: their scheduling class, and what tells one from a later one of the same number.

use crate::Error;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// `SCHED_OTHER`, where tasks begin.
pub const OTHER: u32 = 0;
/// `SCHED_FIFO`.
pub const FIFO: u32 = 1;
/// `SCHED_RR`.
pub const RR: u32 = 2;
/// `SCHED_BATCH`.
pub const BATCH: u32 = 3;
/// `SCHED_IDLE`.
pub const IDLE: u32 = 5;
/// `SCHED_DEADLINE`.
pub const DEADLINE: u32 = 6;
/// `SCHED_EXT`, whose tasks sched_ext serves.
pub const EXT: u32 = 7;

/// Whether tasks of this class share CPUs by their weights, so that sched_ext may serve them.
pub fn is_fair(policy: u32) -> bool {
    matches!(policy, OTHER | BATCH | IDLE | EXT)
}

/// Whether tasks of this class go before all fair ones.
pub fn is_real_time(policy: u32) -> bool {
    matches!(policy, FIFO | RR | DEADLINE)
}

/// The flag that children begin with the default class.
const RESET_ON_FORK: u64 = 1;

/// A thread: its number, and when it began, in ticks since the machine did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Thread {
    /// Its number.
    pub tid: i32,
    /// Field 22 of `/proc/TID/stat`.
    pub start: u64,
}

impl Thread {
    /// The thread that has this number now.
    pub fn now(tid: i32) -> Option<Self> {
        let stat = procfs::process::Process::new(tid).and_then(|process| process.stat()).ok()?;
        Some(Self { tid, start: stat.starttime })
    }

    /// Whether it still runs.
    pub fn is_there(self) -> bool {
        Self::now(self.tid) == Some(self)
    }
}

/// The first 15 bytes of a thread's name, which the first of a process has from its program; empty if there is
/// no such thread.
pub fn name_of(tid: i32) -> String {
    let path = format!("/proc/{tid}/comm");
    std::fs::read_to_string(path).map(|name| name.trim_end().to_owned()).unwrap_or_default()
}

/// A thread's scheduling class and its parameters (`struct sched_attr`, as far as fair classes use it).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Class {
    /// `SCHED_OTHER` and so on.
    pub policy: u32,
    /// Whether children begin with the default class.
    pub reset_on_fork: bool,
    /// -20 to 19.
    pub nice: i32,
    /// A slice that the thread asked for; 0 for the kernel's own.
    pub slice_ns: u64,
}

/// The first 48 bytes, which every kernel with this call knows.
#[repr(C)]
#[derive(Default)]
struct SchedAttr {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
}

const ATTR_BYTES: u32 = size_of::<SchedAttr>() as u32;

impl Class {
    /// The class of a thread; `None` if there is no such thread.
    pub fn of(tid: i32) -> Result<Option<Self>, Errno> {
        let mut class = match raw(tid) {
            Ok(attr) => Self {
                policy: attr.policy,
                reset_on_fork: attr.flags & RESET_ON_FORK != 0,
                nice: attr.nice,
                slice_ns: attr.runtime,
            },
            Err(Errno::SRCH) => return Ok(None),
            Err(error) => return Err(error),
        };
        // The kernel tells the slice in force. Asking for that one later would freeze it.
        if raw(0).is_ok_and(|own| own.runtime == class.slice_ns) {
            class.slice_ns = 0;
        }
        Ok(Some(class))
    }

    /// Puts a thread into this class.
    pub fn set(&self, tid: i32) -> Result<(), Errno> {
        let attr = SchedAttr {
            size: ATTR_BYTES,
            policy: self.policy,
            flags: if self.reset_on_fork { RESET_ON_FORK } else { 0 },
            nice: self.nice,
            runtime: self.slice_ns,
            ..SchedAttr::default()
        };
        // SAFETY: the kernel reads `size` bytes of a structure that lives through the call.
        let result = unsafe { libc::syscall(libc::SYS_sched_setattr, tid, &raw const attr, 0) };
        if result == 0 { Ok(()) } else { Err(last_error()) }
    }
}

fn raw(tid: i32) -> Result<SchedAttr, Errno> {
    let mut attr = SchedAttr::default();
    // SAFETY: the kernel writes at most the size that it is told into a structure of that size.
    let result = unsafe { libc::syscall(libc::SYS_sched_getattr, tid, &raw mut attr, ATTR_BYTES, 0) };
    if result == 0 { Ok(attr) } else { Err(last_error()) }
}

fn last_error() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::INVAL)
}

/// What a class is called.
pub fn class_name(policy: u32) -> String {
    match policy {
        OTHER => "SCHED_OTHER".into(),
        FIFO => "SCHED_FIFO".into(),
        RR => "SCHED_RR".into(),
        BATCH => "SCHED_BATCH".into(),
        IDLE => "SCHED_IDLE".into(),
        DEADLINE => "SCHED_DEADLINE".into(),
        EXT => "SCHED_EXT".into(),
        other => format!("class {other}"),
    }
}

/// Whether there is a process or thread of this number.
pub fn exists(tid: i32) -> bool {
    Path::new(&format!("/proc/{tid}")).exists()
}

/// The processes of the machine.
pub fn processes() -> impl Iterator<Item = i32> {
    numbers("/proc")
}

/// The threads of a process; none if it is not there.
pub fn threads_of(pid: i32) -> impl Iterator<Item = i32> {
    numbers(&format!("/proc/{pid}/task"))
}

/// The entries of a folder that are numbers.
fn numbers(folder: &str) -> impl Iterator<Item = i32> + use<> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Which boot of the machine this is.
pub fn boot_id() -> Result<String, Error> {
    const PATH: &str = "/proc/sys/kernel/random/boot_id";
    std::fs::read_to_string(PATH).map(|text| text.trim().to_owned()).map_err(Error::file(PATH))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_knows_itself_and_its_class() {
        let own = Thread::now(std::process::id() as i32).unwrap();
        assert!(own.is_there());
        assert!(!name_of(own.tid).is_empty());
        assert!(!Thread { start: own.start + 1, ..own }.is_there());
        assert_eq!(Class::of(0).unwrap().unwrap().policy, OTHER);
        assert_eq!(Class::of(0).unwrap().unwrap().slice_ns, 0);
    }

    #[test]
    fn threads_are_listed_by_their_processes() {
        let own = std::process::id() as i32;
        let thread = rustix::thread::gettid().as_raw_nonzero().get();
        assert!(processes().any(|pid| pid == own));
        assert!(thread != own && processes().all(|pid| pid != thread));
        assert!(threads_of(own).any(|tid| tid == own) && threads_of(own).any(|tid| tid == thread));
        assert!(threads_of(1).all(|tid| tid != own));
    }

    #[test]
    fn a_class_is_fair_or_real_time() {
        for policy in [OTHER, FIFO, RR, BATCH, IDLE, DEADLINE, EXT] {
            assert!(is_fair(policy) != is_real_time(policy), "{}", class_name(policy));
        }
        assert!(is_fair(EXT) && is_real_time(RR) && !is_fair(4) && !is_real_time(4));
    }

    #[test]
    fn a_thread_that_is_gone_has_no_class() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        assert_eq!(threads_of(child.id() as i32).count(), 0);
        assert_eq!(Class::of(child.id() as i32).unwrap(), None);
        assert_eq!(Thread::now(child.id() as i32), None);
        assert_eq!(name_of(child.id() as i32), "");
        assert!(!exists(child.id() as i32) && exists(1));
    }
}
