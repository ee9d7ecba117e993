//! Starting the program, and waiting for it.

use crate::environment;
use crate::library;
use crate::program::Program;
use crate::signals::Forwarder;
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::ffi::OsString;
use std::io;
use std::process::{Child, Command, ExitStatus};

/// How often the numbers are made anew, if nobody else makes them.
const STEP: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// What to run, and what to say of it.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The program and its arguments.
    pub command: Vec<OsString>,
    /// Say what the program follows by.
    pub verbose: bool,
}

/// The program could not be run.
#[derive(Debug, thiserror::Error)]
pub enum ExecError {
    /// There is none of that name, or it may not be run.
    #[error("cannot run {program}: {error}")]
    Start {
        /// Its name.
        program: String,
        /// Why.
        error: io::Error,
    },
    /// The wait for it failed.
    #[error("cannot wait for the program: {0}")]
    Wait(#[from] io::Error),
}

/// Runs a program so that it follows the CPUs that it can get, and gives how it ended.
pub fn exec(options: &Options) -> Result<ExitStatus, ExecError> {
    let program = Program::of_command(&options.command);
    let mut command = Command::new(&options.command[0]);
    command.args(&options.command[1..]);
    if program.as_ref().is_none_or(Program::can_preload)
        && let Ok(library) = library::path()
    {
        let users = std::env::var_os("LD_PRELOAD");
        command.env("LD_PRELOAD", environment::preload(users.as_deref(), &library));
    }
    let forwarder = Forwarder::new()?;
    let child = command.spawn().map_err(|error| ExecError::Start {
        program: options.command[0].to_string_lossy().into_owned(),
        error,
    })?;
    forwarder.forward_to(&child)?;
    wait(child)
}

fn wait(mut child: Child) -> Result<ExitStatus, ExecError> {
    let changes = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).map_err(io::Error::from)?;
    let _ = std::fs::create_dir(crate::stub::dir());
    let _ = inotify::add_watch(&changes, crate::stub::dir(), WatchFlags::MOVED_TO | WatchFlags::DELETE);
    let ended = pidfd_open(Pid::from_child(&child), PidfdFlags::empty()).map_err(io::Error::from)?;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        crate::stub::step();
        let mut polled = [PollFd::new(&ended, PollFlags::IN), PollFd::new(&changes, PollFlags::IN)];
        let _ = poll(&mut polled, Some(&STEP));
        let _ = rustix::io::read(&changes, &mut [0; 4096]);
    }
}
