//! Who says the numbers: the daemon, for all users; without one, one `hearth exec` of each user.

use crate::observe::{Following, Observer};
use crate::pages::{Folder, Found, all_folders};
use crate::reason::numbers;
use crate::steady::Steady;
use hearth_hints::page::Why;
use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};
use rustix::time::{ClockId, clock_gettime};
use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often numbers are made.
pub const STEP: Duration = Duration::from_millis(100);
/// A caller that comes a little early is not sent away.
const EARLY: Duration = Duration::from_millis(10);
/// How often a number that stays is said again, and how often it is looked who leads.
const RENEW: Duration = Duration::from_secs(1);

/// Steps that a newcomer calls for are no closer than this.
const HASTE: Duration = Duration::from_millis(10);

/// The daemon's lock, beside its others.
fn daemon_lock() -> PathBuf {
    hearth_host::run_folder().join("leader")
}

/// Says numbers as long as no other does.
#[derive(Debug)]
pub struct Leader {
    scope: Scope,
    lock: Option<OwnedFd>,
    leads: bool,
    elected_at: Option<Instant>,
    stepped_at: Option<Instant>,
    observer: Observer,
    steady: Steady,
    said: HashMap<i32, Said>,
}

/// Whose pages are written.
#[derive(Debug)]
enum Scope {
    /// Those of one folder.
    One { folder: Option<Arc<Folder>>, daemon: PathBuf },
    /// Those of all users.
    All,
}

/// What a process was told last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Said {
    cpus: u32,
    why: Why,
    milli: u32,
    at: Instant,
}

impl Leader {
    /// One of many candidates: those who wait for a program in `hearth exec`. Without this folder, or if
    /// it is not this user's alone, it never leads.
    pub fn new(folder: &Path) -> Self {
        Self::under(folder, daemon_lock())
    }

    /// The daemon's.
    ///
    /// # Errors
    /// If its lock cannot be made.
    pub fn for_all() -> Result<Self, hearth_host::Error> {
        let path = daemon_lock();
        // Whoever runs a program looks whether it is held.
        let mode = Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::ROTH;
        let lock = open(&path, OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC, mode)
            .map_err(|error| hearth_host::Error::file(&path)(error.into()))?;
        Ok(Self::with(Scope::All, Some(lock)))
    }

    /// The same where the daemon has this lock.
    pub fn under(folder: &Path, daemon: PathBuf) -> Self {
        let folder = Folder::open(folder).map(Arc::new);
        let lock = folder.as_ref().and_then(|folder| folder.lock_file("leader"));
        Self::with(Scope::One { folder, daemon }, lock)
    }

    fn with(scope: Scope, lock: Option<OwnedFd>) -> Self {
        Self {
            scope,
            lock,
            leads: false,
            elected_at: None,
            stepped_at: None,
            observer: Observer::new(),
            steady: Steady::default(),
            said: HashMap::new(),
        }
    }

    /// Tells all followers their numbers, if it is time and nobody else does. To be called every
    /// [`STEP`] or more often.
    pub fn step(&mut self, now: Instant) {
        if self.stepped_at.is_some_and(|at| now < at + STEP - EARLY) || !self.is_elected(now) {
            return;
        }
        self.stepped_at = Some(now);
        let found = self.scope.found();
        let following: Vec<Following> = found.iter().map(|(_, found)| found.following()).collect();
        self.said.retain(|pid, _| found.iter().any(|(_, found)| found.pid == *pid));
        if found.is_empty() {
            return;
        }
        let numbers = numbers(self.observer.look(now, &following), &mut self.steady);
        for ((folder, found), (number, limits)) in found.into_iter().zip(numbers) {
            let milli = (number.share * 1000.0).round() as u32;
            let said = Said { cpus: number.cpus, why: limits.why(&number), milli, at: now };
            if self.said.get(&found.pid).is_none_or(|before| before.differs(&said))
                && folder.tell(found.pid, said.cpus, said.why, said.milli, now_ns())
            {
                self.said.insert(found.pid, said);
            }
        }
    }

    /// A program has come or gone, or who led has: the next step is not to wait.
    pub fn hasten(&mut self, now: Instant) {
        if self.stepped_at.is_some_and(|at| now >= at + HASTE) {
            self.stepped_at = None;
        }
        if !self.leads {
            self.elected_at = None;
        }
    }

    /// Whether this one leads, as of the last step.
    pub fn leads(&self) -> bool {
        self.leads
    }

    /// How many programs it tells a number.
    pub fn followers(&self) -> usize {
        self.said.len()
    }

    /// How it looks at the machine.
    pub fn observer(&self) -> &Observer {
        &self.observer
    }

    /// Whether this one leads, as of a second ago at most.
    fn is_elected(&mut self, now: Instant) -> bool {
        if self.elected_at.is_none_or(|at| now >= at + RENEW) {
            self.elected_at = Some(now);
            self.leads = !self.scope.is_led_by_daemon() && self.lock.as_ref().is_some_and(takes);
        }
        self.leads
    }
}

/// Whether this process has the lock, or gets it.
fn takes(lock: &OwnedFd) -> bool {
    flock(lock, FlockOperation::NonBlockingLockExclusive).is_ok()
}

impl Scope {
    /// Whether the daemon's lock is held.
    fn is_led_by_daemon(&self) -> bool {
        let Self::One { daemon, .. } = self else { return false };
        let lock = open(daemon, OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK, Mode::empty());
        lock.is_ok_and(|lock| flock(&lock, FlockOperation::NonBlockingLockShared).is_err())
    }

    /// The pages of processes that follow, with the folder of each.
    fn found(&self) -> Vec<(Arc<Folder>, Found)> {
        let folders = match self {
            Self::One { folder, .. } => folder.iter().cloned().collect(),
            Self::All => all_folders().into_iter().map(Arc::new).collect::<Vec<_>>(),
        };
        let pages = folders
            .iter()
            .flat_map(|folder| folder.pages().into_iter().map(|found| (Arc::clone(folder), found)));
        pages.filter(|(_, found)| found.page.state == 0).collect()
    }
}

impl Said {
    /// Whether it is to be said again: it is another, or the last word grows old. Thousandths alone are
    /// no reason.
    fn differs(&self, other: &Self) -> bool {
        (self.cpus, self.why) != (other.cpus, other.why) || other.at >= self.at + RENEW
    }
}

/// `CLOCK_MONOTONIC`, which all processes share.
pub(crate) fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}
