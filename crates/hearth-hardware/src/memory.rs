//! Physical memory behind its caches: who serves a reference to a line, and what that costs.
//!
//! A line is named by its number: physical address over line size. Whoever translates addresses is in front of
//! this: [`Hardware`](crate::Hardware) for the machine whose pages are simulated, too, or a guest that has page
//! tables of its own and brings physical addresses.

use crate::address::Access;
use crate::cache::{Cache, LINES};
use crate::channel::Channel;
use crate::coherence::{Caches, Served, Transfer};
use crate::counters::add;
use crate::homes::Homes;
use crate::levels::{Levels, Unsupported};
use crate::port::{Port, PortShape};
use hearth_machine::{MAX_LEVELS, Machine};
use std::rc::Rc;

/// Everything behind the translation of addresses that CPUs share, and their private caches.
pub struct Memory {
    pub(crate) ports: Vec<Rc<Port>>,
    pub(crate) caches: Caches,
    pub(crate) homes: Homes,
    /// By node: its memory, or the bus that its CPUs share with it.
    channels: Vec<Channel>,
    /// By node: its way out to the others. None where nobody waits for it.
    links: Vec<Channel>,
    has_node_bus: bool,
    cost: Costs,
    pub(crate) node_of_cpu: Vec<usize>,
    pub(crate) page_line_shift: u32,
}

/// Picoseconds by who serves a reference.
struct Costs {
    l1: u64,
    /// By level, from the second one.
    inner: [u64; MAX_LEVELS - 1],
    llc: u64,
    local: u64,
    remote: u64,
    remote_modified: u64,
    cache_to_cache: u64,
}

impl Costs {
    fn of(machine: &Machine, levels: &Levels) -> Self {
        let cycles = |cycles: u32| u64::from(cycles) * machine.cycle_ps();
        let mut inner = [0; MAX_LEVELS - 1];
        let caches = levels.l2.iter().chain(&levels.inner);
        inner.iter_mut().zip(caches).for_each(|(ps, cache)| *ps = cycles(cache.latency_cycles));
        Self {
            l1: cycles(levels.l1d.latency_cycles),
            inner,
            llc: cycles(levels.llc.map_or(0, |llc| llc.latency_cycles)),
            local: cycles(machine.memory.local_cycles),
            remote: cycles(machine.memory.remote_cycles),
            remote_modified: cycles(machine.memory.remote_modified_cycles),
            cache_to_cache: cycles(machine.memory.cache_to_cache_cycles),
        }
    }
}

impl Memory {
    /// Memory of which each node has a stretch, one after the other from physical address 0, behind cold caches.
    ///
    /// # Errors
    /// [`Unsupported`] caches (as [`Hardware::new`](crate::Hardware::new)), a stretch that is not of whole pages,
    /// more stretches than the machine has nodes, or more memory than lines can be numbered.
    pub fn new(machine: &Machine, node_bytes: &[u64]) -> Result<Self, Unsupported> {
        let mut memory = Self::without_frames(machine)?;
        if node_bytes.len() > machine.nodes.len() {
            let reason =
                format!("memory of {} nodes, and the machine has {}", node_bytes.len(), machine.nodes.len());
            return Err(Unsupported::new(machine, reason));
        }
        if node_bytes.iter().any(|bytes| bytes % machine.page_bytes != 0) {
            let reason = format!("memory of {node_bytes:?} bytes is not of whole pages");
            return Err(Unsupported::new(machine, reason));
        }
        let limit = u64::from(LINES) * machine.line_bytes;
        if node_bytes.iter().sum::<u64>() >= limit {
            let reason = format!(
                "{} bytes of memory; with lines of {} bytes less than {limit} can be simulated",
                node_bytes.iter().sum::<u64>(),
                machine.line_bytes
            );
            return Err(Unsupported::new(machine, reason));
        }
        let frames = |bytes: &u64| (bytes / machine.page_bytes) as usize;
        memory.grow(node_bytes.iter().map(frames).sum());
        let homes = node_bytes.iter().enumerate();
        let by_frame = homes.flat_map(|(node, bytes)| std::iter::repeat_n(node, frames(bytes)));
        (0..).zip(by_frame).for_each(|(frame, node)| memory.homes.set(frame, node));
        Ok(memory)
    }

    /// The caches of a machine, cold, and no memory behind them yet.
    pub(crate) fn without_frames(machine: &Machine) -> Result<Self, Unsupported> {
        let levels = Levels::of(machine)?;
        let port = |index| {
            Rc::new(Port::new(PortShape {
                index,
                cycle_ps: machine.cycle_ps(),
                hit_cycles: levels.l1d.latency_cycles,
                line_bytes: machine.line_bytes,
                page_bytes: machine.page_bytes,
                l1d: Cache::new(levels.l1d, machine.line_bytes),
                l1i: levels.l1i.map(|l1i| Cache::new(l1i, machine.line_bytes)),
            }))
        };
        let channel =
            |bytes_per_s: u64| Channel::new(machine.line_bytes * 1_000_000_000_000 / bytes_per_s.max(1));
        let by_node = |bytes_per_s: u64| machine.nodes.iter().map(|_| channel(bytes_per_s)).collect();
        let ports: Vec<_> = (0..machine.cpus()).map(port).collect();
        let page_line_shift = (machine.page_bytes / machine.line_bytes).trailing_zeros();
        Ok(Self {
            caches: Caches::new(machine, &levels, ports.clone()),
            ports,
            homes: Homes::new(page_line_shift),
            channels: by_node(machine.memory.bandwidth_bytes_per_s),
            links: machine.memory.link_bytes_per_s.map_or_else(Vec::new, by_node),
            has_node_bus: machine.memory.has_node_bus,
            cost: Costs::of(machine, &levels),
            node_of_cpu: (0..machine.cpus()).map(|cpu| machine.node_of(cpu)).collect(),
            page_line_shift,
        })
    }

