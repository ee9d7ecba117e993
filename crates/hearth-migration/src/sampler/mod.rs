//! Which parts of a process's memory are in use: the kernel's accessed bits, by whatever way this
//! kernel shows them.

mod damon;
mod idle;
mod refs;

use hearth_host::journal::Journal;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::sync::{Arc, Mutex};

/// How long the kernel gives an accessed bit to be set again, if Hearth itself asks for it.
const WINDOW: std::time::Duration = std::time::Duration::from_millis(10);

/// Where samples come from, the best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Backend {
    /// The kernel's own monitor of accesses, of virtual addresses.
    Damon,
    /// Idle page tracking: a bit for each page of the machine.
    PageIdle,
    /// The accessed bits of a whole area at a time: `/proc/PID/clear_refs` and `smaps`.
    ClearRefs,
    /// Nothing shows accesses.
    None,
}

impl Backend {
    /// What it is called.
    pub fn text(self) -> &'static str {
        match self {
            Self::Damon => "DAMON",
            Self::PageIdle => "idle page tracking",
            Self::ClearRefs => "clear_refs",
            Self::None => "none",
        }
    }
}

/// What there is, and why not something better.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Available {
    /// The best that can be used.
    pub backend: Backend,
    /// Why the better ones cannot, and what to do.
    pub instead_of: Vec<String>,
}

/// Looks below `root` for what there is.
pub fn available(root: &Path) -> Available {
    let mut instead_of = Vec::new();
    for (backend, refusal) in [
        (Backend::Damon, hearth_host::damon::refusal(root)),
        (Backend::PageIdle, idle::refusal(root)),
        (Backend::ClearRefs, refs::refusal(root)),
    ] {
        match refusal {
            None => return Available { backend, instead_of },
            Some(why) => instead_of.push(why),
        }
    }
    Available { backend: Backend::None, instead_of }
}

/// Consecutive addresses that are used alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The first address.
    pub start: u64,
    /// The address behind the last.
    pub end: u64,
    /// How often a page of it is found used, if looked at all the time: at most once in 10 ms.
    pub per_second: u32,
}

/// Why a process is no longer watched.
#[derive(Debug, PartialEq, Eq)]
pub enum Lost {
    /// It has ended.
    Gone,
    /// The kernel refuses, or somebody else uses the monitor now.
    Backend(String),
}

/// Watches processes.
pub trait Sampler: Send {
    /// What it is.
    fn backend(&self) -> Backend;
    /// How many processes it can watch at a time.
    fn most(&self) -> usize;
    /// Watches areas of a process from now on, in place of those before.
    fn watch(&mut self, pid: i32, areas: &[(u64, u64)]) -> Result<(), Lost>;
    /// What is in use of a process that is watched.
    fn read(&mut self, pid: i32) -> Result<Vec<Seen>, Lost>;
    /// Watches a process no longer.
    fn release(&mut self, pid: i32);
}

/// The best that there is, without `but`; what it changes on the host goes to the journal.
pub(crate) fn best(journal: &Arc<Mutex<Journal>>, but: &[Backend]) -> Option<Box<dyn Sampler>> {
    let root = Path::new("/");
    let may = |backend| !but.contains(&backend);
    if may(Backend::Damon) && hearth_host::damon::refusal(root).is_none() {
        return Some(Box::new(damon::Damon::new(Arc::clone(journal))));
    }
    if may(Backend::PageIdle) && idle::refusal(root).is_none() {
        return Some(Box::new(idle::Idle::new(root)));
    }
    if may(Backend::ClearRefs) && refs::refusal(root).is_none() {
        return Some(Box::new(refs::Refs::new()));
    }
    None
}

/// What an error of a process's file means.
fn lost(pid: i32, error: &std::io::Error) -> Lost {
    match error.raw_os_error() {
        Some(libc::ESRCH | libc::ENOENT) => Lost::Gone,
        _ => Lost::Backend(format!("process {pid}: {error}")),
    }
}
