//! Starting the program, and waiting for it.

use crate::environment;
use crate::library;
use crate::mask::Mask;
use crate::pages::{Made, Pages};
use crate::program::Program;
use crate::signals::Forwarder;
use crate::told::Told;
use crate::way::Way;
use hearth_share::leader::{Leader, STEP};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

/// How long a program is kept waiting at its start for its number, where somebody else makes it.
const PATIENCE: Duration = Duration::from_millis(20);

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

/// How a program ended, and what it was told.
pub struct Ended {
    /// Its exit status.
    pub status: ExitStatus,
    /// Its name.
    pub name: String,
    /// What it was told over time.
    pub told: Told,
}

/// Runs a command so that it follows the CPUs that it can get. `say` gets what the user may want to
/// read, before the program starts: how it follows, and whether that is all well; `begun` gets its process
/// when it has.
pub fn exec(
    words: &[OsString],
    say: impl Fn(&str, bool),
    begun: impl FnOnce(i32),
) -> Result<Ended, ExecError> {
    let program = Program::of_command(words).unwrap_or_default();
    let way = Way::of(&program);
    let mut session = Session::new();
    let cpus = way.is_told_at_start().then(|| session.cpus_at_start()).flatten();
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]);
    let name = Path::new(&words[0]).file_name().unwrap_or_default().to_string_lossy().into_owned();
    let obstacle = prepare(&mut command, &program, &way, cpus);
    say(&format!("{name} {}", obstacle.as_deref().unwrap_or(&way.to_string())), obstacle.is_none());
    let forwarder = Forwarder::new()?;
    let child = command.spawn().map_err(|error| ExecError::Start { program: name.clone(), error })?;
    forwarder.forward_to(&child)?;
    begun(Pid::from_child(&child).as_raw_nonzero().get());
    let mut follower = Follower::new(&session, way, &child);
    let status = session.wait(child, &mut follower)?;
    Ok(Ended { status, name, told: follower.told })
}

/// Gives the command the environment by which it, or what it starts, follows; or says what keeps it from
/// it. The library is for what the program starts, too; but what a static program starts may be of another
/// C library, and would not start with ours.
fn prepare(command: &mut Command, program: &Program, way: &Way, cpus: Option<usize>) -> Option<String> {
    if let Some(cpus) = cpus {
        command.envs(environment::told_once(way, cpus));
    }
    if let Way::Mask("Go") = way {
        command.env("GODEBUG", environment::go_debug(std::env::var("GODEBUG").ok().as_deref()));
    }
    if let Way::Not(_) = way {
        return Some(way.to_string());
    }
    if program.obstacle().is_some() {
        return None;
    }
    match library::path() {
        Ok(library) => {
            let users = std::env::var_os("LD_PRELOAD");
            command.env("LD_PRELOAD", environment::preload(users.as_deref(), &library));
            None
        }
        Err(error) => {
            matches!(way, Way::Library(_)).then(|| format!("cannot follow: {error}; it runs as it is"))
        }
    }
}

/// The folder of pages, and who writes the numbers there.
struct Session {
    pages: Pages,
    folder: PathBuf,
    leader: Leader,
}

impl Session {
    fn new() -> Self {
        let folder = hearth_share::pages::own_folder();
        Self { pages: Pages::new(folder.clone()), leader: Leader::new(&folder), folder }
    }

    /// The CPUs that one more program can get now, if that is not all that it may run on. Asked by a page
    /// of this process, in place of the program that does not exist yet.
    fn cpus_at_start(&mut self) -> Option<usize> {
        let own = std::process::id();
        let all = rustix::thread::sched_getaffinity(None).ok()?.count();
        let _page = self.pages.make(own).ok()?;
        let begin = Instant::now();
        loop {
            self.leader.step(Instant::now());
            let cpus = self.pages.of(own)?.cpus;
            if cpus > 0 || begin.elapsed() > PATIENCE {
                return (0 < cpus && cpus < all).then_some(cpus as usize);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Pages that come or go change everybody's number, so they end a wait early.
    fn changes(&self) -> io::Result<OwnedFd> {
        let changes = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
        inotify::add_watch(&changes, &self.folder, WatchFlags::MOVED_TO | WatchFlags::DELETE)?;
        Ok(changes)
    }

    fn wait(&mut self, mut child: Child, follower: &mut Follower) -> Result<ExitStatus, ExecError> {
        let ended = pidfd_open(Pid::from_child(&child), PidfdFlags::empty()).map_err(io::Error::from)?;
        let changes = self.changes().ok();
        let step = Timespec { tv_sec: 0, tv_nsec: STEP.as_nanos() as i64 };
        loop {
            self.leader.step(Instant::now());
            follower.look(&self.pages);
            let mut polled = vec![PollFd::new(&ended, PollFlags::IN)];
            polled.extend(changes.iter().map(|changes| PollFd::new(changes, PollFlags::IN)));
            let _ = poll(&mut polled, Some(&step));
            if changes.as_ref().is_some_and(has_changed) {
                self.leader.hasten(Instant::now());
            }
            if let Some(status) = child.try_wait()? {
                return Ok(status);
            }
        }
    }
}

/// Whether pages have come or gone since this was asked last.
fn has_changed(changes: &OwnedFd) -> bool {
    let mut any = false;
    while rustix::io::read(changes, &mut [0; 4096]).is_ok_and(|bytes| bytes > 0) {
        any = true;
    }
    any
}

/// What is done for the program while it runs.
struct Follower {
    pid: u32,
    /// A program of a known runtime has its number from its first moment on; others make a page when
    /// they need one.
    _page: Option<Made>,
    mask: Option<Mask>,
    told: Told,
}

impl Follower {
    fn new(session: &Session, way: Way, child: &Child) -> Self {
        let pid = child.id();
        let is_known = match &way {
            Way::Mask(_) => true,
            Way::Library(runtimes) => !runtimes.is_empty(),
            _ => false,
        };
        Self {
            pid,
            _page: is_known.then(|| session.pages.make(pid).ok()).flatten(),
            mask: matches!(way, Way::Mask(_)).then(|| Mask::of(Pid::from_child(child)).ok()).flatten(),
            told: Told::default(),
        }
    }

    fn look(&mut self, pages: &Pages) {
        let Some(page) = pages.of(self.pid) else { return };
        self.told.note(page, Instant::now());
        if let Some(mask) = self.mask.as_mut().filter(|_| page.cpus > 0) {
            mask.follow(page.cpus as usize, pages.ahead_of(self.pid));
        }
    }
}
