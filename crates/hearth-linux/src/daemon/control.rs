//! The daemon's socket. A client sends one line and gets one JSON object:
//!
//! ```text
//! status       what the daemon and each CPU did; also for a client that sends nothing
//! task TID...  what the scheduler remembers of these threads
//! trace PID    has the decisions about a process or thread told from now on; 0: all
//! decisions    those that were told since the last time
//! untrace      has none told any more
//! pages PID    what is known of a process's pages
//! ```

use super::metrics::Metrics;
use super::parts::{Parts, Work};
use crate::pages::{Follower, PagesStatus, ProcessPages};
use crate::{CpuStats, Decision, Error, Scheduler, Task};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::{Deserialize, Serialize};
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{fs, io};

/// A client that traces and does not ask for so long is gone.
const TRACE_PATIENCE: Duration = Duration::from_secs(2);

/// How long a client may take to say what it wants.
const REQUEST_TIMEOUT: Duration = Duration::from_millis(100);

/// The longest request, in bytes.
const LONGEST_REQUEST: u64 = 64 << 10;

/// How long a client may take to read its answer.
const CLIENT_TIMEOUT: Duration = Duration::from_millis(500);

/// What the daemon tells of itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// The version of this structure.
    pub schema: u32,
    /// Hearth's version.
    pub version: String,
    /// The daemon.
    pub pid: u32,
    /// The policy's name; nothing if the kernel's own scheduler schedules.
    pub policy: Option<String>,
    /// The cgroup whose tasks alone are Hearth's.
    pub only: Option<PathBuf>,
    /// Pages that follow their processes, if they do.
    pub pages: Option<PagesStatus>,
    /// Seconds since the scheduler was loaded.
    pub up_s: f64,
    /// Each online CPU and what its dispatches led to.
    pub cpus: Vec<CpuStatus>,
}

/// One CPU.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CpuStatus {
    /// Its number.
    pub cpu: usize,
    /// Counts since the scheduler was loaded.
    #[serde(flatten)]
    pub stats: CpuStats,
}

pub(super) fn status(parts: &Parts, work: &Work) -> Status {
    let stats = parts.scheduler.as_ref().map(Scheduler::stats).unwrap_or_default();
    Status {
        schema: 1,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        pid: std::process::id(),
        policy: work.policy.as_ref().map(|policy| policy.name.clone()),
        only: work.only.clone(),
        pages: parts.follower.as_ref().map(Follower::status),
        up_s: parts.since.elapsed().as_secs_f64(),
        cpus: stats.into_iter().map(|(cpu, stats)| CpuStatus { cpu, stats }).collect(),
    }
}

/// Decisions that were told, and what was lost.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Told {
    /// By time.
    pub decisions: Vec<Decision>,
    /// Decisions that found no room, since the scheduler was loaded.
    pub lost: u64,
}

impl From<(Vec<Decision>, u64)> for Told {
    fn from((decisions, lost): (Vec<Decision>, u64)) -> Self {
        Self { decisions, lost }
    }
}

/// What the scheduler remembers of threads.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tasks {
    /// Those of the threads asked for that are Hearth's.
    pub tasks: Vec<Task>,
}

/// Asks the daemon for its status; `None` if there is none.
pub fn ask_status(folder: &Path) -> Result<Option<Status>, Error> {
    ask(folder, "status")
}

/// Asks the daemon what the scheduler remembers of threads; `None` if there is none.
pub fn ask_tasks(folder: &Path, tids: &[i32]) -> Result<Option<Tasks>, Error> {
    let tids: Vec<String> = tids.iter().map(ToString::to_string).collect();
    ask(folder, &format!("task {}", tids.join(" ")))
}

/// Has the daemon tell decisions from now on: about a process or thread, or all.
pub fn ask_trace(folder: &Path, pid: Option<i32>) -> Result<Option<Told>, Error> {
    ask(folder, &format!("trace {}", pid.unwrap_or(0)))
}

/// Asks the daemon for the decisions since the last time.
pub fn ask_decisions(folder: &Path) -> Result<Option<Told>, Error> {
    ask(folder, "decisions")
}

/// Asks the daemon what it knows of a process's pages; `None` if there is no daemon, or it does not
/// follow the process.
pub fn ask_pages(folder: &Path, pid: i32) -> Result<Option<ProcessPages>, Error> {
    Ok(ask::<Option<ProcessPages>>(folder, &format!("pages {pid}"))?.flatten())
}

