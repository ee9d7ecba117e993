//! What a machine is: CPUs, caches, memory nodes, latencies, and what its kernel costs.
//!
//! A [`Machine`] is read from TOML (`machines/*.toml`, see `docs/`), is one of the presets, or
//! describes this host. All quantities are plain integers with their unit in the name.

mod check;
mod cpu_set;
pub mod host;
pub mod list;
pub mod located;
mod moves;
mod presets;
mod text;
pub mod units;

pub use check::{MAX_CPUS, MAX_LEVELS, MAX_MEMORY_BYTES, MAX_NODES};
pub use cpu_set::CpuSet;
pub use moves::MoveCosts;
pub use presets::presets;

/// Why a machine could not be had.
#[derive(Debug, thiserror::Error)]
pub enum MachineError {
    /// The text is wrong, or describes an impossible machine.
    #[error(transparent)]
    Text(#[from] located::LocatedError),
    /// No preset has this name, and no file can be read there.
    #[error(transparent)]
    Unreadable(#[from] located::UnreadableError),
    /// What was made of a host cannot be simulated.
    #[error("this host cannot be simulated: {0}")]
    Host(located::Fault),
}

/// A whole machine. CPUs are numbered from 0, node by node; a cache that is shared by `n` CPUs
/// serves CPUs `0..n`, the next one `n..2n`, and so on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// Name as given on the command line, for example `sgi-4d340`.
    pub name: String,
    /// One sentence for `hearth list machines`.
    pub description: String,
    /// CPU clock in hertz; one cycle is rounded to whole picoseconds.
    pub clock_hz: u64,
    /// Size of a cache line, of every cache of the machine.
    pub line_bytes: u64,
    /// Size of a page.
    pub page_bytes: u64,
    /// Which frame of memory a page gets.
    pub frames: Frames,
    /// Memory nodes, each with its CPUs.
    pub nodes: Vec<Node>,
    /// Caches, from the CPU outwards. The first level may be split (`Instructions` and `Data`).
    pub caches: Vec<Cache>,
    /// Memory and interconnect.
    pub memory: Memory,
    /// Translation look-aside buffer of each CPU.
    pub tlb: Tlb,
    /// What the kernel costs on this machine.
    pub kernel: Kernel,
}

/// Which frame of memory a page gets, of those that its node has: where it lies in physically indexed caches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Frames {
    /// Any, by chance: the free list of a kernel that has been in use.
    #[default]
    Shuffled,
    /// One of the page's colour: pages that follow each other do not meet in a cache until they fill one of its
    /// ways. Page colouring, as in Kessler and Hill, "Page Placement Algorithms for Large Real-Indexed Caches",
    /// TOCS 1992.
    Coloured,
}

/// A memory node: some CPUs and the memory beside them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Number of CPUs; may be 0 for a node that is memory only.
    pub cpus: usize,
    /// Bytes of memory; may be 0.
    pub memory_bytes: u64,
}

/// One level of cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cache {
    /// Name in reports: `L1i`, `L1d`, `L2`.
    pub name: String,
    /// What it holds.
    pub holds: Holds,
    /// Capacity of one instance.
    pub size_bytes: u64,
    /// Associativity; 1 is direct mapped. Replacement is exact LRU.
    pub ways: u32,
    /// How many consecutive CPUs share one instance; 1 is private.
    pub shared_by: usize,
    /// Whether each of the CPUs that share an instance has an equal part of its ways, and replaces no
    /// other's lines.
    pub is_parted: bool,
    /// Cycles for a reference that is found here.
    pub latency_cycles: u32,
}

/// What a cache holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Holds {
    /// Instructions only.
    Instructions,
    /// Data only.
    Data,
    /// Both.
    Both,
}

/// Memory behind the caches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Memory {
    /// Cycles for a reference that is served by the CPU's own node.
    pub local_cycles: u32,
    /// Cycles for a reference that is served by another node.
    pub remote_cycles: u32,
    /// Cycles when the line's home is another node, and a cache of a third one has it modified.
    pub remote_modified_cycles: u32,
    /// Cycles when another CPU's cache has the line modified and supplies it, same node.
    pub cache_to_cache_cycles: u32,
    /// Bandwidth of each node's memory (on a bus machine: of the bus) in bytes a second.
    pub bandwidth_bytes_per_s: u64,
    /// Whether the CPUs of a node share a snooping bus with its memory: a CPU's cache supplies its neighbours with
    /// any line that it has, not only with those that it modified, and a reference to another node takes both
    /// nodes' buses.
    pub has_node_bus: bool,
    /// Bandwidth of each node's way out to the others, in bytes a second; `None` if nobody ever waits for it.
    pub link_bytes_per_s: Option<u64>,
}

