//! The process that holds the scheduler: at most one, with a socket that tells what it does.
//!
//! The kernel lets go of the scheduler when the process that holds it ends, however it ends.

mod control;
mod lock;
mod metrics;
mod session;

pub use control::{
    Status, Tasks, Told, ask_decisions, ask_pages, ask_status, ask_tasks, ask_trace, ask_untrace,
};
pub use lock::{Held, holder};
pub use session::Session;

use crate::ending::Ending;
use crate::journal::{self, Change, Journal, Report};
use crate::only::Only;
use crate::pages::{self, Follower, Nodes};
use crate::{Error, Options, Scheduler};
use hearth_machine::host;
use hearth_policy::Policy;
use hearth_policy::pages::PagePolicy;
use procfs::process::{MMPermissions, MMapPath};
use sd_notify::NotifyState;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How often the daemon looks whether the kernel has let go of the scheduler.
const LOOK_INTERVAL: Duration = Duration::from_millis(200);

/// How often the daemon looks for tasks that joined the cgroup of `--only`.
const JOIN_INTERVAL: Duration = Duration::from_secs(1);

/// Where the lock, the socket and the log are.
pub fn run_folder() -> PathBuf {
    std::env::var_os("HEARTH_RUN").map_or_else(|| "/run/hearth".into(), PathBuf::from)
}

/// Where what must outlive the daemon is: the journal, dumps, the last ending.
pub fn state_folder() -> PathBuf {
    std::env::var_os("HEARTH_STATE").map_or_else(|| "/var/lib/hearth".into(), PathBuf::from)
}

/// What a daemon is to do.
#[derive(Debug)]
pub struct Job {
    /// The scheduler's policy; nothing if the kernel's own scheduler is to stay.
    pub policy: Option<Policy>,
    /// When pages move; nothing if they are left alone.
    pub pages: Option<PagePolicy>,
    /// The folder of the cgroup whose tasks alone are to be Hearth's.
    pub only: Option<PathBuf>,
    /// Where Prometheus may ask for metrics.
    pub metrics: Option<SocketAddr>,
    /// For tests: see [`Options::stalls`].
    pub stalls: bool,
    /// When to stop without being asked.
    pub duration: Option<Duration>,
}

/// What a daemon tells while it runs.
#[derive(Debug)]
pub enum Event<'a> {
    /// What an earlier daemon had left was undone.
    LeftUndone(&'a Report),
    /// The scheduler is on.
    Started(&'a Status),
    /// The set of CPUs changed; the scheduler is loaded again.
    Again(&'a str),
    /// What this daemon changed was undone.
    Undone(&'a Report),
}

/// How a daemon ended.
#[derive(Debug)]
pub enum Ended {
    /// It was asked to, or its time was up.
    Asked,
    /// The kernel let go of the scheduler.
    LetGo(Box<Ending>),
}

/// Undoes what a daemon that is no more has left; refuses while one runs.
pub fn undo() -> Result<Report, Error> {
    let folder = run_folder();
    let path = state_folder().join(journal::NAME);
    if !path.try_exists().map_err(Error::file(&path))? {
        return match holder(&folder) {
            Some(pid) => Err(Error::Running { pid: Some(pid) }),
            None => Ok(Report::default()),
        };
    }
    let _held = lock::hold(&folder)?;
    journal::undo(&state_folder())
}

/// Holds the scheduler until `stop` becomes true, the time is up, or the kernel lets go of it.
pub fn run(job: &Job, stop: &AtomicBool, mut tell: impl FnMut(Event<'_>)) -> Result<Ended, Error> {
    let folder = run_folder();
    let state = state_folder();
    let _held = lock::hold(&folder)?;
    let left = journal::undo(&state)?;
    if !left.is_empty() {
        tell(Event::LeftUndone(&left));
    }
    let ended = hold(job, stop, &folder, &state, &mut tell);
    let undone = journal::undo(&state)?;
    if !undone.is_empty() {
        tell(Event::Undone(&undone));
    }
    ended
}

fn hold(
    job: &Job,
    stop: &AtomicBool,
    folder: &Path,
    state: &Path,
    tell: &mut impl FnMut(Event<'_>),
) -> Result<Ended, Error> {
    let until = job.duration.map(|duration| Instant::now() + duration);
    let is_over = || stop.load(Ordering::Relaxed) || until.is_some_and(|until| Instant::now() >= until);
    let metrics = job.metrics.map(metrics::Metrics::listen).transpose()?;
    let journal = Arc::new(Mutex::new(Journal::begin(state)?));
    let mut parts = Parts::start(job)?;
    let mut only = None;
    if let (Some(cgroup), Some(_)) = (&job.only, &parts.scheduler) {
        only = Some(Only::begin(cgroup, Arc::clone(&journal))?);
    }
    parts.follow(job, &journal)?;
    Ending::forget(state);
    // Whoever reaches the socket finds the scheduler on.
    let mut control = control::Control::listen(folder)?;
    // Outside of systemd there is nobody to be told.
    let _ = sd_notify::notify(&[NotifyState::Ready]);
    tell(Event::Started(&control::status(&parts, job)));
    let mut looked = Instant::now();
    loop {
        control.serve(LOOK_INTERVAL, metrics.as_ref(), &mut parts, |parts| control::status(parts, job));
        if let Some(exit) = parts.scheduler.as_ref().and_then(Scheduler::exit) {
            if !exit.wants_restart() {
                return Ok(Ended::LetGo(Box::new(Ending::look(exit, state))));
            }
            tell(Event::Again(&exit.message));
            parts.restart(job)?;
        }
        if is_over() {
            return Ok(Ended::Asked);
        }
        if let Some(only) = only.as_mut().filter(|_| looked.elapsed() >= JOIN_INTERVAL) {
            only.look()?;
            looked = Instant::now();
        }
    }
}

/// What a daemon holds: one of these at least.
struct Parts {
    scheduler: Option<Scheduler>,
    follower: Option<Follower>,
    since: Instant,
}

impl Parts {
    fn start(job: &Job) -> Result<Self, Error> {
        let mut parts = Self { scheduler: None, follower: None, since: Instant::now() };
        parts.restart(job)?;
        Ok(parts)
    }

    /// Loads the scheduler, if there is to be one.
    fn restart(&mut self, job: &Job) -> Result<(), Error> {
        let Some(policy) = &job.policy else { return Ok(()) };
        // The old one goes first: there is room for one.
        self.scheduler = None;
        let host = host::read(Path::new("/"))?;
        let options = Options { partial: job.only.is_some(), stalls: job.stalls };
        self.scheduler = Some(Scheduler::start(policy, &host, options)?);
        give_memory_back();
        self.since = Instant::now();
        Ok(())
    }

    /// Has pages follow their processes. Without a scheduler of Hearth's, NUMA balancing would do the
    /// same beside it, so that is switched off.
    fn follow(&mut self, job: &Job, journal: &Arc<Mutex<Journal>>) -> Result<(), Error> {
        let Some(policy) = &job.pages else { return Ok(()) };
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
        let options = pages::Options { policy: policy.clone(), only: job.only.clone() };
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
