//! The daemon's end of its socket. A client sends one line and gets one JSON object:
//!
//! ```text
//! status       what the daemon and each CPU did; also for a client that sends nothing
//! task TID...  what the scheduler remembers of these threads
//! trace PID    has the decisions about a process or thread told from now on; 0: all
//! decisions    those that were told since the last time
//! untrace      has none told any more
//! ask gang|set CPUS PID...   these processes are a program that is scheduled as one, on so many CPUs at most
//!                            (0: as many as there are); answers with its number
//! bind ID PID...             these, too, are of that program
//! forget ID                  that program is scheduled as others are
//! programs                   all of them
//! SERVICE PID  what one of the services knows of a process
//! ```

use super::parts::Parts;
use super::status::{ProgramId, Refusal, RefusalKind, Status, Tasks, Told};
use crate::door::{self, Caller, Door, Limits};
use crate::{Error, Scheduler};
use hearth_policy::snapshot::Asks;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::str::SplitWhitespace;
use std::time::{Duration, Instant};

/// A client that traces and does not ask for so long is gone.
const TRACE_PATIENCE: Duration = Duration::from_secs(2);

/// A client that says nothing wants the status.
const LIMITS: Limits =
    Limits { request: Duration::from_millis(100), answer: Duration::from_millis(500), each_user: 16 };

/// The longest request in bytes: root's, which may name many threads, and of whom may ask for the status only.
const LONGEST_REQUEST: usize = 64 << 10;
const LONGEST_OF_OTHERS: usize = 256;

/// What a client may ask for.
#[derive(Debug, PartialEq, Eq)]
enum Request {
    Status,
    Service(String, i32),
    Scheduler(Question),
    Program(Asked),
}

/// What only a scheduler can answer.
#[derive(Debug, PartialEq, Eq)]
enum Question {
    Tasks(Vec<i32>),
    Trace(Option<i32>),
    Decisions,
    Untrace,
}

/// Of programs that are scheduled as one.
#[derive(Debug, PartialEq, Eq)]
enum Asked {
    Ask(Asks, Option<usize>, Vec<i32>),
    Bind(u32, Vec<i32>),
    Forget(u32),
    List,
}

impl Asked {
    /// After the first word.
    fn parse(word: &str, words: &mut SplitWhitespace<'_>) -> Option<Self> {
        let pids = |words: &mut SplitWhitespace<'_>| {
            words.map(|pid| pid.parse().ok().filter(|pid| *pid > 0)).collect::<Option<Vec<i32>>>()
        };
        Some(match word {
            "ask" => {
                let asks = match words.next()? {
                    "gang" => Asks::Gang,
                    "set" => Asks::Set,
                    _ => return None,
                };
                let cpus: usize = words.next()?.parse().ok()?;
                Self::Ask(asks, (cpus > 0).then_some(cpus), pids(words)?)
            }
            "bind" => Self::Bind(words.next()?.parse().ok()?, pids(words)?),
            "forget" => Self::Forget(words.next()?.parse().ok()?),
            "programs" => Self::List,
            _ => return None,
        })
    }
}

impl Request {
    fn parse(line: &str) -> Option<Self> {
        let mut words = line.split_whitespace();
        let request = match words.next() {
            None | Some("status") => Self::Status,
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
            Some(word @ ("ask" | "bind" | "forget" | "programs")) => {
                Self::Program(Asked::parse(word, &mut words)?)
            }
            Some(service) => Self::Service(service.to_owned(), words.next()?.parse().ok()?),
        };
        words.next().is_none().then_some(request)
    }
}

/// Whether a user may see what single tasks do, and have the scheduler write it down.
fn is_trusted(user: u32) -> bool {
    user == 0 || user == rustix::process::geteuid().as_raw()
}

fn refuse(kind: RefusalKind, error: impl ToString) -> Vec<u8> {
    serde_json::to_vec(&Refusal { error: error.to_string(), kind }).unwrap_or_default()
}

fn answer(request: &Request, parts: &mut Parts, status: impl Fn(&Parts) -> Status) -> Vec<u8> {
    let answer = match request {
        Request::Status => serde_json::to_vec(&status(parts)),
        // A service that is not at work knows nothing.
        Request::Service(name, pid) => {
            let service = parts.services.get(name.as_str());
            serde_json::to_vec(&service.map(|service| service.process(*pid)))
        }
        Request::Program(asked) => return answer_programs(parts, asked),
        Request::Scheduler(question) => match &mut parts.scheduler {
            Some(scheduler) => answer_of(scheduler, question),
            None => {
                let error = "the kernel's own scheduler schedules, and tells nothing of its decisions";
                return refuse(RefusalKind::Failed, error);
            }
        },
    };
    answer.unwrap_or_default()
}

