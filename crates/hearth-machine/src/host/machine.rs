//! Makes of a host a machine that can be simulated.
//!
//! A [`Machine`] is more regular than a host may be: every CPU is alike, each cache of a level is
//! shared by as many CPUs as the next, sets are a power of two. What does not fit is rounded to
//! what most of the host has; what sysfs does not tell (latencies, bandwidth, the TLB, the
//! kernel's costs) is assumed. Each is noted.

mod caches;
mod cores;

use super::{HostCpu, HostTopology};
use crate::{
    Cache, Frames, Kernel, MAX_MEMORY_BYTES, MAX_NODES, Machine, MachineError, Memory, Node, Path,
    Replacement, Tlb,
};
use cores::Cores;

/// A host as a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostMachine {
    /// The machine.
    pub machine: Machine,
    /// For each CPU of the machine the number of the host's CPU that it stands for.
    pub host_cpus: Vec<usize>,
    /// What was changed, left out or assumed, one sentence each.
    pub notes: Vec<String>,
}

impl HostMachine {
    /// The machine as TOML, with the notes as comments in front.
    pub fn to_toml(&self) -> String {
        let notes: String = self.notes.iter().map(|note| format!("# {note}\n")).collect();
        notes + &self.machine.to_toml()
    }
}

/// Where the clock is not known.
const ASSUMED_CLOCK_HZ: u64 = 2_000_000_000;

/// Where the memory is not known.
const ASSUMED_MEMORY_BYTES: u64 = 1 << 30;

/// Typical of servers and desktops of today, in nanoseconds.
const LOCAL_NS: u64 = 100;
const CACHE_TO_CACHE_NS: u64 = 60;

/// Typical of servers and desktops of today: a core's part, and what a node's memory gives.
const CORE_BYTES_PER_S: u64 = 10_000_000_000;
const NODE_BYTES_PER_S: std::ops::RangeInclusive<u64> = 20_000_000_000..=300_000_000_000;

impl HostTopology {
    /// The host as a machine that can be simulated, with notes of what was changed or assumed.
    ///
    /// # Errors
    /// A host so unusual that what was made of it cannot be simulated.
    pub fn to_machine(&self) -> Result<HostMachine, MachineError> {
        let mut notes = self.notes.clone();
        let cores = Cores::of(self, &mut notes);
        let clock_hz = self.clock_hz(&mut notes);
        let line_bytes = self.line_bytes(&mut notes);
        let page_bytes = self.page_bytes.clamp(1 << 10, 2 << 20).next_power_of_two().max(line_bytes);
        let nodes = self.machine_nodes(&cores, page_bytes, &mut notes);
        let caches = caches::of(self, &cores, line_bytes, &mut notes);
        let kernel = kernel_of_today()?;
        let page_move = if nodes.len() > 1 { kernel.page_move } else { Path::default() };
        let machine = Machine {
            name: "this-host".to_owned(),
            description: self.describe(&cores),
            clock_hz,
            line_bytes,
            page_bytes,
            frames: Frames::default(),
            memory: self.memory(&nodes, &caches, clock_hz),
            nodes,
            caches,
            tlb: Tlb { entries: 1536, wired: 0, replacement: Replacement::Oldest, refill_cycles: 30 },
            kernel: Kernel { io_interrupt_cpu: 0, page_move, ..kernel },
        };
        notes.push("latencies, bandwidth, TLB and kernel costs are typical ones, not this host's".to_owned());
        machine.check().map_err(MachineError::Host)?;
        Ok(HostMachine { machine, host_cpus: cores.all(), notes })
    }

    fn describe(&self, cores: &Cores) -> String {
        let model = self.model.as_deref().unwrap_or("a processor of unknown name");
        let letters = model.chars().filter(|letter| !letter.is_control()).take(80);
        format!("{} cores as this host has them: {}", cores.count(), letters.collect::<String>())
    }

    fn clock_hz(&self, notes: &mut Vec<String>) -> u64 {
        let one_of_core = |cpu: &&HostCpu| cpu.core_cpus.first() == Some(&cpu.id);
        let clocks = self.cpus.iter().filter(one_of_core).filter_map(|cpu| cpu.clock_hz);
        let Some(clock_hz) = most_common(clocks.clone()) else {
            notes.push("the clock is not known: 2 GHz is assumed".to_owned());
            return ASSUMED_CLOCK_HZ;
        };
        if clocks.clone().any(|other| other != clock_hz) {
            notes.push("cores have different clocks: all have the most common one here".to_owned());
        }
        clock_hz.clamp(1_000_000, 20_000_000_000)
    }

