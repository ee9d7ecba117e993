//! Several emulated machines side by side.

use crate::{EmulateError, Emulation, Run, Scheduler};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// One run to be made.
#[derive(Clone, Debug)]
pub struct Job {
    /// Who schedules.
    pub scheduler: Scheduler,
    /// What varies between runs of one scheduler.
    pub seed: u64,
}

/// Is told how far the runs are.
pub trait Progress: Sync {
    /// A run begins.
    fn began(&self, job: &Job);
    /// It has ended; so many of all are done.
    fn ended(&self, job: &Job, done: usize, all: usize);
}

/// Makes all runs, `threads` at a time, and returns them in their order. When `stop` becomes true,
/// those under way are ended, and no other begins: those are errors that say so.
pub fn run_all(
    emulation: &Emulation,
    jobs: &[Job],
    threads: usize,
    stop: &AtomicBool,
    progress: &dyn Progress,
) -> Vec<Result<Run, EmulateError>> {
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let results: Vec<Mutex<Option<Result<Run, EmulateError>>>> =
        jobs.iter().map(|_| Mutex::new(None)).collect();
    let work = || {
        while !stop.load(Ordering::Relaxed) {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(job) = jobs.get(index) else { break };
            progress.began(job);
            let result = emulation.run(&job.scheduler, job.seed, stop);
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