fn answer_programs(parts: &Parts, asked: &Asked) -> Vec<u8> {
    if parts.planning.is_none() {
        let error = "nobody plans here; start Hearth with the planners sets and gangs";
        return refuse(RefusalKind::Failed, error);
    }
    let programs = &parts.programs;
    let answer = match asked {
        Asked::Ask(asks, cpus, pids) => programs.ask(*asks, *cpus, pids),
        Asked::Bind(id, pids) => programs.bind(*id, pids).map(|()| *id),
        Asked::Forget(id) => programs.forget(*id).map(|()| *id),
        Asked::List => return serde_json::to_vec(&programs.list()).unwrap_or_default(),
    };
    match answer {
        Ok(id) => serde_json::to_vec(&ProgramId { id }).unwrap_or_default(),
        Err(error) => refuse(error.kind(), error),
    }
}

fn answer_of(scheduler: &mut Scheduler, question: &Question) -> serde_json::Result<Vec<u8>> {
    match question {
        Question::Tasks(tids) => {
            let tasks = tids.iter().filter_map(|&tid| scheduler.task(tid)).collect();
            serde_json::to_vec(&Tasks { tasks })
        }
        Question::Trace(pid) => match scheduler.trace(*pid) {
            Ok(()) => serde_json::to_vec(&Told::default()),
            Err(error) => Ok(refuse(RefusalKind::Failed, error)),
        },
        Question::Decisions => serde_json::to_vec(&Told::from(scheduler.decisions())),
        Question::Untrace => serde_json::to_vec(&Told::from(scheduler.untrace())),
    }
}

/// The daemon's end of the socket.
pub(super) struct Control {
    pub(super) door: Door<UnixListener>,
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
        // Everybody may ask for the status.
        fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).map_err(Error::file(&path))?;
        let door = Door::new(listener, LIMITS).map_err(Error::file(&path))?;
        Ok(Self { door, traced: None })
    }

    /// Hears and answers the clients that are there, without waiting for any.
    pub(super) fn answer(&mut self, parts: &mut Parts, status: impl Fn(&Parts) -> Status) {
        if self.traced.is_some_and(|asked| asked.elapsed() > TRACE_PATIENCE) {
            if let Some(scheduler) = &mut parts.scheduler {
                scheduler.untrace();
            }
            self.traced = None;
        }
        let request_bytes = |user| if is_trusted(user) { LONGEST_REQUEST } else { LONGEST_OF_OTHERS };
        self.door.open(|client| door::local(client, request_bytes));
        let traced = &mut self.traced;
        self.door.turn(
            |request| request.contains(&b'\n'),
            |caller, request| reply(caller, request, parts, &status, traced),
        );
    }
}

fn reply(
    caller: Caller,
    request: &[u8],
    parts: &mut Parts,
    status: impl Fn(&Parts) -> Status,
    traced: &mut Option<Instant>,
) -> Vec<u8> {
    let line = request.split(|&byte| byte == b'\n').next().unwrap_or_default();
    match std::str::from_utf8(line).ok().and_then(Request::parse) {
        Some(request) if request != Request::Status && !is_trusted(caller.user) => {
            refuse(RefusalKind::NotAllowed, "only root may ask for that; run as root: sudo hearth …")
        }
        Some(request) => {
            match request {
                Request::Scheduler(Question::Trace(_) | Question::Decisions) => {
                    *traced = Some(Instant::now())
                }
                Request::Scheduler(Question::Untrace) => *traced = None,
                _ => {}
            }
            answer(&request, parts, status)
        }
        None => refuse(
            RefusalKind::Wrong,
            "unknown request; the socket knows: status, task TID..., trace PID, decisions, untrace, \
             ask gang|set CPUS PID..., bind ID PID..., forget ID, programs, SERVICE PID",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_checked() {
        assert_eq!(Request::parse(""), Some(Request::Status));
        assert_eq!(Request::parse("status\n"), Some(Request::Status));
        assert_eq!(Request::parse("pages 7"), Some(Request::Service("pages".into(), 7)));
        for (line, asked) in [
            ("ask gang 0 7 8", Asked::Ask(Asks::Gang, None, vec![7, 8])),
            ("ask set 4", Asked::Ask(Asks::Set, Some(4), Vec::new())),
            ("bind 3 7", Asked::Bind(3, vec![7])),
            ("forget 3", Asked::Forget(3)),
            ("programs", Asked::List),
        ] {
            assert_eq!(Request::parse(line), Some(Request::Program(asked)), "{line}");
        }
        for wrong in [
            "ask",
            "ask row 0 1",
            "ask set -1",
            "ask set 1 0",
            "bind",
            "bind x 1",
            "forget 1 2",
            "programs 1",
        ] {
            assert_eq!(Request::parse(wrong), None, "{wrong}");
        }
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
