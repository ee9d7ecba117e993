//! What a daemon holds: the scheduler, services beside it, or both.

use crate::only::Only;
use crate::{Error, Options, Scheduler};
use hearth_host::journal::Journal;
use hearth_host::service::{Running, Service, Setting};
use hearth_machine::host;
use hearth_policy::Policy;
use procfs::process::{MMPermissions, MMapPath};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// What is to be in force.
#[derive(Debug, Default)]
pub struct Work {
    /// The scheduler's policy; nothing if the kernel's own scheduler is to stay.
    pub policy: Option<Policy>,
    /// What is to work beside the scheduler, or without one.
    pub services: Vec<Box<dyn Service>>,
    /// The folder of the cgroup whose tasks alone are to be Hearth's.
    pub only: Option<PathBuf>,
    /// For tests: see [`Options::stalls`].
    pub stalls: bool,
}

/// What a daemon holds: a scheduler or a service at least.
pub(super) struct Parts {
    pub(super) scheduler: Option<Scheduler>,
    pub(super) only: Option<Only>,
    /// By name.
    pub(super) services: BTreeMap<&'static str, Box<dyn Running>>,
    pub(super) since: Instant,
}

impl Parts {
    /// Has all of it in force; what is changed on the host goes to the journal, and stays changed after
    /// an error.
    pub(super) fn start(work: &Work, journal: &Arc<Mutex<Journal>>) -> Result<Self, Error> {
        let mut parts =
            Self { scheduler: None, only: None, services: BTreeMap::new(), since: Instant::now() };
        parts.load(work)?;
        if let (Some(cgroup), Some(_)) = (&work.only, &parts.scheduler) {
            parts.only = Some(Only::begin(cgroup, Arc::clone(journal))?);
        }
        let setting = Setting {
            journal: Arc::clone(journal),
            only: work.only.clone(),
            has_scheduler: parts.scheduler.is_some(),
        };
        for service in &work.services {
            parts.services.extend(service.start(&setting)?.map(|running| (service.name(), running)));
        }
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
