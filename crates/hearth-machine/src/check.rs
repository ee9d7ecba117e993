//! What makes a machine possible. The first thing that does not is returned.

mod caches;

pub use caches::MAX_LEVELS;

use crate::located::{Fault, name, within};
use crate::units::{Bytes, BytesPerSecond, Hertz, Nanoseconds};
use crate::{Kernel, Machine, Memory, Path, Tlb};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// The most CPUs of a machine: as many as the scheduler serves.
pub const MAX_CPUS: usize = 512;

/// The most nodes of a machine.
pub const MAX_NODES: usize = 64;

/// The most memory of a machine: the simulator keeps flat arrays over all of it.
pub const MAX_MEMORY_BYTES: u64 = 64 * GIB;

/// The largest cost in cycles: far beyond any real one, and sums of them stay in range.
const MAX_CYCLES: u32 = 1_000_000_000;

impl Machine {
    /// Checks that the machine can be simulated. [`Machine::parse`] has done so already; a machine
    /// that was put together in code has not been checked.
    ///
    /// # Errors
    /// The first impossible thing, with the TOML key that holds it.
    pub fn check(&self) -> Result<(), Fault> {
        name("name", &self.name)?;
        within("clock", self.clock_hz, MEGAHERTZ, 20_000 * MEGAHERTZ, Hertz)?;
        power_of_two("line", self.line_bytes, 8, KIB)?;
        power_of_two("page", self.page_bytes, KIB.max(self.line_bytes), 2 * MIB)?;
        self.check_nodes()?;
        caches::check(self)?;
        self.memory.check(self.nodes.len(), self.caches.iter().map(|cache| cache.latency_cycles).max())?;
        self.tlb.check()?;
        self.kernel.check(self.cpus(), self.nodes.len())
    }

    fn check_nodes(&self) -> Result<(), Fault> {
        within("node", self.nodes.len(), 1, MAX_NODES, |nodes| format!("{nodes} nodes"))?;
        let mut cpus = 0_usize;
        let mut memory_bytes = 0_u64;
        for (index, node) in self.nodes.iter().enumerate() {
            cpus = cpus.saturating_add(node.cpus);
            memory_bytes = memory_bytes.saturating_add(node.memory_bytes);
            if cpus > MAX_CPUS {
                let what = format!("with this node the machine has {cpus} CPUs");
                return fault(format!("node[{index}].cpus"), what, format!("leave at most {MAX_CPUS}"));
            }
            if memory_bytes > MAX_MEMORY_BYTES {
                let what = format!("with this node the machine has {} of memory", Bytes(memory_bytes));
                let mend = format!("leave at most {} in all nodes together", Bytes(MAX_MEMORY_BYTES));
                return fault(format!("node[{index}].memory"), what, mend);
            }
            if !node.memory_bytes.is_multiple_of(self.page_bytes) {
                let page = Bytes(self.page_bytes);
                let what = format!("{} is not a whole number of {page} pages", Bytes(node.memory_bytes));
                return fault(format!("node[{index}].memory"), what, format!("write a multiple of {page}"));
            }
        }
        if cpus == 0 {
            return fault("node", "the machine has no CPU", "give a node `cpus = 1` or more");
        }
        if memory_bytes < MIB {
            let what = format!("the machine has {} of memory", Bytes(memory_bytes));
            return fault("node", what, "give a node `memory = \"1 MiB\"` or more");
        }
        Ok(())
    }
}

const MEGAHERTZ: u64 = 1_000_000;

impl Memory {
    fn check(&self, nodes: usize, outermost_cycles: Option<u32>) -> Result<(), Fault> {
        let outermost = outermost_cycles.unwrap_or(0);
        within("memory.local", self.local_cycles, 1, MAX_CYCLES, cycles)?;
        within("memory.remote", self.remote_cycles, 1, MAX_CYCLES, cycles)?;
        within("memory.cache_to_cache", self.cache_to_cache_cycles, 1, MAX_CYCLES, cycles)?;
        if self.local_cycles <= outermost {
            let what =
                format!("memory at {} cycles is no slower than a cache at {outermost}", self.local_cycles);
            return fault("memory.local", what, "latencies grow outwards: give memory the largest");
        }
        if self.remote_cycles < self.local_cycles {
            let what = format!("remote memory at {} cycles is faster than local", self.remote_cycles);
            return fault("memory.remote", what, format!("write {} or more", self.local_cycles));
        }
        if nodes == 1 && self.remote_cycles != self.local_cycles {
            let what = "there is one node, so no memory is remote";
            return fault("memory.remote", what, "remove `remote`, or add a [[node]]");
        }
        within("memory.remote_modified", self.remote_modified_cycles, 1, MAX_CYCLES, cycles)?;
        if self.remote_modified_cycles < self.remote_cycles {
            let what = format!(
                "a line that a third node modified, at {} cycles, is faster than one of its home's memory",
                self.remote_modified_cycles
            );
            return fault("memory.remote_modified", what, format!("write {} or more", self.remote_cycles));
        }
        if let Some(rate) = self.link_bytes_per_s {
            within("memory.link", rate, 1_000_000, 100_000_000_000_000, BytesPerSecond)?;
        }
        if nodes == 1 && self.link_bytes_per_s.is_some() {
            let what = "there is one node, so nothing is linked";
            return fault("memory.link", what, "remove `link`, or add a [[node]]");
        }
        if self.cache_to_cache_cycles < outermost {
            let what = format!(
                "another CPU's cache at {} cycles is faster than the own",
                self.cache_to_cache_cycles
            );
            return fault("memory.cache_to_cache", what, format!("write {outermost} or more"));
        }
        within("memory.bandwidth", self.bandwidth_bytes_per_s, 1_000_000, 100_000_000_000_000, BytesPerSecond)
    }
}

