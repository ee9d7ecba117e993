//! The scheduler switched on and off by one process, as a trial does.

use super::{lock, run_folder, state_folder};
use crate::ending::Ending;
use crate::journal::{self, Journal};
use crate::only::Only;
use crate::{Error, Options, Scheduler};
use hearth_machine::host;
use hearth_policy::Policy;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// The right to switch the scheduler, which nobody else has meanwhile. Dropping it switches it off.
pub struct Session {
    policy: Policy,
    only: Option<PathBuf>,
    state: PathBuf,
    on: Option<Scheduler>,
    _held: lock::Held,
}

impl Session {
    /// Takes the lock, and undoes what an earlier daemon has left.
    pub fn begin(policy: Policy, only: Option<PathBuf>) -> Result<Self, Error> {
        let held = lock::hold(&run_folder())?;
        let state = state_folder();
        journal::undo(&state)?;
        Ok(Self { policy, only, state, on: None, _held: held })
    }

    /// Loads the scheduler.
    pub fn on(&mut self) -> Result<(), Error> {
        if self.on.is_some() {
            return Ok(());
        }
        let host = host::read(Path::new("/"))?;
        let options = Options { partial: self.only.is_some(), stalls: false };
        self.on = Some(Scheduler::start(&self.policy, &host, options)?);
        if let Some(cgroup) = &self.only {
            let journal = Arc::new(Mutex::new(Journal::begin(&self.state)?));
            Only::begin(cgroup, journal)?;
        }
        Ok(())
    }

    /// Gives the machine back to the kernel's own scheduler.
    pub fn off(&mut self) -> Result<(), Error> {
        if self.on.is_some() {
            let undone = journal::undo(&self.state);
            self.on = None;
            undone?;
        }
        Ok(())
    }

    /// Why the kernel let go of the scheduler, if it did.
    pub fn ending(&self) -> Option<Ending> {
        let exit = self.on.as_ref()?.exit()?;
        Some(Ending::look(exit, &self.state))
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // What cannot be undone stays in the journal.
        let _ = self.off();
    }
}
