//! The process that holds the scheduler: at most one, with a socket that tells what it does.
//!
//! The kernel lets go of the scheduler when the process that holds it ends, however it ends.

mod client;
mod control;
mod lock;
mod metrics;
mod parts;
mod session;
mod status;

pub use client::{
    ask_bind, ask_decisions, ask_forget, ask_program, ask_programs, ask_service, ask_status, ask_tasks,
    ask_trace, ask_untrace,
};
pub use lock::{Held, Holder, PATIENCE, await_end, holder};
pub use parts::Work;
pub use session::{Off, Session};
pub use status::{CpuStatus, RefusalKind, Status, Tasks, Told};

use crate::ending::Ending;
use crate::{Error, Exit, Scheduler};
use control::Control;
use hearth_host::journal::{self, Journal, Report};
pub use hearth_host::run_folder;
use metrics::Metrics;
use parts::Parts;
use rustix::event::{PollFd, Timespec, poll};
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

/// How often the scheduler is loaded again after waits that the kernel counted and that did not happen, and within
/// which time: as often as systemd starts Hearth again.
const AGAIN: usize = 3;
const AGAIN_WITHIN: Duration = Duration::from_secs(600);

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
    /// An earlier daemon is ending, and is waited for.
    Waits(&'a Holder),
    /// What an earlier daemon had left was undone.
    LeftUndone(&'a Report),
    /// The scheduler is on.
    Started(&'a Status),
    /// The kernel ended the scheduler for nothing that it did; it is loaded again.
    Again(&'a str),
    /// A thread of the cgroup that is scheduled stays with the kernel's own scheduler.
    LeftOut(&'a str),
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
    if !path.try_exists().map_err(Error::file(&path))? && holder(&folder).is_none() {
        return Ok(Report::default());
    }
    let _held = take_lock(&folder, |_| {})?;
    Ok(journal::undo(&state_folder())?)
}

/// Takes the lock; waits for one that is ending, or that has not seen yet that it is.
fn take_lock(folder: &Path, tell: impl FnMut(&Holder)) -> Result<Held, Error> {
    lock::hold_after(folder, 2 * LOOK_INTERVAL, PATIENCE, tell)
}

/// Waits until nobody holds the lock, if who does is ending; else says who does.
pub fn await_turn(tell: impl FnMut(&Holder)) -> Result<(), Error> {
    take_lock(&run_folder(), tell).map(drop)
}

/// Holds the scheduler until `stop` becomes true, the time is up, or the kernel lets go of it.
pub fn run(job: &Job, stop: &AtomicBool, mut tell: impl FnMut(Event<'_>)) -> Result<Ended, Error> {
    let state = state_folder();
    let mut held = take_lock(&run_folder(), |holder| tell(Event::Waits(holder)))?;
    let left = journal::undo(&state)?;
    if !left.is_empty() {
        tell(Event::LeftUndone(&left));
    }
    let ended = hold(job, stop, &mut held, &mut tell);
    let undone = journal::undo(&state)?;
    if !undone.is_empty() {
        tell(Event::Undone(&undone));
    }
    ended
}

fn hold(
    job: &Job,
    stop: &AtomicBool,
    held: &mut Held,
    tell: &mut impl FnMut(Event<'_>),
) -> Result<Ended, Error> {
    let state = state_folder();
    let until = job.duration.map(|duration| Instant::now() + duration);
    let is_over = || stop.load(Ordering::Relaxed) || until.is_some_and(|until| Instant::now() >= until);
    let mut metrics = job.metrics.map(Metrics::listen).transpose()?;
    let journal = Arc::new(Mutex::new(Journal::begin(&state)?));
    let mut parts = Parts::start(&job.work, &journal)?;
    parts.until = until;
    Ending::forget(&state);
    // Whoever reaches the socket finds the scheduler on.
    let control = Control::listen(&run_folder())?;
    // Outside of systemd there is nobody to be told.
    let _ = sd_notify::notify(&[NotifyState::Ready]);
    tell(Event::Started(&status::status(&parts, &job.work)));
    let exit = serve(job, control, metrics.as_mut(), &mut parts, is_over, tell);
    // What follows takes time, and nobody answers any more: who comes now shall know.
    held.end()?;
    Ok(exit?.map_or(Ended::Asked, |exit| Ended::LetGo(Box::new(Ending::look(exit, &state)))))
}

/// Answers until it is over; why, if the kernel let go of the scheduler.
fn serve(
    job: &Job,
    mut control: Control,
    mut metrics: Option<&mut Metrics>,
    parts: &mut Parts,
    is_over: impl Fn() -> bool,
    tell: &mut impl FnMut(Event<'_>),
) -> Result<Option<Exit>, Error> {
    let mut looked = Instant::now();
    let mut again = Vec::new();
    let mut left_out = String::new();
    while !is_over() {
        await_client(&control, metrics.as_deref());
        control.answer(parts, |parts| status::status(parts, &job.work));
        if let Some(endpoint) = &mut metrics {
            endpoint.answer(|| status::metrics(parts, &job.work));
        }
        if let Some(exit) = parts.scheduler.as_ref().and_then(Scheduler::exit) {
            if exit.wants_restart() {
                tell(Event::Again(&exit.message));
            } else if exit.waited.is_some() && may_load_again(&mut again, Instant::now()) {
                tell(Event::Again(&Ending::note(exit, &state_folder()).to_string()));
                parts.false_waits += 1;
            } else {
                return Ok(Some(exit));
            }
            parts.load(&job.work)?;
        }
        if let Some(only) = parts.only.as_mut().filter(|_| looked.elapsed() >= JOIN_INTERVAL) {
            match only.look() {
                Ok(_) => left_out.clear(),
                Err(error) => {
                    let error = error.to_string();
                    if error != left_out {
                        tell(Event::LeftOut(&error));
                    }
                    left_out = error;
                }
            }
            looked = Instant::now();
        }
    }
    Ok(None)
}

/// Whether the scheduler may be loaded again now, after so many times before.
fn may_load_again(before: &mut Vec<Instant>, now: Instant) -> bool {
    before.retain(|time| now.duration_since(*time) < AGAIN_WITHIN);
    let may = before.len() < AGAIN;
    if may {
        before.push(now);
    }
    may
}

/// Waits until a client comes, a signal does, or it is time to look again.
fn await_client(control: &Control, metrics: Option<&Metrics>) {
    let mut ready: Vec<PollFd<'_>> = control.door.awaited().collect();
    ready.extend(metrics.into_iter().flat_map(|metrics| metrics.door.awaited()));
    let left = [control.door.left(), metrics.and_then(|metrics| metrics.door.left()), Some(LOOK_INTERVAL)];
    let left = left.into_iter().flatten().min().unwrap_or(LOOK_INTERVAL);
    let timeout = Timespec { tv_sec: 0, tv_nsec: i64::from(left.subsec_nanos()) };
    // Whoever is ready is found when they are asked.
    let _ = poll(&mut ready, Some(&timeout));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scheduler_is_loaded_again_three_times_in_ten_minutes() {
        let mut before = Vec::new();
        let begin = Instant::now();
        let mut may = |minute: u64| may_load_again(&mut before, begin + Duration::from_secs(60 * minute));
        assert_eq!([0, 1, 2, 3, 9].map(&mut may), [true, true, true, false, false]);
        assert_eq!([10, 10, 11, 12, 13].map(may), [true, false, true, true, false]);
    }
}