impl Tlb {
    fn check(&self) -> Result<(), Fault> {
        within("tlb.entries", self.entries, 1, 1 << 16, std::convert::identity)?;
        if self.wired >= self.entries {
            let what = format!("of {} entries, {} cannot be wired", self.entries, self.wired);
            return fault(
                "tlb.wired",
                what,
                format!("leave one at least: write {} or less", self.entries - 1),
            );
        }
        within("tlb.refill", self.refill_cycles, 0, MAX_CYCLES, cycles)
    }
}

impl Kernel {
    fn check(&self, cpus: usize, nodes: usize) -> Result<(), Fault> {
        within("kernel.tick", self.tick_ns, 10_000, 1_000_000_000, Nanoseconds)?;
        if self.io_interrupt_cpu >= cpus {
            let what = format!("there is no CPU {} among {cpus}", self.io_interrupt_cpu);
            return fault("kernel.io_interrupt_cpu", what, format!("write a CPU from 0 to {}", cpus - 1));
        }
        within("kernel.io.request", self.io_request_ns, 0, 100_000_000_000, Nanoseconds)?;
        within("kernel.io.rate", self.io_bytes_per_s, 1_000, 100_000_000_000_000, BytesPerSecond)?;
        within("kernel.io.parallel", self.io_parallel, 1, 1 << 16, |requests| {
            format!("{requests} requests")
        })?;
        if let Some(node) = self.io_node.filter(|&node| node >= nodes) {
            let what = format!("there is no node {node} among {nodes}");
            return fault("kernel.io.node", what, format!("write a node from 0 to {}", nodes - 1));
        }
        if nodes == 1 && self.page_move != Path::default() {
            let what = "with one node no page ever moves";
            return fault("kernel.page_move", what, "remove `page_move`, or add a [[node]]");
        }
        self.switch.check("switch")?;
        self.tick.check("timer")?;
        self.system_call.check("system_call")?;
        self.interrupt.check("interrupt")?;
        self.page_fault.check("page_fault")?;
        self.fork.check("fork")?;
        self.page_move.check("page_move")?;
        self.counters.check("counters")
    }
}

impl Path {
    fn check(&self, path: &str) -> Result<(), Fault> {
        within(format!("kernel.{path}.cycles"), self.cycles, 0, MAX_CYCLES, cycles)?;
        let parts = [
            ("code", self.code_bytes),
            ("shared", self.shared_bytes),
            ("cpu", self.cpu_bytes),
            ("task", self.task_bytes),
        ];
        for (part, bytes) in parts {
            within(format!("kernel.{path}.{part}"), u64::from(bytes), 0, MIB, Bytes)?;
        }
        Ok(())
    }
}

fn fault<T>(key: impl Into<String>, what: impl Into<String>, mend: impl Into<String>) -> Result<T, Fault> {
    Err(Fault::new(key, what, mend))
}

fn cycles(value: u32) -> String {
    format!("{value} cycles")
}

fn power_of_two(key: &str, bytes: u64, least: u64, most: u64) -> Result<(), Fault> {
    within(key, bytes, least, most, Bytes)?;
    if bytes.is_power_of_two() {
        return Ok(());
    }
    let what = format!("{} is not a power of two", Bytes(bytes));
    fault(key, what, format!("write {}", neighbours(bytes, Bytes)))
}

/// The powers of two below and above a number.
fn neighbours<S: std::fmt::Display>(value: u64, show: impl Fn(u64) -> S) -> String {
    let above = value.next_power_of_two();
    format!("{} or {}", show(above / 2), show(above))
}
