//! `hearth start`: the scheduler on this machine.

use super::choice::Choice;
use super::{pages, undo};
use crate::values;
use anyhow::{Context, anyhow};
use clap::Args;
use hearth_command::failure::{Failure, Outcome};
use hearth_command::{interrupt, output};
use hearth_host::{kernel, privilege};
use hearth_linux::daemon::{self, Ended, Event, Holder, Job, RefusalKind, Status, Work};
use hearth_share::service::TellPrograms;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::time::Duration;

pub const EXAMPLES: &str = "\
Examples:
  hearth start                          until `hearth stop`
  hearth start --for 60s                for a minute
  hearth start --only nginx.service     the tasks of this cgroup, no others
  hearth start --policy ./mine.toml     with a policy of one's own
  hearth start --pages none             pages stay on their memory nodes
  hearth start --planner none           without plans
  hearth start --pages-only             pages follow their processes under the kernel's own scheduler
  hearth start --no-scheduler           sets, under the kernel's own scheduler";

#[derive(Debug, Args)]
pub struct Arguments {
    #[command(flatten)]
    choice: Choice,
    /// Leave the kernel's own scheduler on: programs that ask for a set have it by cpusets, and pages follow
    /// if --pages says so; needs no sched_ext
    #[arg(long, conflicts_with_all = ["policy", "planner", "pages_only", "only"])]
    no_scheduler: bool,
    /// How long a row of gangs' time is, for example 50ms: from 10ms to 10s
    #[arg(long, value_name = "TIME", value_parser = gang_row, default_value = "100ms")]
    #[arg(conflicts_with_all = ["no_scheduler", "pages_only"])]
    gang_row: Duration,
    /// Stop after this time, for example 60s or 10m
    #[arg(long = "for", value_name = "TIME", value_parser = values::time)]
    duration: Option<Duration>,
    /// Serve metrics for Prometheus at http://ADDRESS:PORT/metrics
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = values::address)]
    metrics: Option<SocketAddr>,
    /// Stay in the foreground until Ctrl-C
    #[arg(long)]
    foreground: bool,
    /// Have the kernel end the scheduler when a task has waited for so long, from 1s to 30s: for tests
    #[arg(long, hide = true, value_name = "TIME", value_parser = watchdog)]
    watchdog: Option<Duration>,
    /// Let no task run that waits, to see what the kernel does: for tests
    #[arg(long, hide = true)]
    stall: bool,
    /// Have the planner stop answering after a while, to see what is left: for tests
    #[arg(long, hide = true)]
    stall_planner: bool,
    /// Leave the terminal's session: for the process that `start` leaves behind
    #[arg(long, hide = true, requires = "foreground")]
    detached: bool,
}

pub fn run(arguments: &Arguments) -> Outcome {
    let choice = &arguments.choice;
    let work = if arguments.no_scheduler { choice.work_without_scheduler() } else { choice.work() };
    let mut work = Work {
        gang_row: Some(arguments.gang_row),
        watchdog: arguments.watchdog,
        stalls: arguments.stall,
        planner_stalls: arguments.stall_planner,
        ..work?
    };
    work.services.push(Box::new(TellPrograms));
    require_kernel(&work)?;
    if !arguments.foreground {
        return output::print(&format!("{}\n", on(&detach(std::env::args_os().skip(1))?)));
    }
    if arguments.detached {
        // Fails only for the leader of a group, which this process is not.
        let _ = rustix::process::setsid();
    }
    let stop = interrupt::flag()?;
    let job = Job { work, metrics: arguments.metrics, duration: arguments.duration };
    match daemon::run(&job, stop, tell).map_err(failure)? {
        Ended::Asked => Ok(()),
        Ended::LetGo(ending) => Err(Failure::Code(7, anyhow!("the kernel ended the scheduler: {ending}"))),
    }
}

/// What this kernel cannot do goes before what this user may not.
pub fn require_kernel(work: &Work) -> Outcome {
    if work.policy.is_none() {
        return Ok(());
    }
    kernel::check_sched_ext().map_err(failure)
}

/// The failure of a command that needs Hearth where it does not run.
pub fn none_runs() -> Failure {
    Failure::Code(
        8,
        anyhow!(
            "Hearth does not run here; begin with `sudo hearth start`, or for sets and pages where the kernel has no \
             sched_ext with `sudo hearth start --no-scheduler`"
        ),
    )
}

fn gang_row(text: &str) -> Result<Duration, String> {
    values::time_within(text, Duration::from_millis(10)..=Duration::from_secs(10), "10ms to 10s")
}

