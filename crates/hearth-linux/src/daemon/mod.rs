//! The process that holds the scheduler: at most one, with a socket that tells what it does.
//!
//! The kernel lets go of the scheduler when the process that holds it ends, however it ends.

mod control;
mod lock;
mod metrics;
mod parts;
mod session;

pub use control::{
    Status, Tasks, Told, ask_decisions, ask_pages, ask_status, ask_tasks, ask_trace, ask_untrace,
};
pub use lock::{Held, holder};
pub use parts::Work;
pub use session::{Off, Session};

use crate::ending::Ending;
use crate::journal::{self, Journal, Report};
use crate::{Error, Scheduler};
use parts::Parts;
use sd_notify::NotifyState;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
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
    /// What is to be in force.
    pub work: Work,
    /// Where Prometheus may ask for metrics.
    pub metrics: Option<SocketAddr>,
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
    let work = &job.work;
    let mut parts = Parts::start(work, &journal)?;
    Ending::forget(state);
    // Whoever reaches the socket finds the scheduler on.
    let mut control = control::Control::listen(folder)?;
    // Outside of systemd there is nobody to be told.
    let _ = sd_notify::notify(&[NotifyState::Ready]);
    tell(Event::Started(&control::status(&parts, work)));
    let mut looked = Instant::now();
    loop {
        control.serve(LOOK_INTERVAL, metrics.as_ref(), &mut parts, |parts| control::status(parts, work));
        if let Some(exit) = parts.scheduler.as_ref().and_then(Scheduler::exit) {
            if !exit.wants_restart() {
                return Ok(Ended::LetGo(Box::new(Ending::look(exit, state))));
            }
            tell(Event::Again(&exit.message));
            parts.load(work)?;
        }
        if is_over() {
            return Ok(Ended::Asked);
        }
        if let Some(only) = parts.only.as_mut().filter(|_| looked.elapsed() >= JOIN_INTERVAL) {
            only.look()?;
            looked = Instant::now();
        }
    }
}
