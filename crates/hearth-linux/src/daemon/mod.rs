//! The process that holds the scheduler: at most one, with a socket that tells what it does.
//!
//! The kernel lets go of the scheduler when the process that holds it ends, however it ends.

mod control;
mod lock;

pub use control::{Status, ask_status};
pub use lock::{Held, holder};

use crate::{Error, Exit, Options, Scheduler};
use hearth_machine::host;
use hearth_policy::Policy;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How often the daemon looks whether the kernel has let go of the scheduler.
const LOOK_INTERVAL: Duration = Duration::from_millis(200);

/// Where the lock, the socket and the log are.
pub fn run_folder() -> PathBuf {
    std::env::var_os("HEARTH_RUN").map_or_else(|| "/run/hearth".into(), PathBuf::from)
}

/// What a daemon is to do.
#[derive(Debug)]
pub struct Job {
    /// The policy.
    pub policy: Policy,
    /// How to load the scheduler.
    pub options: Options,
    /// When to stop without being asked.
    pub duration: Option<Duration>,
}

/// How a daemon ended.
#[derive(Debug)]
pub enum Ended {
    /// It was asked to, or its time was up.
    Asked,
    /// The kernel let go of the scheduler.
    LetGo(Box<Exit>),
}

/// Holds the scheduler until `stop` becomes true, the time is up, or the kernel lets go of it.
/// `started` is called once, when the scheduler is on.
pub fn run(job: &Job, stop: &AtomicBool, mut started: impl FnMut(&Status)) -> Result<Ended, Error> {
    let folder = run_folder();
    let _held = lock::hold(&folder)?;
    let until = job.duration.map(|duration| Instant::now() + duration);
    let mut control = None;
    loop {
        let host = host::read(Path::new("/"))?;
        let scheduler = Scheduler::start(&job.policy, &host, job.options)?;
        give_memory_back();
        let since = Instant::now();
        // Whoever reaches the socket finds the scheduler on.
        let listener = match &mut control {
            Some(listener) => listener,
            none => {
                let listener = none.insert(control::Control::listen(&folder)?);
                started(&control::status(&scheduler, job, since));
                listener
            }
        };
        let exit = loop {
            listener.serve(LOOK_INTERVAL, || control::status(&scheduler, job, since))?;
            if let Some(exit) = scheduler.exit() {
                break exit;
            }
            if stop.load(Ordering::Relaxed) || until.is_some_and(|until| Instant::now() >= until) {
                return Ok(Ended::Asked);
            }
        };
        if !exit.wants_restart() {
            return Ok(Ended::LetGo(Box::new(exit)));
        }
    }
}

/// Loading parses all of the kernel's types; what that took is given back to the system.
fn give_memory_back() {
    unsafe extern "C" {
        fn malloc_trim(pad: usize) -> i32;
    }
    // SAFETY: takes a number, returns one, and touches only free memory.
    unsafe {
        malloc_trim(0);
    }
}
