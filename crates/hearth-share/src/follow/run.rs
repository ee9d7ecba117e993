//! Starting the program, and waiting for it.

use super::environment;
use super::library;
use super::mask::Mask;
use super::pages::{Made, Pages};
use super::program::{self, Program};
use super::signals::Forwarder;
use super::told::Told;
use super::way::Way;
use crate::Leader;
use hearth_hints::page::Page;
use rustix::fd::AsFd;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

/// How long a program is kept waiting at its start for its number, where somebody else makes it. Who does
/// answers at once, unless all CPUs are busy.
const PATIENCE: Duration = Duration::from_millis(10);
/// How often it is looked meanwhile.
const LOOK: Duration = Duration::from_micros(100);

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
    let newcomer = way.follows().then(|| session.newcomer()).flatten();
    let told = newcomer.as_ref().map(|(_, told)| *told).unwrap_or_default();
    let cpus = way.is_told_at_start().then(|| limited(told.cpus)).flatten();
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]);
    let name = Path::new(&words[0]).file_name().unwrap_or_default().to_string_lossy().into_owned();
    let obstacle = prepare(&mut command, &program, &way, cpus);
    // Of a program that is not there, the error says enough.
    if program::find(&words[0]).is_some_and(|path| path.exists()) {
        say(&format!("{name} {}", obstacle.as_deref().unwrap_or(&way.to_string())), obstacle.is_none());
    }
    let forwarder = Forwarder::new()?;
    let child = command.spawn().map_err(|error| ExecError::Start { program: name.clone(), error })?;
    drop(newcomer);
    let mut follower = Follower::new(&session, way, &child, told);
    forwarder.forward_to(&child)?;
    begun(Pid::from_child(&child).as_raw_nonzero().get());
    let status = session.wait(child, &mut follower)?;
    Ok(Ended { status, name, told: follower.told })
}

/// The number, if it is not all the CPUs that this process may run on.
fn limited(cpus: u32) -> Option<usize> {
    let all = rustix::thread::sched_getaffinity(None).ok()?.count();
    (0 < cpus && cpus < all).then_some(cpus as usize)
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
    if !matches!(way, Way::Library(_)) && program.obstacle().is_some() {
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
    leader: Leader,
}

impl Session {
    fn new() -> Self {
        let folder = crate::pages::own_folder();
        Self { leader: Leader::new(&folder), pages: Pages::new(folder) }
    }

    /// What one more program is told: by a page of this process, in place of the program that does not
    /// exist yet. So the others make room before it begins.
    fn newcomer(&mut self) -> Option<(Made, Page)> {
        let own = std::process::id();
        let made = self.pages.make(own, Page::default()).ok()?;
        let begin = Instant::now();
        loop {
            self.leader.step(Instant::now());
            let page = self.pages.of(own)?;
            if page.cpus > 0 || begin.elapsed() > PATIENCE {
                return Some((made, page));
            }
            std::thread::sleep(LOOK);
        }
    }

    fn wait(&mut self, mut child: Child, follower: &mut Follower) -> Result<ExitStatus, ExecError> {
        let ended = pidfd_open(Pid::from_child(&child), PidfdFlags::empty()).map_err(io::Error::from)?;
        loop {
            self.leader.step(Instant::now());
            follower.look(&self.pages);
            self.leader.wait(ended.as_fd());
            if let Some(status) = child.try_wait()? {
                return Ok(status);
            }
        }
    }
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
    fn new(session: &Session, way: Way, child: &Child, told: Page) -> Self {
        let pid = child.id();
        let is_known = match &way {
            Way::Mask(_) => true,
            Way::Library(runtimes) => !runtimes.is_empty(),
            _ => false,
        };
        let page = is_known.then(|| session.pages.make(pid, told).ok()).flatten();
        let mask = matches!(way, Way::Mask(_)).then(|| Mask::of(Pid::from_child(child)).ok()).flatten();
        let mut follower = Self { pid, _page: page, mask, told: Told::default() };
        follower.look(&session.pages);
        follower
    }

    fn look(&mut self, pages: &Pages) {
        let Some(page) = pages.of(self.pid) else { return };
        self.told.note(page, Instant::now());
        if let Some(mask) = self.mask.as_mut().filter(|_| page.cpus > 0) {
            mask.follow(page.cpus as usize, pages.ahead_of(self.pid));
        }
    }
}
