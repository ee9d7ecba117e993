//! The leader as a service of the daemon: it tells the programs of all users.
//!
//! It looks at `/proc` as any leader does. The scheduler's own snapshots have tasks of one scheduler
//! only, and none where the kernel's own scheduler stays on.

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

    fn start(&self, _: &Setting) -> Result<Option<Box<dyn Running>>, Error> {
        let leader = Leader::for_all()?;
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
}

fn lead(mut leader: Leader, state: &State) {
    while rustix::io::read(&state.ends, &mut [0; 8]).is_err() {
        leader.step(Instant::now());
        let told = Told { followers: leader.followers(), others_use: leader.observer().others_use() };
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
        let Told { followers, others_use } = self.told();
        json!({ "told": followers, "others_use_cpus": others_use })
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
