//! What can go wrong with the real kernel: what is wrong, and what to do.

use std::io;
use std::path::PathBuf;

/// Why the scheduler could not be loaded, or something of the kernel could not be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The kernel has no sched_ext.
    #[error(
        "this kernel ({release}) cannot load a scheduler: {reason}; boot one of 6.12 or later built with \
         CONFIG_SCHED_CLASS_EXT, or measure without one: hearth observe"
    )]
    NoSchedExt {
        /// What `uname -r` prints.
        release: String,
        /// What it lacks.
        reason: String,
    },
    /// Not enough privilege.
    #[error(
        "loading a scheduler needs CAP_SYS_ADMIN (or CAP_BPF and CAP_PERFMON); run as root: sudo hearth …"
    )]
    NoPrivilege,
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
    /// A cgroup that cannot be meant.
    #[error("cgroup {name}: {problem}")]
    Cgroup {
        /// As it was given.
        name: String,
        /// What is wrong, and what to do.
        problem: String,
    },
    /// The address of the metrics.
    #[error("metrics cannot be served at {address}: {source}; choose another address with --metrics")]
    Listen {
        /// Which.
        address: std::net::SocketAddr,
        /// What the system says.
        source: io::Error,
    },
    /// A file of the host.
    #[error("{}: {source}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// Pages of more nodes than there may be.
    #[error("pages cannot be followed: {0}; leave them with --pages none")]
    Pages(#[from] hearth_policy::pages::PlannerError),
    /// Nowhere to move pages to.
    #[error(
        "only one memory node has memory, so no page can be nearer to a CPU than it is; nothing was started"
    )]
    OneNode,
    /// The host's topology.
    #[error(transparent)]
    Topology(#[from] hearth_machine::host::HostError),
}

impl Error {
    pub(crate) fn refused(step: &'static str, source: libbpf_rs::Error) -> Self {
        match source.kind() {
            libbpf_rs::ErrorKind::PermissionDenied if !rustix::process::geteuid().is_root() => {
                Self::NoPrivilege
            }
            _ => Self::Refused { step, source, log: crate::log::last_lines() },
        }
    }

    pub(crate) fn file(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { path, source }
    }
}
