//! Signals for the program that come to the process that waits for it.

use rustix::process::{PidfdFlags, Resource, Rlimit, Signal, pidfd_open, pidfd_send_signal, setrlimit};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::SignalsInfo;
use signal_hook::iterator::exfiltrator::WithOrigin;
use signal_hook::low_level::emulate_default_handler;
use std::io;
use std::process::Child;
use std::thread;

/// Catches signals before the program starts, so that none ends the wait.
pub struct Forwarder(SignalsInfo<WithOrigin>);

impl Forwarder {
    /// From here on none of these signals ends this process.
    pub fn new() -> io::Result<Self> {
        SignalsInfo::new([SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2]).map(Self)
    }

    /// Passes them on to the program. What the terminal sends, Ctrl-C, it sends to both.
    pub fn forward_to(mut self, child: &Child) -> io::Result<()> {
        let program = pidfd_open(rustix::process::Pid::from_child(child), PidfdFlags::empty())?;
        thread::Builder::new().name("signals".into()).spawn(move || {
            for origin in self.0.forever() {
                let is_sent = origin.process.is_some();
                if let Some(signal) = Signal::from_named_raw(origin.signal).filter(|_| is_sent) {
                    let _ = pidfd_send_signal(&program, signal);
                }
            }
        })?;
        Ok(())
    }
}

/// Ends this process by the signal that ended the program, with no second core dump. Returns where the
/// signal ends nothing.
pub fn end_by(signal: i32) {
    let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
    let _ = emulate_default_handler(signal);
}