    fn line_bytes(&self, notes: &mut Vec<String>) -> u64 {
        let lines = self.caches.iter().filter_map(|cache| cache.line_bytes);
        let line_bytes =
            most_common(lines.clone()).filter(|line| line.is_power_of_two() && (8..=1024).contains(line));
        if lines.clone().any(|other| Some(other) != line_bytes) {
            let chosen = line_bytes.unwrap_or(64);
            notes.push(format!("caches have different line sizes: all have {chosen} bytes here"));
        }
        line_bytes.unwrap_or(64)
    }

    /// Nodes with their share of the cores that are kept; nodes with neither cores nor memory are left out, and
    /// those of memory alone where there are too many.
    fn machine_nodes(&self, cores: &Cores, page_bytes: u64, notes: &mut Vec<String>) -> Vec<Node> {
        let total: u64 = self.nodes.iter().filter_map(|node| node.memory_bytes).fold(0, u64::saturating_add);
        let share = |bytes: u64| {
            let scaled =
                u128::from(bytes) * u128::from(MAX_MEMORY_BYTES.min(total)) / u128::from(total.max(1));
            u64::try_from(scaled).unwrap_or(0) / page_bytes * page_bytes
        };
        let node = |(index, node): (usize, &super::HostNode)| Node {
            cpus: cores.of_node(index).len(),
            memory_bytes: share(node.memory_bytes.unwrap_or(0)),
        };
        let all: Vec<Node> = self.nodes.iter().enumerate().map(node).collect();
        let mut nodes: Vec<Node> =
            all.into_iter().filter(|node| node.cpus > 0 || node.memory_bytes > 0).collect();
        let mut room = MAX_NODES.saturating_sub(nodes.iter().filter(|node| node.cpus > 0).count());
        let count = nodes.len();
        nodes.retain(|node| {
            let is_kept = node.cpus > 0 || room > 0;
            room -= usize::from(is_kept && node.cpus == 0);
            is_kept
        });
        if nodes.len() < count {
            let (kept, what) = (nodes.len(), "nodes are kept, those with CPUs first");
            notes.push(format!("{kept} of {count} {what}: a machine has at most {MAX_NODES}"));
        }
        if total > MAX_MEMORY_BYTES {
            notes.push("the memory is scaled down to 64 GiB, the most that a machine may have".to_owned());
        }
        if nodes.iter().map(|node| node.memory_bytes).sum::<u64>() < 1 << 20 {
            notes.push("the memory is not known: 1 GiB is assumed".to_owned());
            if let Some(first) = nodes.first_mut() {
                first.memory_bytes = ASSUMED_MEMORY_BYTES;
            }
        }
        nodes
    }

    fn memory(&self, nodes: &[Node], caches: &[Cache], clock_hz: u64) -> Memory {
        let cycles = |ns: u64| u32::try_from(ns.saturating_mul(clock_hz) / 1_000_000_000).unwrap_or(u32::MAX);
        let outermost = caches.iter().map(|cache| cache.latency_cycles).max().unwrap_or(0);
        let local_cycles = cycles(LOCAL_NS).max(outermost + 1);
        let remote_cycles = match nodes.len() {
            1 => local_cycles,
            _ => cycles(LOCAL_NS * self.remote_distance() / 10).max(local_cycles),
        };
        let widest = nodes.iter().map(|node| node.cpus).max().unwrap_or(1) as u64;
        let bandwidth = (widest * CORE_BYTES_PER_S).clamp(*NODE_BYTES_PER_S.start(), *NODE_BYTES_PER_S.end());
        Memory {
            local_cycles,
            remote_cycles,
            remote_modified_cycles: remote_cycles,
            cache_to_cache_cycles: cycles(CACHE_TO_CACHE_NS).max(outermost),
            bandwidth_bytes_per_s: bandwidth,
            has_node_bus: false,
            link_bytes_per_s: None,
        }
    }

    /// The mean distance between two different nodes, where 10 is local. Firmware exaggerates (32
    /// for a second socket) so that kernels reclaim memory first; twice local is what is measured.
    fn remote_distance(&self) -> u64 {
        let remote = self
            .nodes
            .iter()
            .flat_map(|node| node.distances.iter().copied())
            .filter(|far| (11..=254).contains(far));
        let (sum, count) = remote.fold((0_u64, 0), |(sum, count), far| (sum + far, count + 1));
        sum.checked_div(count).unwrap_or(20).min(20)
    }
}

/// The kernel of the preset for a server of today.
fn kernel_of_today() -> Result<Kernel, MachineError> {
    Ok(Machine::load("server-2s")?.kernel)
}

/// The value that occurs most often; of several such the largest.
fn most_common<T: Ord>(values: impl Iterator<Item = T>) -> Option<T> {
    let mut counts = std::collections::BTreeMap::new();
    for value in values {
        *counts.entry(value).or_insert(0_usize) += 1;
    }
    counts.into_iter().max_by(|a, b| (a.1, &a.0).cmp(&(b.1, &b.0))).map(|(value, _)| value)
}
