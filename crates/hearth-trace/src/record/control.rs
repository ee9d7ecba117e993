//! When to stop a recording, and stopping it: limit, interruption, the program's own end.

use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitStatus};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::RecordOptions;

const PROGRESS_EVERY: Duration = Duration::from_millis(100);
/// How long a program that was asked to end may take before it is killed.
const PATIENCE: Duration = Duration::from_secs(2);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stop {
    Limit,
    Interrupt,
}

/// Watches over one recording.
pub(super) struct Control {
    options: RecordOptions,
    stopping: Option<(Stop, Instant)>,
    killed: bool,
    last_progress: Instant,
}

impl Control {
    pub fn new(options: RecordOptions) -> Self {
        Control { options, stopping: None, killed: false, last_progress: Instant::now() }
    }

    /// Whether nothing more is to be recorded: the program is about to end.
    pub fn is_stopping(&self) -> bool {
        self.stopping.is_some()
    }

    /// To be called often, with the references recorded: ends the program when it is time.
    pub fn watch(&mut self, child: &Child, references: u64) {
        if let Some((_, since)) = self.stopping {
            if !self.killed && since.elapsed() > PATIENCE {
                signal(child, Signal::KILL);
                self.killed = true;
            }
            return;
        }
        if self.options.interrupt.load(Ordering::Relaxed) {
            self.stopping = Some((Stop::Interrupt, Instant::now()));
            signal(child, Signal::INT);
        } else if self.options.max_references.is_some_and(|limit| references >= limit) {
            self.stopping = Some((Stop::Limit, Instant::now()));
            signal(child, Signal::TERM);
        }
        if self.last_progress.elapsed() >= PROGRESS_EVERY {
            self.last_progress = Instant::now();
            if let Some(progress) = &mut self.options.progress {
                progress(references);
            }
        }
    }

    /// What to note in the trace about how the recording ended.
    pub fn notes(&self, status: ExitStatus) -> Option<String> {
        match (self.stopping, status.signal(), status.code()) {
            (Some((Stop::Limit, _)), ..) => Some(format!(
                "cut: the recording ended at the limit of {} references, and the program with it",
                self.options.max_references.unwrap_or_default()
            )),
            (Some((Stop::Interrupt, _)), ..) => {
                Some("interrupted: the trace holds what the program did until then".into())
            }
            (None, Some(signal), _) => Some(format!(
                "the program was killed by signal {signal}; the trace holds what it did until then"
            )),
            (None, None, Some(code)) if code != 0 => {
                Some(format!("the program ended with exit status {code}"))
            }
            _ => None,
        }
    }
}

/// Sends a signal; a program that has just ended needs none.
fn signal(child: &Child, signal: Signal) {
    if let Some(pid) = Pid::from_raw(child.id() as i32) {
        let _ = kill_process(pid, signal);
    }
}