/// Has the daemon tell no more decisions; returns the last ones.
pub fn ask_untrace(folder: &Path) -> Result<Option<Told>, Error> {
    ask(folder, "untrace")
}

fn ask<T: serde::de::DeserializeOwned>(folder: &Path, request: &str) -> Result<Option<T>, Error> {
    let path = folder.join("socket");
    let mut stream = match UnixStream::connect(&path) {
        Ok(stream) => stream,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused) => {
            return Ok(None);
        }
        Err(error) => return Err(Error::file(&path)(error)),
    };
    let mut text = String::new();
    let asked = stream
        .set_read_timeout(Some(Duration::from_secs(5)))
        .and_then(|()| writeln!(stream, "{request}"))
        .and_then(|()| stream.shutdown(Shutdown::Write))
        .and_then(|()| stream.read_to_string(&mut text));
    match asked {
        // It ends in this moment.
        Err(error) if matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe) => {
            return Ok(None);
        }
        asked => asked.map_err(Error::file(&path))?,
    };
    if let Ok(Refusal { error }) = serde_json::from_str(&text) {
        return Err(Error::file(&path)(io::Error::other(error)));
    }
    serde_json::from_str(&text).map(Some).map_err(|error| Error::file(&path)(io::Error::other(error)))
}

/// The answer to a request that cannot be granted.
#[derive(Serialize, Deserialize)]
struct Refusal {
    error: String,
}

/// What a client may ask for.
#[derive(Debug, PartialEq, Eq)]
enum Request {
    Status,
    Pages(i32),
    Scheduler(Question),
}

/// What only a scheduler can answer.
#[derive(Debug, PartialEq, Eq)]
enum Question {
    Tasks(Vec<i32>),
    Trace(Option<i32>),
    Decisions,
    Untrace,
}

impl Request {
    fn parse(line: &str) -> Option<Self> {
        let mut words = line.split_whitespace();
        let request = match words.next() {
            None | Some("status") => Self::Status,
            Some("pages") => Self::Pages(words.next()?.parse().ok()?),
            Some("task") => {
                let tids = words.by_ref().map(|tid| tid.parse().ok()).collect::<Option<_>>()?;
                Self::Scheduler(Question::Tasks(tids))
            }
            Some("trace") => {
                let pid: i32 = words.next()?.parse().ok()?;
                Self::Scheduler(Question::Trace((pid > 0).then_some(pid)))
            }
            Some("decisions") => Self::Scheduler(Question::Decisions),
            Some("untrace") => Self::Scheduler(Question::Untrace),
            Some(_) => return None,
        };
        words.next().is_none().then_some(request)
    }

    /// One line, as far as it comes within the client's time.
    fn read(client: &mut UnixStream) -> Option<Self> {
        let mut line = Vec::new();
        let mut limited = BufReader::new(client).take(LONGEST_REQUEST);
        // A client that says nothing wants the status.
        let _ = limited.read_until(b'\n', &mut line);
        Self::parse(std::str::from_utf8(&line).ok()?)
    }
}

/// Whether a client may see what single tasks do, and have the scheduler write it down.
fn is_trusted(client: &UnixStream) -> bool {
    let user = rustix::process::geteuid();
    rustix::net::sockopt::socket_peercred(client)
        .is_ok_and(|client| client.uid.is_root() || client.uid == user)
}

fn refuse(error: &str) -> Vec<u8> {
    serde_json::to_vec(&Refusal { error: error.to_owned() }).unwrap_or_default()
}

fn answer(request: &Request, parts: &mut Parts, status: impl Fn(&Parts) -> Status) -> Vec<u8> {
    let answer = match request {
        Request::Status => serde_json::to_vec(&status(parts)),
        Request::Pages(pid) => {
            serde_json::to_vec(&parts.follower.as_ref().and_then(|follower| follower.process(*pid)))
        }
        Request::Scheduler(question) => match &mut parts.scheduler {
            Some(scheduler) => answer_of(scheduler, question),
            None => return refuse("the kernel's own scheduler schedules; Hearth only moves pages"),
        },
    };
    answer.unwrap_or_default()
}

