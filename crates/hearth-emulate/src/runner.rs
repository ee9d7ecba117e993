//! Several emulated machines side by side.

use crate::{EmulateError, Emulation, Run, Scheduler};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// A guest to be booted, and what it runs, one after the other.
#[derive(Clone, Debug)]
pub struct Job {
    /// At least one.
    pub turns: Vec<Turn>,
    /// What varies between guests.
    pub seed: u64,
}

/// The command under a scheduler.
#[derive(Clone, Debug, PartialEq)]
pub struct Turn {
    /// Who schedules.
    pub scheduler: Scheduler,
    /// From 1; 0 of a turn that only prepares the guest. All turns of a round begin alike: the same start order, the
    /// same order of page frames.
    pub round: u32,
}

impl Job {
    /// A guest for one turn.
    pub fn one(scheduler: Scheduler, seed: u64) -> Self {
        Self { turns: vec![Turn { scheduler, round: 1 }], seed }
    }
}

/// What came of a guest: of each of its turns, or why there is none.
pub type Outcome = Result<Vec<Result<Run, EmulateError>>, EmulateError>;

/// Is told how far the runs are.
pub trait Progress: Sync {
    /// A run begins.
    fn began(&self, job: &Job);
    /// It has ended; so many of all are done.
    fn ended(&self, job: &Job, done: usize, all: usize);
}

/// Runs all guests, `threads` at a time, and returns what came of them in their order. When `stop` becomes true,
/// those under way are ended, and no other begins: those are errors that say so.
pub fn run_all(
    emulation: &Emulation,
    jobs: &[Job],
    threads: usize,
    stop: &AtomicBool,
    progress: &dyn Progress,
) -> Vec<Outcome> {
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let results: Vec<Mutex<Option<Outcome>>> = jobs.iter().map(|_| Mutex::new(None)).collect();
    let work = || {
        while !stop.load(Ordering::Relaxed) {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(job) = jobs.get(index) else { break };
            progress.began(job);
            let result = emulation.run(job, stop);
            *results[index].lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
            progress.ended(job, done.fetch_add(1, Ordering::Relaxed) + 1, jobs.len());
        }
    };
    thread::scope(|scope| {
        for _ in 0..threads.min(jobs.len()) {
            scope.spawn(work);
        }
    });
    let result = |slot: Mutex<Option<_>>| slot.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.into_iter().map(|slot| result(slot).unwrap_or(Err(EmulateError::Stopped))).collect()
}
