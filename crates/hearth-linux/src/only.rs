//! `start --only`: the tasks of one cgroup are Hearth's, and no others.
//!
//! Threads are put into `SCHED_EXT`; what they fork inherits it. Threads that join the cgroup later
//! are found by looking again. Real-time, deadline and idle threads keep their class: they asked for
//! what a fair scheduler does not give.

use crate::Error;
use hearth_host::cgroup;
use hearth_host::journal::{Change, Journal};
use hearth_host::task::{BATCH, Class, EXT, OTHER, Thread};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Passes at the start over tasks that fork meanwhile.
const PASSES: usize = 5;

/// The cgroup and what was done to it.
#[derive(Debug)]
pub struct Only {
    folder: PathBuf,
    journal: Arc<Mutex<Journal>>,
    /// When each thread that was put into the class began.
    ours: HashMap<i32, u64>,
}

impl Only {
    /// Puts the cgroup's threads into `SCHED_EXT`; the changes go to the journal.
    pub fn begin(folder: &Path, journal: Arc<Mutex<Journal>>) -> Result<Self, Error> {
        let is_ext = |tid: &i32| matches!(Class::of(*tid), Ok(Some(Class { policy: EXT, .. })));
        let others = cgroup::threads(folder).into_iter().filter(is_ext).filter_map(Thread::now).collect();
        let change = Change::Cgroup { folder: folder.to_owned(), others, policy: EXT };
        lock(&journal).make(vec![change])?;
        let mut only = Self { folder: folder.to_owned(), journal, ours: HashMap::new() };
        for _ in 0..PASSES {
            if only.look()? == 0 {
                break;
            }
        }
        Ok(only)
    }

    /// Puts threads that joined since into the class. Returns how many. One that is refused is not tried again.
    pub fn look(&mut self) -> Result<usize, Error> {
        let threads = cgroup::threads(&self.folder);
        let changes: Vec<Change> = threads.iter().filter_map(|&tid| self.change(tid)).collect();
        let refused = lock(&self.journal).make(changes.clone())?;
        self.ours.extend(changes.iter().filter_map(|change| match change {
            Change::Class { thread, .. } => Some((thread.tid, thread.start)),
            _ => None,
        }));
        if let Some((change, error)) = refused.first() {
            let problem = format!("{change} cannot be moved to SCHED_EXT: {error}");
            let name = self.folder.display().to_string();
            return Err(hearth_host::Error::Cgroup { name, problem }.into());
        }
        if self.ours.len() > 2 * threads.len() + 64 {
            self.ours.retain(|&tid, &mut start| Thread { tid, start }.is_there());
        }
        Ok(changes.len())
    }

    /// What is to be done to a thread. One that somebody took out of the class stays out of it.
    fn change(&self, tid: i32) -> Option<Change> {
        let before = Class::of(tid).ok()?.filter(|class| matches!(class.policy, OTHER | BATCH))?;
        let thread = Thread::now(tid)?;
        (self.ours.get(&tid) != Some(&thread.start)).then(|| Change::to_ext(thread, before))
    }
}

fn lock(journal: &Mutex<Journal>) -> MutexGuard<'_, Journal> {
    // A journal is whole between two changes, whoever panicked.
    journal.lock().unwrap_or_else(PoisonError::into_inner)
}
