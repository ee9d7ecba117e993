//! Hearth switched on and off by one process, as a trial does.

use super::parts::{Parts, Work};
use super::{Held, run_folder, state_folder, take_lock};
use crate::Error;
use crate::ending::Ending;
use hearth_host::journal::{self, Journal, Report};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

/// The right to switch Hearth on and off, which nobody else has meanwhile. Dropping it switches it off.
pub struct Session {
    work: Work,
    state: PathBuf,
    on: Option<Parts>,
    _held: Held,
}

/// What is to be known when Hearth has been switched off.
#[derive(Debug, Default)]
pub struct Off {
    /// What each service did since it was switched on, by its name.
    pub services: BTreeMap<&'static str, Value>,
    /// What was changed on the host meanwhile, and is as before.
    pub undone: Report,
}

impl Session {
    /// Takes the lock, and undoes what an earlier daemon has left.
    pub fn begin(work: Work) -> Result<Self, Error> {
        let held = take_lock(&run_folder(), |_| {})?;
        let state = state_folder();
        journal::undo(&state)?;
        Ok(Self { work, state, on: None, _held: held })
    }

    /// Has the scheduler schedule and pages follow, as far as they are to.
    pub fn on(&mut self) -> Result<(), Error> {
        if self.on.is_some() {
            return Ok(());
        }
        let journal = Arc::new(Mutex::new(Journal::begin(&self.state)?));
        match Parts::start(&self.work, &journal) {
            Ok(parts) => self.on = Some(parts),
            Err(error) => {
                // What cannot be undone stays in the journal.
                let _ = journal::undo(&self.state);
                return Err(error);
            }
        }
        Ok(())
    }

    /// Gives the machine back to the kernel's own scheduler, with NUMA balancing as it was.
    pub fn off(&mut self) -> Result<Off, Error> {
        let Some(mut parts) = self.on.take() else { return Ok(Off::default()) };
        let services = std::mem::take(&mut parts.services);
        let services = services.into_iter().map(|(name, service)| (name, service.finish())).collect();
        let undone = journal::undo(&self.state)?;
        Ok(Off { services, undone })
    }

    /// Whether a service is at work now.
    pub fn has_at_work(&self, service: &str) -> bool {
        self.on.as_ref().is_some_and(|parts| parts.services.contains_key(service))
    }

    /// Why the kernel let go of the scheduler, if it did.
    pub fn ending(&self) -> Option<Ending> {
        let exit = self.on.as_ref()?.scheduler.as_ref()?.exit()?;
        Some(Ending::look(exit, &self.state))
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // What cannot be undone stays in the journal.
        let _ = self.off();
    }
}
