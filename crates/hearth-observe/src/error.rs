//! What can keep an observation from being made.

use std::path::PathBuf;

/// Why nothing was observed: what is wrong, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum ObserveError {
    /// Loading BPF programs needs privilege.
    #[error("observing needs the right to load BPF programs; run it as root (sudo hearth ...)")]
    NoPrivilege,
    /// The kernel does not describe its types.
    #[error(
        "this kernel has no {path}, which tells its types; boot one built with CONFIG_DEBUG_INFO_BTF=y, as distributions' kernels are"
    )]
    NoBtf {
        /// Where they should be.
        path: &'static str,
    },
    /// The kernel refused a program.
    #[error(
        "this kernel does not accept the observer's BPF programs ({reason}); use Linux 5.15 or newer with CONFIG_BPF_JIT=y"
    )]
    Refused {
        /// What it said.
        reason: String,
    },
    /// There is no such process.
    #[error("there is no process {pid}; it may have ended: look for it with ps")]
    NoProcess {
        /// Its number.
        pid: u32,
    },
    /// The number is a thread's.
    #[error("{pid} is a thread of process {process}; observe that: --pid {process}")]
    Thread {
        /// The thread.
        pid: u32,
        /// Its process.
        process: u32,
    },
    /// There is no such control group.
    #[error("{path} is no control group (version 2); `systemd-cgls` shows which there are")]
    NoCgroup {
        /// What was looked for.
        path: PathBuf,
    },
    /// The command does not exist.
    #[error("{name}: command not found; check its name, or give its path")]
    NotFound {
        /// As it was given.
        name: String,
    },
    /// The command could not be started.
    #[error("{name} could not be started: {reason}; check that it is a program that you may execute")]
    NotStarted {
        /// As it was given.
        name: String,
        /// What the kernel said.
        reason: std::io::Error,
    },
    /// The host's CPUs could not be read.
    #[error(transparent)]
    Host(#[from] hearth_machine::host::HostError),
    /// There is nothing that counts what programs do to each other.
    #[error(
        "not measurable here: there are no counters of {}: {reason}; on a virtual machine run it on the host, or have \
         the hypervisor show its counters (QEMU: -cpu host,pmu=on)",
        missing.join(", ")
    )]
    NoCounters {
        /// Of what.
        missing: Vec<&'static str>,
        /// Why there is none of the first.
        reason: String,
    },
    /// A system call failed that should not.
    #[error("{what} failed: {reason}; please report this with your kernel's version")]
    System {
        /// What was tried.
        what: &'static str,
        /// What the kernel said.
        reason: std::io::Error,
    },
}

impl ObserveError {
    pub(super) fn from_bpf(error: &libbpf_rs::Error) -> Self {
        Self::Refused { reason: format!("{error:#}") }
    }
}
