//! A machine as TOML: the layout of `machines/*.toml`.

use serde::{Deserialize, Serialize};

use crate::located::{self, Fault, LocatedError};
use crate::units::{Bytes, BytesPerSecond, Hertz, Nanoseconds};
use crate::{Cache, Frames, Holds, Kernel, MAX_NODES, Machine, Memory, Node, Path, Replacement, Tlb};

/// The file as a whole, before it is checked.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct File {
    name: String,
    description: String,
    clock: Hertz,
    line: Bytes,
    page: Bytes,
    #[serde(default, skip_serializing_if = "is_default")]
    frames: Frames,
    node: Vec<NodeText>,
    cache: Vec<CacheText>,
    memory: MemoryText,
    tlb: TlbText,
    kernel: KernelText,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct NodeText {
    #[serde(default = "one", skip_serializing_if = "is_one")]
    count: usize,
    cpus: usize,
    memory: Bytes,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct CacheText {
    name: String,
    holds: HoldsText,
    size: Bytes,
    ways: u32,
    #[serde(default = "one", skip_serializing_if = "is_one")]
    shared_by: usize,
    #[serde(default, skip_serializing_if = "is_default")]
    parted: bool,
    latency: u32,
}

#[derive(Clone, Copy, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
enum HoldsText {
    Instructions,
    Data,
    Both,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct MemoryText {
    local: u32,
    /// May be left out where there is one node.
    remote: Option<u32>,
    /// As `remote`, if left out.
    remote_modified: Option<u32>,
    cache_to_cache: u32,
    bandwidth: BytesPerSecond,
    #[serde(default, skip_serializing_if = "is_default")]
    bus: bool,
    /// Without limit, if left out.
    link: Option<BytesPerSecond>,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct TlbText {
    entries: usize,
    #[serde(default, skip_serializing_if = "is_default")]
    wired: usize,
    #[serde(default, skip_serializing_if = "is_default")]
    replacement: Replacement,
    refill: u32,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct KernelText {
    tick: Nanoseconds,
    io_interrupt_cpu: usize,
    io: IoText,
    switch: PathText,
    timer: PathText,
    system_call: PathText,
    interrupt: PathText,
    page_fault: PathText,
    fork: PathText,
    /// Machines of several nodes only.
    page_move: Option<PathText>,
    /// Nothing, if left out.
    counters: Option<PathText>,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct IoText {
    request: Nanoseconds,
    rate: BytesPerSecond,
    parallel: usize,
    node: Option<usize>,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct PathText {
    cycles: u32,
    #[serde(default, skip_serializing_if = "is_default")]
    code: Bytes,
    #[serde(default, skip_serializing_if = "is_default")]
    shared: Bytes,
    #[serde(default, skip_serializing_if = "is_default")]
    cpu: Bytes,
    #[serde(default, skip_serializing_if = "is_default")]
    task: Bytes,
}

fn one() -> usize {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_one(value: &usize) -> bool {
    *value == 1
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Reads and checks a machine.
pub(crate) fn parse(text: &str, origin: &str) -> Result<Machine, LocatedError> {
    let file: File = located::read(text, origin)?;
    let tables = nodes_of_tables(&file.node).map_err(|fault| fault.locate(text, origin))?;
    let machine = file.into_machine(&tables).map_err(|fault| fault.locate(text, origin))?;
    machine.check().map_err(|fault| at_table(fault, &tables).locate(text, origin))?;
    Ok(machine)
}

/// For each node of the machine the `[[node]]` table that it comes from.
fn nodes_of_tables(nodes: &[NodeText]) -> Result<Vec<usize>, Fault> {
    let mut tables = Vec::new();
    for (index, node) in nodes.iter().enumerate() {
        if node.count == 0 || node.count > MAX_NODES - tables.len() {
            let what =
                format!("a machine has 1 to {MAX_NODES} nodes, and `count = {}` does not fit", node.count);
            return Err(Fault::new(format!("node[{index}].count"), what, "give the number of such nodes"));
        }
        tables.extend(std::iter::repeat_n(index, node.count));
    }
    Ok(tables)
}

/// Turns a fault at a node of the machine into one at the table that the node comes from.
fn at_table(mut fault: Fault, tables: &[usize]) -> Fault {
    let node = fault.key.strip_prefix("node[").and_then(|rest| rest.split_once(']'));
    if let Some((index, rest)) = node
        && let Some(table) = index.parse::<usize>().ok().and_then(|index| tables.get(index))
    {
        fault.key = format!("node[{table}]{rest}");
    }
    fault
}

impl File {
    fn into_machine(self, tables: &[usize]) -> Result<Machine, Fault> {
        let node =
            |index: &usize| Node { cpus: self.node[*index].cpus, memory_bytes: self.node[*index].memory.0 };
        let nodes: Vec<Node> = tables.iter().map(node).collect();
        let remote_cycles = match self.memory.remote {
            Some(cycles) => cycles,
            None if nodes.len() <= 1 => self.memory.local,
            None => {
                let what = format!("`remote` is missing, and there are {} nodes", nodes.len());
                return Err(Fault::new(
                    "memory",
                    what,
                    "add the cycles of a reference to another node's memory",
                ));
            }
        };
        Ok(Machine {
            name: self.name,
            description: self.description,
            clock_hz: self.clock.0,
            line_bytes: self.line.0,
            page_bytes: self.page.0,
            frames: self.frames,
            nodes,
            caches: self.cache.into_iter().map(Cache::from).collect(),
            memory: Memory {
                local_cycles: self.memory.local,
                remote_cycles,
                remote_modified_cycles: self.memory.remote_modified.unwrap_or(remote_cycles),
                cache_to_cache_cycles: self.memory.cache_to_cache,
                bandwidth_bytes_per_s: self.memory.bandwidth.0,
                has_node_bus: self.memory.bus,
                link_bytes_per_s: self.memory.link.map(|rate| rate.0),
            },
            tlb: Tlb {
                entries: self.tlb.entries,
                wired: self.tlb.wired,
                replacement: self.tlb.replacement,
                refill_cycles: self.tlb.refill,
            },
            kernel: self.kernel.into_kernel()?,
        })
    }
}

impl From<CacheText> for Cache {
    fn from(text: CacheText) -> Self {
        Cache {
            name: text.name,
            holds: match text.holds {
                HoldsText::Instructions => Holds::Instructions,
                HoldsText::Data => Holds::Data,
                HoldsText::Both => Holds::Both,
            },
            size_bytes: text.size.0,
            ways: text.ways,
            shared_by: text.shared_by,
            is_parted: text.parted,
            latency_cycles: text.latency,
        }
    }
}

impl KernelText {
    fn into_kernel(self) -> Result<Kernel, Fault> {
        Ok(Kernel {
            tick_ns: self.tick.0,
            io_interrupt_cpu: self.io_interrupt_cpu,
            io_request_ns: self.io.request.0,
            io_bytes_per_s: self.io.rate.0,
            io_parallel: self.io.parallel,
            io_node: self.io.node,
            switch: self.switch.into_path("switch")?,
            tick: self.timer.into_path("timer")?,
            system_call: self.system_call.into_path("system_call")?,
            interrupt: self.interrupt.into_path("interrupt")?,
            page_fault: self.page_fault.into_path("page_fault")?,
            fork: self.fork.into_path("fork")?,
            page_move: self.page_move.map_or(Ok(Path::default()), |path| path.into_path("page_move"))?,
            counters: self.counters.map_or(Ok(Path::default()), |path| path.into_path("counters"))?,
        })
    }
}

impl PathText {
    fn into_path(self, name: &str) -> Result<Path, Fault> {
        let bytes = |key: &str, bytes: Bytes| {
            u32::try_from(bytes.0).map_err(|_| {
                let key = format!("kernel.{name}.{key}");
                Fault::new(key, format!("a kernel path cannot touch {bytes}"), "write a size below 1 MiB")
            })
        };
        Ok(Path {
            cycles: self.cycles,
            code_bytes: bytes("code", self.code)?,
            shared_bytes: bytes("shared", self.shared)?,
            cpu_bytes: bytes("cpu", self.cpu)?,
            task_bytes: bytes("task", self.task)?,
        })
    }
}

/// Writes a machine so that [`parse`] gives it back.
pub(crate) fn to_toml(machine: &Machine) -> String {
    // A struct of strings and integers always has a TOML form.
    toml::to_string(&File::from(machine)).unwrap_or_default()
}

impl From<&Machine> for File {
    fn from(machine: &Machine) -> Self {
        File {
            name: machine.name.clone(),
            description: machine.description.clone(),
            clock: Hertz(machine.clock_hz),
            line: Bytes(machine.line_bytes),
            page: Bytes(machine.page_bytes),
            frames: machine.frames,
            node: fold_nodes(&machine.nodes),
            cache: machine.caches.iter().map(CacheText::from).collect(),
            memory: MemoryText {
                local: machine.memory.local_cycles,
                remote: (machine.nodes.len() > 1).then_some(machine.memory.remote_cycles),
                remote_modified: (machine.memory.remote_modified_cycles != machine.memory.remote_cycles)
                    .then_some(machine.memory.remote_modified_cycles),
                cache_to_cache: machine.memory.cache_to_cache_cycles,
                bandwidth: BytesPerSecond(machine.memory.bandwidth_bytes_per_s),
                bus: machine.memory.has_node_bus,
                link: machine.memory.link_bytes_per_s.map(BytesPerSecond),
            },
            tlb: TlbText {
                entries: machine.tlb.entries,
                wired: machine.tlb.wired,
                replacement: machine.tlb.replacement,
                refill: machine.tlb.refill_cycles,
            },
            kernel: KernelText::from(&machine.kernel),
        }
    }
}

/// Neighbours that are alike become one table with a `count`.
fn fold_nodes(nodes: &[Node]) -> Vec<NodeText> {
    let text = |alike: &[Node]| NodeText {
        count: alike.len(),
        cpus: alike[0].cpus,
        memory: Bytes(alike[0].memory_bytes),
    };
    nodes.chunk_by(|a, b| a == b).map(text).collect()
}

impl From<&Cache> for CacheText {
    fn from(cache: &Cache) -> Self {
        CacheText {
            name: cache.name.clone(),
            holds: match cache.holds {
                Holds::Instructions => HoldsText::Instructions,
                Holds::Data => HoldsText::Data,
                Holds::Both => HoldsText::Both,
            },
            size: Bytes(cache.size_bytes),
            ways: cache.ways,
            shared_by: cache.shared_by,
            parted: cache.is_parted,
            latency: cache.latency_cycles,
        }
    }
}

impl From<&Kernel> for KernelText {
    fn from(kernel: &Kernel) -> Self {
        KernelText {
            tick: Nanoseconds(kernel.tick_ns),
            io_interrupt_cpu: kernel.io_interrupt_cpu,
            io: IoText {
                request: Nanoseconds(kernel.io_request_ns),
                rate: BytesPerSecond(kernel.io_bytes_per_s),
                parallel: kernel.io_parallel,
                node: kernel.io_node,
            },
            switch: kernel.switch.into(),
            timer: kernel.tick.into(),
            system_call: kernel.system_call.into(),
            interrupt: kernel.interrupt.into(),
            page_fault: kernel.page_fault.into(),
            fork: kernel.fork.into(),
            page_move: (kernel.page_move != Path::default()).then(|| kernel.page_move.into()),
            counters: (kernel.counters != Path::default()).then(|| kernel.counters.into()),
        }
    }
}

impl From<Path> for PathText {
    fn from(path: Path) -> Self {
        let bytes = |bytes: u32| Bytes(u64::from(bytes));
        PathText {
            cycles: path.cycles,
            code: bytes(path.code_bytes),
            shared: bytes(path.shared_bytes),
            cpu: bytes(path.cpu_bytes),
            task: bytes(path.task_bytes),
        }
    }
}
