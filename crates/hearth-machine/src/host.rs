//! The topology of a Linux host, from sysfs and procfs.
//!
//! Sysfs describes any shape: holes in the CPU numbers, threads of a core, nodes without memory or
//! without CPUs, CPUs of two kinds, caches that are not described at all (common in virtual
//! machines). [`read`] takes what is there and notes what is missing. [`HostTopology::tree`]
//! prints it; [`HostTopology::to_machine`] makes of it a machine that can be simulated, and says
//! what had to be changed or assumed for that.

mod domains;
mod machine;
mod read;
mod sysfs;
mod tree;

use std::path::PathBuf;

use crate::Holds;

pub use machine::HostMachine;
pub use read::read;

/// What a Linux host says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostTopology {
    /// Name of the processor.
    pub model: Option<String>,
    /// The CPUs that are online, by number. Numbers may have holes.
    pub cpus: Vec<HostCpu>,
    /// The numbers of CPUs that are there and switched off.
    pub offline: Vec<usize>,
    /// The online CPUs of each socket; each CPU is of one.
    pub sockets: Vec<Vec<usize>>,
    /// Memory nodes, by number. Numbers may have holes.
    pub nodes: Vec<HostNode>,
    /// Every cache of every online CPU, once each; inner levels first.
    pub caches: Vec<HostCache>,
    /// Size of a page.
    pub page_bytes: u64,
    /// What could not be read, for people.
    pub notes: Vec<String>,
}

/// A CPU as the kernel counts them: a hardware thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostCpu {
    /// Its number.
    pub id: usize,
    /// All online CPUs of its core, itself among them.
    pub core_cpus: Vec<usize>,
    /// The number of its socket, where it has one. Sockets of different nodes may have the same.
    pub package: Option<u64>,
    /// Its highest clock.
    pub clock_hz: Option<u64>,
}

/// A memory node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostNode {
    /// Its number.
    pub id: usize,
    /// Its online CPUs; there may be none.
    pub cpus: Vec<usize>,
    /// Its memory, where it is known; may be 0.
    pub memory_bytes: Option<u64>,
    /// Distance to each node of the host, in order, as the firmware gives it: 10 is itself.
    pub distances: Vec<u64>,
}

/// One cache.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HostCache {
    /// 1 is nearest the CPU.
    pub level: u64,
    /// What it holds.
    pub holds: Holds,
    /// Capacity, where it is known: device trees of Arm machines often say only who shares a cache.
    pub size_bytes: Option<u64>,
    /// Associativity, where it is known.
    pub ways: Option<u64>,
    /// Size of a line, where it is known.
    pub line_bytes: Option<u64>,
    /// The online CPUs that it serves.
    pub cpus: Vec<usize>,
}

impl HostCache {
    /// `L1i`, `L1d`, `L2`.
    pub fn name(&self) -> String {
        let suffix = match self.holds {
            Holds::Instructions => "i",
            Holds::Data => "d",
            Holds::Both => "",
        };
        format!("L{}{suffix}", self.level)
    }
}

impl HostTopology {
    /// The cores: for each the numbers of its online CPUs.
    pub fn cores(&self) -> Vec<&[usize]> {
        let first = |cpu: &&HostCpu| cpu.core_cpus.first() == Some(&cpu.id);
        self.cpus.iter().filter(first).map(|cpu| cpu.core_cpus.as_slice()).collect()
    }
}

/// Why a host's topology could not be read.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// No CPU is described.
    #[error("{path}: no CPU is described there; is this Linux, and is /sys mounted?")]
    NoCpus {
        /// Where CPUs were looked for.
        path: PathBuf,
    },
    /// A file does not hold what the kernel writes there.
    #[error("{path}: {text:?} is not {expected}; the file should come from a Linux kernel")]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What it holds.
        text: String,
        /// What it should hold.
        expected: &'static str,
    },
}
