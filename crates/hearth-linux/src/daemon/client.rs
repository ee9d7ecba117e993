//! The client's end of the daemon's socket.

use super::status::{ProgramId, Refusal, Status, Tasks, Told};
use crate::{Error, ProgramStatus};
use serde::de::DeserializeOwned;
use std::io::{self, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// How long an answer is waited for.
const PATIENCE: Duration = Duration::from_secs(5);

/// Asks the daemon for its status; `None` if there is none.
pub fn ask_status(folder: &Path) -> Result<Option<Status>, Error> {
    ask(folder, "status")
}

/// Asks the daemon what the scheduler remembers of threads; `None` if there is none.
pub fn ask_tasks(folder: &Path, tids: &[i32]) -> Result<Option<Tasks>, Error> {
    ask(folder, &format!("task {}", words(tids)))
}

/// Has the daemon tell decisions from now on: about a process or thread, or all.
pub fn ask_trace(folder: &Path, pid: Option<i32>) -> Result<Option<Told>, Error> {
    ask(folder, &format!("trace {}", pid.unwrap_or(0)))
}

/// Asks the daemon for the decisions since the last time.
pub fn ask_decisions(folder: &Path) -> Result<Option<Told>, Error> {
    ask(folder, "decisions")
}

/// Asks what one of the daemon's services knows of a process; `None` if there is no daemon, no such
/// service, or it knows nothing.
pub fn ask_service<T: DeserializeOwned>(folder: &Path, service: &str, pid: i32) -> Result<Option<T>, Error> {
    Ok(ask::<Option<T>>(folder, &format!("{service} {pid}"))?.flatten())
}

/// Has the daemon tell no more decisions; returns the last ones.
pub fn ask_untrace(folder: &Path) -> Result<Option<Told>, Error> {
    ask(folder, "untrace")
}

/// Has the daemon schedule processes, and those that they begin, as one program: as a gang, or in a set of its
/// own, on so many CPUs at most. Gives its number; `None` if there is no daemon.
pub fn ask_program(
    folder: &Path,
    is_gang: bool,
    cpus: Option<usize>,
    pids: &[i32],
) -> Result<Option<u32>, Error> {
    let asks = if is_gang { "gang" } else { "set" };
    let answer = ask(folder, &format!("ask {asks} {} {}", cpus.unwrap_or(0), words(pids)))?;
    Ok(answer.map(|ProgramId { id }| id))
}

/// Adds processes to a program; `None` if there is no daemon.
pub fn ask_bind(folder: &Path, id: u32, pids: &[i32]) -> Result<Option<()>, Error> {
    Ok(ask::<ProgramId>(folder, &format!("bind {id} {}", words(pids)))?.map(|_| ()))
}

/// Has a program scheduled as others are; `None` if there is no daemon.
pub fn ask_forget(folder: &Path, id: u32) -> Result<Option<()>, Error> {
    Ok(ask::<ProgramId>(folder, &format!("forget {id}"))?.map(|_| ()))
}

/// The programs that are scheduled as one; `None` if there is no daemon.
pub fn ask_programs(folder: &Path) -> Result<Option<Vec<ProgramStatus>>, Error> {
    ask(folder, "programs")
}

fn words(numbers: &[i32]) -> String {
    numbers.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}

fn ask<T: DeserializeOwned>(folder: &Path, request: &str) -> Result<Option<T>, Error> {
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
        .set_read_timeout(Some(PATIENCE))
        .and_then(|()| writeln!(stream, "{request}"))
        .and_then(|()| stream.shutdown(Shutdown::Write))
        .and_then(|()| stream.read_to_string(&mut text));
    match asked {
        // It ends in this moment.
        Err(error) if matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe) => {
            return Ok(None);
        }
        // It ended before it had an answer.
        Ok(0) => return Ok(None),
        Err(error) if error.kind() == ErrorKind::WouldBlock => {
            return Err(Error::Silent { patience: PATIENCE });
        }
        asked => asked.map_err(Error::file(&path))?,
    };
    if let Ok(Refusal { error, kind }) = serde_json::from_str(&text) {
        return Err(Error::Answer { error, kind });
    }
    serde_json::from_str(&text).map(Some).map_err(|error| Error::file(&path)(io::Error::other(error)))
}
