//! What can go wrong with the real kernel: what is wrong, and what to do.

use crate::daemon::RefusalKind;
use hearth_host::privilege;
use hearth_policy::planners;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// Why the scheduler could not be loaded, or something of the kernel could not be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Something of the machine.
    #[error(transparent)]
    Host(#[from] hearth_host::Error),
    /// Not enough privilege.
    #[error("loading a scheduler needs CAP_SYS_ADMIN (or CAP_BPF and CAP_PERFMON); {advice}")]
    NoPrivilege {
        /// What is lacking, and what to do.
        advice: String,
    },
    /// Another sched_ext scheduler is active.
    #[error("the scheduler {name} is loaded already; end it first{hint}")]
    Busy {
        /// What it calls itself.
        name: String,
        /// How to end it, if it is ours.
        hint: &'static str,
    },
    /// A daemon runs already.
    #[error(
        "Hearth runs already{}; `hearth status` shows it, `hearth stop` ends it",
        pid.map(|pid| format!(" (process {pid})")).unwrap_or_default()
    )]
    Running {
        /// Which.
        pid: Option<u32>,
    },
    /// A daemon is ending, and takes longer than one waits.
    #[error(
        "Hearth{} has been ending for {:.1} s; `hearth status` tells when it has ended{}",
        pid.map(|pid| format!(" (process {pid})")).unwrap_or_default(),
        ending_for.as_secs_f64(),
        pid.map(|pid| format!(", kill -9 {pid} ends it at once")).unwrap_or_default()
    )]
    Ending {
        /// Which.
        pid: Option<u32>,
        /// Since it began to.
        ending_for: Duration,
    },
    /// The daemon is there and does not answer.
    #[error(
        "Hearth runs, but has not answered for {} s: it may be loading the scheduler again; try again in a moment",
        patience.as_secs()
    )]
    Silent {
        /// How long it was waited for.
        patience: Duration,
    },
    /// Somebody traces already.
    #[error("another `hearth explain` or `hearth trace` is under way; wait until it has ended")]
    Traced,
    /// More CPUs than the scheduler can serve.
    #[error("this machine numbers its CPUs up to {greatest}; the scheduler serves those below {limit}")]
    TooManyCpus {
        /// The greatest CPU number.
        greatest: usize,
        /// The scheduler's limit.
        limit: usize,
    },
    /// The scheduler's object lacks data that hosts write or read.
    #[error("the scheduler that is built in has no {section}: this command is broken, build it again")]
    Incomplete {
        /// Which.
        section: &'static str,
    },
    /// The daemon does not do what it was asked for.
    #[error("{error}")]
    Answer {
        /// What it says.
        error: String,
        /// Why.
        kind: RefusalKind,
    },
    /// No planner has this name.
    #[error("there is no planner {name}; there are: none, {}", planner_names())]
    NoPlanner {
        /// As given.
        name: String,
    },
    /// The kernel refuses the program.
    #[error(
        "the kernel refuses the scheduler ({step}): {source}; `hearth doctor` says what this kernel can do{log}"
    )]
    Refused {
        /// open, load or attach.
        step: &'static str,
        /// What libbpf says.
        source: libbpf_rs::Error,
        /// The last of what libbpf and the verifier printed, after a line break.
        log: String,
    },
    /// The address of the metrics.
    #[error("metrics cannot be served at {address}: {source}; choose another address with --metrics")]
    Listen {
        /// Which.
        address: std::net::SocketAddr,
        /// What the system says.
        source: io::Error,
    },
    /// The host's topology.
    #[error(transparent)]
    Topology(#[from] hearth_machine::host::HostError),
}

/// The names of those that the scheduler's thread can have.
fn planner_names() -> String {
    let names = planners::of_linux().map(|kind| kind.name).filter(|name| planners::named(name).is_some());
    names.collect::<Vec<_>>().join(", ")
}

impl Error {
    pub(crate) fn refused(step: &'static str, source: libbpf_rs::Error) -> Self {
        match source.kind() {
            libbpf_rs::ErrorKind::PermissionDenied if !privilege::may_load() => {
                Self::NoPrivilege { advice: privilege::advice() }
            }
            _ => Self::Refused { step, source, log: crate::log::last_lines() },
        }
    }

    pub(crate) fn file(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let make = hearth_host::Error::file(path);
        move |source| Self::Host(make(source))
    }
}
