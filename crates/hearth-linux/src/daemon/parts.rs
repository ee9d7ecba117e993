//! What a daemon holds: the scheduler, the thread that moves pages, or both.

use crate::journal::{Change, Journal};
use crate::only::Only;
use crate::pages::{self, Follower, Nodes};
use crate::{Error, Options, Scheduler};
use hearth_machine::host;
use hearth_policy::Policy;
use hearth_policy::pages::PagePolicy;
use procfs::process::{MMPermissions, MMapPath};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// What is to be in force.
#[derive(Debug, Default)]
pub struct Work {
    /// The scheduler's policy; nothing if the kernel's own scheduler is to stay.
    pub policy: Option<Policy>,
    /// When pages move; nothing if they are left alone.
    pub pages: Option<PagePolicy>,
    /// The folder of the cgroup whose tasks alone are to be Hearth's.
    pub only: Option<PathBuf>,
    /// Only pages of processes that this one has started, and of theirs, are to move.
    pub pages_of_children: bool,
    /// For tests: see [`Options::stalls`].
    pub stalls: bool,
}

/// What a daemon holds: a scheduler or a follower at least.
pub(super) struct Parts {
    pub(super) scheduler: Option<Scheduler>,
    pub(super) only: Option<Only>,
    pub(super) follower: Option<Follower>,
    pub(super) since: Instant,
}

impl Parts {
    /// Has all of it in force; what is changed on the host goes to the journal, and stays changed after
    /// an error.
    pub(super) fn start(work: &Work, journal: &Arc<Mutex<Journal>>) -> Result<Self, Error> {
        let mut parts = Self { scheduler: None, only: None, follower: None, since: Instant::now() };
        parts.load(work)?;
        if let (Some(cgroup), Some(_)) = (&work.only, &parts.scheduler) {
            parts.only = Some(Only::begin(cgroup, Arc::clone(journal))?);
        }
        parts.follow(work, journal)?;
        Ok(parts)
    }

    /// Loads the scheduler, again if there is one.
    pub(super) fn load(&mut self, work: &Work) -> Result<(), Error> {
        let Some(policy) = &work.policy else { return Ok(()) };
        // The old one goes first: there is room for one.
        self.scheduler = None;
        let host = host::read(Path::new("/"))?;
        let options = Options { partial: work.only.is_some(), stalls: work.stalls };
        self.scheduler = Some(Scheduler::start(policy, &host, options)?);
        give_memory_back();
        self.since = Instant::now();
        Ok(())
    }

    /// Has pages follow their processes. Without a scheduler of Hearth's, NUMA balancing would do the
    /// same beside it, so that is switched off.
    fn follow(&mut self, work: &Work, journal: &Arc<Mutex<Journal>>) -> Result<(), Error> {
        let Some(policy) = &work.pages else { return Ok(()) };
        if !Nodes::read(Path::new("/"))?.differ() {
            return if self.scheduler.is_some() { Ok(()) } else { Err(Error::OneNode) };
        }
        if self.scheduler.is_none() && policy.moves_pages() {
            let mut journal = journal.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some((_, error)) =
                journal.make(Change::numa_balancing_off().into_iter().collect())?.first()
            {
                return Err(Error::file("/proc/sys/kernel/numa_balancing")((*error).into()));
            }
        }
        let options = pages::Options {
            policy: policy.clone(),
            only: work.only.clone(),
            of_children: work.pages_of_children,
        };
        self.follower = Some(Follower::start(options, Arc::clone(journal))?);
        Ok(())
    }
}

/// Loading parses all of the kernel's types, and runs code that nothing needs afterwards; what that
/// took is given back to the system.
fn give_memory_back() {
    unsafe extern "C" {
        fn malloc_trim(pad: usize) -> i32;
    }
    // SAFETY: takes a number, returns one, and touches only free memory.
    unsafe {
        malloc_trim(0);
    }
    let maps = procfs::process::Process::myself().and_then(|own| own.maps());
    for map in maps.into_iter().flatten() {
        let is_code = map.perms.contains(MMPermissions::EXECUTE) && !map.perms.contains(MMPermissions::WRITE);
        if let (true, MMapPath::Path(_), (start, end)) = (is_code, &map.pathname, map.address) {
            // SAFETY: pages of a file that are never written to; they come back from it when they are run.
            unsafe {
                libc::madvise(start as *mut libc::c_void, (end - start) as usize, libc::MADV_DONTNEED);
            }
        }
    }
}