fn answer_of(scheduler: &mut Scheduler, question: &Question) -> serde_json::Result<Vec<u8>> {
    match question {
        Question::Tasks(tids) => {
            let tasks = tids.iter().filter_map(|&tid| scheduler.task(tid)).collect();
            serde_json::to_vec(&Tasks { tasks })
        }
        Question::Trace(pid) => match scheduler.trace(*pid) {
            Ok(()) => serde_json::to_vec(&Told::default()),
            Err(error) => serde_json::to_vec(&Refusal { error: error.to_string() }),
        },
        Question::Decisions => serde_json::to_vec(&Told::from(scheduler.decisions())),
        Question::Untrace => serde_json::to_vec(&Told::from(scheduler.untrace())),
    }
}

/// The daemon's end of the socket.
pub(super) struct Control {
    listener: UnixListener,
    /// When decisions were asked for last, while they are told.
    traced: Option<Instant>,
}

impl Control {
    /// Makes the socket anew: the lock says that nobody else has it.
    pub(super) fn listen(folder: &Path) -> Result<Self, Error> {
        let path = folder.join("socket");
        match fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(Error::file(&path)(error)),
            _ => {}
        }
        let listener = UnixListener::bind(&path).map_err(Error::file(&path))?;
        listener.set_nonblocking(true).map_err(Error::file(&path))?;
        // Everybody may ask for the status.
        fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).map_err(Error::file(&path))?;
        Ok(Self { listener, traced: None })
    }

    /// Answers clients, and those of the metrics, for up to `time`, or until a signal comes.
    pub(super) fn serve(
        &mut self,
        time: Duration,
        metrics: Option<&Metrics>,
        parts: &mut Parts,
        status: impl Fn(&Parts) -> Status,
    ) {
        if self.traced.is_some_and(|asked| asked.elapsed() > TRACE_PATIENCE) {
            if let Some(scheduler) = &mut parts.scheduler {
                scheduler.untrace();
            }
            self.traced = None;
        }
        let timeout = Timespec { tv_sec: time.as_secs() as i64, tv_nsec: i64::from(time.subsec_nanos()) };
        let mut ready = vec![PollFd::new(&self.listener, PollFlags::IN)];
        ready.extend(metrics.map(|metrics| PollFd::new(metrics, PollFlags::IN)));
        if !matches!(poll(&mut ready, Some(&timeout)), Ok(count) if count > 0) {
            return;
        }
        if let Ok((mut client, _)) = self.listener.accept() {
            // A client that goes away, or does not read, or asks for what there is not, is its own loss.
            let _ = client.set_nonblocking(false);
            let _ = client.set_read_timeout(Some(REQUEST_TIMEOUT));
            let _ = client.set_write_timeout(Some(CLIENT_TIMEOUT));
            let text = match Request::read(&mut client) {
                Some(request) if request != Request::Status && !is_trusted(&client) => {
                    refuse("only root may ask for that")
                }
                Some(request) => {
                    match request {
                        Request::Scheduler(Question::Trace(_) | Question::Decisions) => {
                            self.traced = Some(Instant::now());
                        }
                        Request::Scheduler(Question::Untrace) => self.traced = None,
                        _ => {}
                    }
                    answer(&request, parts, &status)
                }
                None => refuse(
                    "unknown request; the socket knows: status, task TID..., trace PID, decisions, untrace, \
                     pages PID",
                ),
            };
            let _ = client.write_all(&text);
        }
        if let Some(metrics) = metrics {
            metrics.answer(|| status(parts));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_checked() {
        assert_eq!(Request::parse(""), Some(Request::Status));
        assert_eq!(Request::parse("status\n"), Some(Request::Status));
        assert_eq!(Request::parse("pages 7"), Some(Request::Pages(7)));
        for (line, question) in [
            ("task 1 22\n", Question::Tasks(vec![1, 22])),
            ("task", Question::Tasks(Vec::new())),
            ("trace 0", Question::Trace(None)),
            ("trace 7", Question::Trace(Some(7))),
            ("decisions", Question::Decisions),
            ("untrace", Question::Untrace),
        ] {
            assert_eq!(Request::parse(line), Some(Request::Scheduler(question)), "{line}");
        }
        for wrong in [
            "pages",
            "pages x",
            "status 1",
            "task x",
            "trace",
            "trace 1 2",
            "untrace now",
            "stop",
            "trace 99999999999",
        ] {
            assert_eq!(Request::parse(wrong), None, "{wrong}");
        }
    }
}
