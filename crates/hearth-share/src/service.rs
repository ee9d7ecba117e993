//! The leader as a service of the daemon: it tells the programs of all users.
//!
//! Where the scheduler is planned for, who uses CPUs and waits for them comes from the planner's snapshots;
//! where not, or where the scheduler has some tasks only, from `/proc`, as with any leader.

use crate::leader::Leader;
use hearth_host::Error;
use hearth_host::service::{Metric, Running, Service, Setting};
use rustix::event::{EventfdFlags, eventfd};
use serde_json::{Value, json};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Instant;

/// The service's word in the daemon's status.
pub const NAME: &str = "followers";

/// Programs are to be told how many CPUs they can get.
#[derive(Clone, Copy, Debug)]
pub struct TellPrograms;

impl Service for TellPrograms {
    fn name(&self) -> &'static str {
        NAME
    }

    fn start(&self, setting: &Setting) -> Result<Option<Box<dyn Running>>, Error> {
        let leader = Leader::for_all(setting.times.clone())?;
        let ends = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|error| Error::Impossible(error.into()))?;
        let state = Arc::new(State { ends, told: Mutex::default() });
        let shared = Arc::clone(&state);
        let thread = thread::Builder::new().name("followers".into()).spawn(move || lead(leader, &shared));
        let thread = thread.map_err(|error| Error::Impossible(error.into()))?;
        Ok(Some(Box::new(Telling { state, thread: Some(thread) })))
    }
}

/// What the thread shares with the daemon.
#[derive(Debug)]
struct State {
    /// Readable when the thread is to end.
    ends: OwnedFd,
    told: Mutex<Told>,
}

/// What the last step led to.
#[derive(Clone, Copy, Debug, Default)]
struct Told {
    followers: usize,
    others_use: f64,
    uses_snapshots: bool,
}

fn lead(mut leader: Leader, state: &State) {
    while rustix::io::read(&state.ends, &mut [0; 8]).is_err() {
        leader.step(Instant::now());
        let observer = leader.observer();
        let told = Told {
            followers: leader.followers(),
            others_use: observer.others_use(),
            uses_snapshots: observer.is_told(),
        };
        *state.told.lock().unwrap_or_else(PoisonError::into_inner) = told;
        leader.wait(state.ends.as_fd());
    }
}

struct Telling {
    state: Arc<State>,
    thread: Option<JoinHandle<()>>,
}

impl Telling {
    fn told(&self) -> Told {
        *self.state.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Running for Telling {
    fn status(&self) -> Value {
        let Told { followers, others_use, uses_snapshots } = self.told();
        json!({ "told": followers, "others_use_cpus": others_use, "uses_snapshots": uses_snapshots })
    }

    fn process(&self, _: i32) -> Value {
        Value::Null
    }

    fn metrics(&self) -> Vec<Metric> {
        let help = "Programs that are told how many CPUs they can get";
        vec![Metric::gauge("followers", help, self.told().followers as u64)]
    }

    fn finish(self: Box<Self>) -> Value {
        self.status()
    }
}

impl Drop for Telling {
    fn drop(&mut self) {
        let _ = rustix::io::write(&self.state.ends, &1_u64.to_ne_bytes());
        if let Some(thread) = self.thread.take() {
            // A step that panicked has said so.
            let _ = thread.join();
        }
    }
}
