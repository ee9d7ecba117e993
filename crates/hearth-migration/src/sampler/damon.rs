//! Samples by DAMON: each process that is watched has a `kdamond` of its own.

use super::{Backend, Lost, Sampler, Seen};
use hearth_host::damon::{Claim, List, Region, SLOTS};
use hearth_host::journal::{Change, Journal};
use hearth_host::task;
use std::io;
use std::sync::{Arc, Mutex};

pub(super) struct Damon {
    list: List,
    journal: Arc<Mutex<Journal>>,
    claim: Option<Claim>,
    /// Whom each entry watches.
    watched: [Option<i32>; SLOTS],
}

impl Damon {
    pub(super) fn new(journal: Arc<Mutex<Journal>>) -> Self {
        Self { list: List::here(), journal, claim: None, watched: [None; SLOTS] }
    }

    /// Takes the list when it is needed first, and sees to it that it is still Hearth's.
    fn hold(&mut self) -> Result<(), Lost> {
        match self.claim {
            Some(claim) if self.list.is_ours(claim) => Ok(()),
            Some(_) => {
                self.watched = [None; SLOTS];
                Err(Lost::Backend("somebody else uses DAMON now".into()))
            }
            None => {
                let claim = Claim::OURS;
                let mut journal = self.journal.lock().map_err(|_| Lost::Backend("the journal".into()))?;
                let refused = journal.make(vec![Change::Damon { claim }]);
                match refused.map_err(|error| Lost::Backend(error.to_string()))?.first() {
                    Some((_, error)) => Err(Lost::Backend(format!("DAMON cannot be set up: {error}"))),
                    None => {
                        self.claim = Some(claim);
                        Ok(())
                    }
                }
            }
        }
    }

    fn slot(&self, pid: i32) -> Option<usize> {
        self.watched.iter().position(|watched| *watched == Some(pid))
    }

    /// What an error means: the process may have ended meanwhile.
    fn lost(pid: i32, error: &io::Error) -> Lost {
        if !task::exists(pid) {
            return Lost::Gone;
        }
        Lost::Backend(format!("DAMON: {error}"))
    }
}

impl Sampler for Damon {
    fn backend(&self) -> Backend {
        Backend::Damon
    }

    fn most(&self) -> usize {
        SLOTS
    }

    fn watch(&mut self, pid: i32, areas: &[(u64, u64)]) -> Result<(), Lost> {
        self.hold()?;
        let free = || self.watched.iter().position(Option::is_none);
        let Some(slot) = self.slot(pid).or_else(free) else {
            return Err(Lost::Backend("more processes than kdamonds".into()));
        };
        self.watched[slot] = Some(pid);
        let started = self.list.start(slot, pid, areas).map_err(|error| Self::lost(pid, &error));
        if started.is_err() {
            self.release(pid);
        }
        started
    }

    fn read(&mut self, pid: i32) -> Result<Vec<Seen>, Lost> {
        self.hold()?;
        let slot = self.slot(pid).ok_or(Lost::Gone)?;
        if !self.list.is_on(slot) {
            return Err(Lost::Gone);
        }
        let regions = self.list.read(slot).map_err(|error| Self::lost(pid, &error))?;
        let seen = |Region { start, end, per_second }| Seen { start, end, per_second };
        Ok(regions.into_iter().map(seen).collect())
    }

    fn release(&mut self, pid: i32) {
        let Some(slot) = self.slot(pid) else { return };
        self.watched[slot] = None;
        if self.claim.is_some_and(|claim| self.list.is_ours(claim)) {
            // What cannot be stopped here ends with its process, or when the journal is undone.
            let _ = self.list.stop(slot);
        }
    }
}