/// Translation look-aside buffer, fully associative.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tlb {
    /// Number of entries.
    pub entries: usize,
    /// Of these, those that the kernel keeps for itself.
    pub wired: usize,
    /// Which of the others a refill replaces.
    pub replacement: Replacement,
    /// Cycles of a refill.
    pub refill_cycles: u32,
}

/// Which entry of a TLB a refill replaces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub enum Replacement {
    /// The oldest: first in, first out.
    #[default]
    #[serde(rename = "fifo")]
    Oldest,
    /// Any, by chance.
    #[serde(rename = "random")]
    Random,
}

/// What the kernel costs: time, and what it fetches and touches in the caches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// Time between two timer interrupts of a CPU.
    pub tick_ns: u64,
    /// The CPU that serves I/O interrupts.
    pub io_interrupt_cpu: usize,
    /// Time of one I/O request at the disk: a part for each request and a rate.
    pub io_request_ns: u64,
    /// Bytes a second of the disk.
    pub io_bytes_per_s: u64,
    /// Requests that the disks serve at the same time.
    pub io_parallel: usize,
    /// The node whose CPUs alone can start a request, where the devices hang on one node; `None`: any.
    pub io_node: Option<usize>,
    /// A switch from one task to another (and each look at the run queue).
    pub switch: Path,
    /// A timer interrupt.
    pub tick: Path,
    /// Entry into and return from a system call.
    pub system_call: Path,
    /// A device interrupt, and an interrupt from another CPU.
    pub interrupt: Path,
    /// A page fault: a page is touched first.
    pub page_fault: Path,
    /// Creation of a task, and its end.
    pub fork: Path,
    /// A page moves to another node; copying it comes on top.
    pub page_move: Path,
    /// What a task counted is read and added up, where somebody wants to know.
    pub counters: Path,
}

/// A path through the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Path {
    /// Cycles of execution without any cache miss.
    pub cycles: u32,
    /// Bytes of kernel code fetched.
    pub code_bytes: u32,
    /// Bytes touched of data that all CPUs share (run queue, buffers).
    pub shared_bytes: u32,
    /// Bytes touched of data of this CPU.
    pub cpu_bytes: u32,
    /// Bytes touched of data of the task (its process structure and kernel stack).
    pub task_bytes: u32,
}

impl Machine {
    /// Reads a machine from TOML; `origin` is the file name that errors give.
    ///
    /// # Errors
    /// Text that is not TOML, an unknown key, a wrong unit, or an impossible machine.
    pub fn parse(text: &str, origin: &str) -> Result<Machine, MachineError> {
        Ok(text::parse(text, origin)?)
    }

    /// Writes the machine as TOML that [`Machine::parse`] reads back as the same machine.
    pub fn to_toml(&self) -> String {
        text::to_toml(self)
    }

    /// Number of CPUs.
    pub fn cpus(&self) -> usize {
        self.nodes.iter().map(|node| node.cpus).sum()
    }

    /// The node of a CPU.
    pub fn node_of(&self, cpu: usize) -> usize {
        let mut first = 0;
        for (index, node) in self.nodes.iter().enumerate() {
            first += node.cpus;
            if cpu < first {
                return index;
            }
        }
        panic!("CPU {cpu} is in no node of {}", self.name)
    }

    /// How many CPUs share the outermost data cache: the size of a cache domain.
    pub fn domain_cpus(&self) -> usize {
        self.caches
            .iter()
            .rev()
            .find(|cache| cache.holds != Holds::Instructions)
            .map_or(1, |cache| cache.shared_by)
    }

    /// Pages that fill a way of the largest data cache: how many colours they have.
    pub fn page_colours(&self) -> u64 {
        let data = self.caches.iter().filter(|cache| cache.holds != Holds::Instructions);
        let ways = data.map(|cache| cache.size_bytes / u64::from(cache.ways) / self.page_bytes);
        ways.max().unwrap_or(1).max(1)
    }

    /// Picoseconds of a cycle, rounded.
    pub fn cycle_ps(&self) -> u64 {
        (1_000_000_000_000 + self.clock_hz / 2) / self.clock_hz
    }
}