/// The kernel allows no more.
fn watchdog(text: &str) -> Result<Duration, String> {
    values::time_within(text, Duration::from_secs(1)..=Duration::from_secs(30), "1s to 30s")
}

fn tell(event: Event<'_>) {
    match event {
        Event::Waits(holder) => waits(holder),
        Event::Started(status) => anstream::eprintln!("{}", on(status)),
        Event::LeftOut(why) => anstream::eprintln!("left to the kernel's own scheduler: {why}"),
        Event::Again(why) => anstream::eprintln!("loading the scheduler again: {why}"),
        Event::LeftUndone(report) => {
            anstream::eprint!("An earlier Hearth left changes behind:\n{}", undo::text(report));
        }
        Event::Undone(report) => anstream::eprint!("{}", undo::summary(report)),
    }
}

fn waits(holder: &Holder) {
    anstream::eprintln!("{}; waiting until it has ended", ending(holder));
}

/// Who is ending, and for how long.
pub fn ending(holder: &Holder) -> String {
    let pid = holder.pid.map(|pid| format!(" (process {pid})")).unwrap_or_default();
    let time = holder.ending_for.unwrap_or_default().as_secs_f64();
    format!("Hearth{pid} has been ending for {time:.1} s")
}

fn on(status: &Status) -> String {
    let what = status.only.as_ref().map_or("this machine".to_owned(), |only| only.display().to_string());
    let follows = pages::of(status);
    let pages = follows.as_ref().map(|pages| format!(", pages {}", pages.policy)).unwrap_or_default();
    let notes = follows.iter().flat_map(|pages| &pages.notes).map(|note| format!("\npages: {note}"));
    let notes: String = notes.collect();
    match &status.policy {
        Some(policy) => {
            format!("Hearth schedules {what} (policy {policy}{pages}, process {}){notes}", status.pid)
        }
        None => format!(
            "Hearth runs beside the kernel's own scheduler on {what} (process {}{pages}){notes}",
            status.pid
        ),
    }
}

/// Leaves a process behind that holds the scheduler, and returns when it does.
fn detach(arguments: impl Iterator<Item = OsString>) -> Result<Status, Failure> {
    let folder = daemon::run_folder();
    daemon::await_turn(waits).map_err(failure)?;
    let log = folder.join("log");
    let file = fs::create_dir_all(&folder)
        .and_then(|()| File::create(&log))
        .map_err(|source| failure(hearth_host::Error::file(&log)(source)))?;
    let mut child = std::env::current_exe()
        .and_then(|command| {
            Command::new(command)
                .args(arguments)
                .args(["--foreground", "--detached"])
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(file)
                .spawn()
        })
        .context("cannot run this command again in the background")
        .map_err(Failure::failed)?;
    loop {
        if let Some(status) = daemon::ask_status(&folder).map_err(failure)? {
            return Ok(status);
        }
        if let Some(code) = child.try_wait().map_err(Failure::failed)? {
            let text = fs::read_to_string(&log).unwrap_or_default();
            let text = text.trim().trim_start_matches("error:").trim().to_owned();
            return Err(Failure::Code(code.code().unwrap_or(1) as u8, anyhow!(text)));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Leaves Hearth on after this process.
pub fn leave_on(choice: &Choice) -> Outcome {
    let words = std::iter::once("start".to_owned()).chain(choice.words());
    detach(words.map(OsString::from)).map(|_| ())
}

/// The exit code for what went wrong with the kernel.
pub fn failure(error: impl Into<hearth_linux::Error>) -> Failure {
    use hearth_host::Error as Host;
    use hearth_linux::Error;
    let error = error.into();
    // An error's text has its source's already.
    let said = anyhow!("{error}");
    match error {
        Error::Host(Host::NoSchedExt { .. } | Host::Impossible(_)) | Error::TooManyCpus { .. } => {
            Failure::Code(4, said)
        }
        Error::Host(Host::Cgroup { .. } | Host::Process { .. }) => Failure::Input(said),
        Error::Host(Host::File { source, .. }) if source.kind() == ErrorKind::PermissionDenied => {
            Failure::Code(5, anyhow!("{said}; {}", privilege::advice()))
        }
        Error::NoPrivilege { .. } => Failure::Code(5, said),
        Error::Answer { kind, .. } => match kind {
            RefusalKind::Failed => Failure::Failed(said),
            RefusalKind::Wrong => Failure::Input(said),
            RefusalKind::Impossible => Failure::Code(4, said),
            RefusalKind::NotAllowed => Failure::Code(5, said),
        },
        Error::Running { .. } | Error::Ending { .. } | Error::Busy { .. } => Failure::Code(6, said),
        _ => Failure::Failed(said),
    }
}
