//! The daemon's socket: whoever connects gets one JSON object, the daemon's status.

use super::Job;
use super::metrics::Metrics;
use crate::{CpuStats, Error, Scheduler};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::{Deserialize, Serialize};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{fs, io};

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
    /// The policy's name.
    pub policy: String,
    /// The cgroup whose tasks alone are Hearth's.
    pub only: Option<PathBuf>,
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

pub(super) fn status(scheduler: &Scheduler, job: &Job, since: Instant) -> Status {
    let cpus = scheduler.stats().into_iter().map(|(cpu, stats)| CpuStatus { cpu, stats }).collect();
    Status {
        schema: 1,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        pid: std::process::id(),
        policy: job.policy.name.clone(),
        only: job.only.clone(),
        up_s: since.elapsed().as_secs_f64(),
        cpus,
    }
}

/// Asks the daemon; `None` if there is none.
pub fn ask_status(folder: &Path) -> Result<Option<Status>, Error> {
    let path = folder.join("socket");
    let mut stream = match UnixStream::connect(&path) {
        Ok(stream) => stream,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused) => {
            return Ok(None);
        }
        Err(error) => return Err(Error::file(&path)(error)),
    };
    let mut text = String::new();
    stream
        .set_read_timeout(Some(Duration::from_secs(5)))
        .and_then(|()| stream.read_to_string(&mut text))
        .map_err(Error::file(&path))?;
    serde_json::from_str(&text).map(Some).map_err(|error| Error::file(&path)(io::Error::other(error)))
}

pub(super) struct Control(UnixListener);

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
        Ok(Self(listener))
    }

    /// Answers clients, and those of the metrics, for up to `time`, or until a signal comes.
    pub(super) fn serve(&mut self, time: Duration, metrics: Option<&Metrics>, status: impl Fn() -> Status) {
        let timeout = Timespec { tv_sec: time.as_secs() as i64, tv_nsec: i64::from(time.subsec_nanos()) };
        let mut ready = vec![PollFd::new(&self.0, PollFlags::IN)];
        ready.extend(metrics.map(|metrics| PollFd::new(metrics, PollFlags::IN)));
        if !matches!(poll(&mut ready, Some(&timeout)), Ok(count) if count > 0) {
            return;
        }
        if let Ok((mut client, _)) = self.0.accept() {
            // A client that goes away or does not read is its own loss.
            let _ = client.set_write_timeout(Some(CLIENT_TIMEOUT));
            let _ = serde_json::to_vec(&status()).map(|text| client.write_all(&text));
        }
        if let Some(metrics) = metrics {
            metrics.answer(&status);
        }
    }
}