    /// Makes room for frames `0..frames`.
    pub(crate) fn grow(&mut self, frames: usize) {
        self.homes.grow(frames);
        self.caches.grow(frames << self.page_line_shift);
    }

    /// The CPUs, by number.
    pub fn ports(&self) -> &[Rc<Port>] {
        &self.ports
    }

    /// How many lines there are: they are numbered from 0.
    pub fn lines(&self) -> u32 {
        self.caches.lines() as u32
    }

    /// One reference to a line: changes the caches, counts, and charges the CPU's clock. One that hits the first
    /// level can be had sooner from the [`Port`].
    #[inline]
    pub fn reference(&mut self, cpu: usize, line: u32, access: Access) {
        let port = Rc::clone(&self.ports[cpu]);
        let _ = self.serve(&port, line, access);
    }

    #[inline]
    pub(crate) fn serve(&mut self, port: &Port, line: u32, access: Access) -> Served {
        let counting = &port.counting;
        let (served, base_ps, count) = match access {
            Access::Fetch => (self.caches.fetch(port, line), 0, &counting.fetches),
            Access::Read => (self.caches.data(port, line, false), self.cost.l1, &counting.reads),
            Access::Write => (self.caches.data(port, line, true), self.cost.l1, &counting.writes),
        };
        self.charge(port, line, served, base_ps);
        add(count, 1);
        served
    }

    /// Charges a reference: `base_ps` is what a first-level hit takes.
    #[inline]
    fn charge(&mut self, port: &Port, line: u32, served: Served, base_ps: u64) {
        let ps = match served {
            Served::L1 => base_ps,
            Served::L2 => self.cost.inner[0],
            Served::Inner(level) => self.cost.inner[usize::from(level) - 2],
            Served::Llc => self.cost.llc,
            Served::Beyond => self.charge_memory(port, line),
            Served::Upgrade => base_ps + self.upgrade(port, line),
        };
        port.advance_ps(ps);
        if ps != base_ps {
            add(&port.counting.stall_ps, ps - base_ps);
        }
    }

    /// What it takes until the home of a line has told all who have it that this CPU writes it.
    #[cold]
    fn upgrade(&self, port: &Port, line: u32) -> u64 {
        let home = self.homes.of_line(line);
        if home == self.node_of_cpu[port.index()] {
            self.cost.cache_to_cache
        } else {
            self.far(self.cost.remote)
        }
    }

    /// Another node's cache is never nearer than one of the own.
    fn far(&self, remote_ps: u64) -> u64 {
        remote_ps.max(self.cost.cache_to_cache)
    }

    /// Counts and charges a line that the caches of a CPU did not have.
    #[inline(always)]
    fn charge_memory(&mut self, port: &Port, line: u32) -> u64 {
        let home = self.homes.of_line(line);
        let here = self.node_of_cpu[port.index()];
        let Transfer { supplier, neighbour_has_it, write_back } = self.caches.transfer();
        let supplier = match supplier {
            Some(cpu) => Some(self.node_of_cpu[cpu]),
            None => (self.has_node_bus && neighbour_has_it).then_some(here),
        };
        let counting = &port.counting;
        let (source, count, ps) = match supplier {
            Some(node) if node == here => (here, &counting.cache_to_cache, self.cost.cache_to_cache),
            Some(node) if home != here && home != node => {
                (node, &counting.cache_to_cache, self.far(self.cost.remote_modified))
            }
            Some(node) => (node, &counting.cache_to_cache, self.far(self.cost.remote)),
            None if home == here => (here, &counting.memory_local, self.cost.local),
            None => (home, &counting.memory_remote, self.cost.remote),
        };
        add(count, 1);
        add(&counting.cache_to_cache_remote, u64::from(supplier.is_some_and(|node| node != here)));
        let queue_ps = self.wait(port.now_ps(), here, source, home);
        if let Some(victim) = write_back {
            let home = self.homes.of_line(victim);
            self.channels[home].request(port.now_ps());
        }
        add(&counting.queue_ps, queue_ps);
        ps + queue_ps
    }

    /// How long a line waits for what it takes on its way from the node that has it.
    fn wait(&mut self, now_ps: u64, here: usize, source: usize, home: usize) -> u64 {
        let mut ps = self.channels[if self.has_node_bus { here } else { home }].request(now_ps);
        if source == here {
            return ps;
        }
        if self.has_node_bus {
            ps += self.channels[source].request(now_ps);
        }
        if let Some(link) = self.links.get_mut(source) {
            ps += link.request(now_ps);
        }
        ps
    }
}
