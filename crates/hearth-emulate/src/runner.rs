//! Several emulated machines side by side.

use crate::{EmulateError, Emulation, Kept, Run, Scheduler};
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// A guest in which the command runs once, or several times one after the other.
#[derive(Clone, Debug)]
pub struct Job {
    /// Who schedules.
    pub scheduler: Scheduler,
    /// What varies between guests: with the round it draws when and in what order copies start, and which page frames
    /// are free.
    pub seed: u64,
    /// The numbers of its rounds: from 1, or from 0 for one that only prepares the guest, and is not counted.
    pub rounds: RangeInclusive<u32>,
    /// All that is drawn is drawn once more.
    pub is_again: bool,
}

impl Job {
    /// A guest for one run.
    pub fn one(scheduler: Scheduler, seed: u64) -> Self {
        Self { scheduler, seed, rounds: 1..=1, is_again: false }
    }

    /// The rounds of which something comes.
    pub fn counted(&self) -> impl Iterator<Item = u32> + use<> {
        self.rounds.clone().filter(|&round| round > 0)
    }
}

/// What came of a guest: of each of its rounds that counts, or why there is none.
pub type Outcome = Result<Vec<Result<Run, EmulateError>>, EmulateError>;

/// Is told how far the runs are.
pub trait Progress: Sync {
    /// A run begins.
    fn began(&self, job: &Job);
    /// It has ended; so many of all are done.
    fn ended(&self, job: &Job, done: usize, all: usize);
}

/// Runs all guests, `threads` at a time, and returns what came of them in their order; those that lie in `kept` are
/// not run. When `stop` becomes true, those under way are ended, and no other begins: those are errors that say so.
pub fn run_all(
    emulation: &Emulation,
    jobs: &[Job],
    threads: usize,
    kept: Option<&Kept>,
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
            let result = emulation.run(job, kept, stop);
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
