//! The memory system as a whole: translation, the first level, and what each reference costs.

use crate::address::{Access, Address, Mode, Placement, Segment};
use crate::cache::Cache;
use crate::channel::Channel;
use crate::coherence::{Caches, Served, Transfer};
use crate::counters::add;
use crate::misses::{Kinds, Miss, MissKind, MissLog};
use crate::pages::Pages;
use crate::port::{Port, PortShape};
use crate::tlb::Tlb;
use hearth_machine::{Holds, Machine};
use std::rc::Rc;
use thiserror::Error;

/// A machine that can be described but not simulated.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("machine {machine}: {reason}")]
pub struct Unsupported {
    machine: String,
    reason: String,
}

/// The kernel goes through its memory in words of this size.
const WORD_BYTES: u64 = 8;

/// Everything that the CPUs of a machine share, and their private caches.
pub struct Hardware {
    ports: Vec<Rc<Port>>,
    caches: Caches,
    pages: Pages,
    tlbs: Vec<Tlb>,
    /// By node: its memory, or the bus that its CPUs share with it.
    channels: Vec<Channel>,
    /// By node: its way out to the others. None where nobody waits for it.
    links: Vec<Channel>,
    has_node_bus: bool,
    cost: Costs,
    node_of_cpu: Vec<usize>,
    line_shift: u32,
    page_line_shift: u32,
    /// Which misses the kernel is told of.
    told: Kinds,
    log: Option<MissLog>,
}

/// Picoseconds by who serves a reference.
struct Costs {
    l1: u64,
    l2: u64,
    llc: u64,
    local: u64,
    remote: u64,
    remote_modified: u64,
    cache_to_cache: u64,
    tlb_refill: u64,
}

/// What the kernel must know about a reference.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Touched {
    /// The page was touched for the first time: the kernel has work to do.
    pub page_fault: bool,
    /// A miss of a program's load or store that the kernel wants to be told of
    /// ([`Hardware::tell_misses`]), by the page that it was to.
    pub missed: Option<Missed>,
    /// The private levels did not have it.
    pub beyond_l2: bool,
}

/// What missed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Missed {
    /// Number of the page: address over page size.
    pub page: u32,
    /// The node that holds it.
    pub home: usize,
    /// The misses.
    pub kinds: Kinds,
}

fn first_level(machine: &Machine, kind: Holds) -> Option<&hearth_machine::Cache> {
    machine.caches.iter().find(|cache| cache.holds == kind || cache.holds == Holds::Both)
}

impl Hardware {
    /// A machine with cold caches. `seed` decides which page frames the kernel hands out.
    ///
    /// # Errors
    /// [`Unsupported`] if the caches are not a split private first level, at most one private second
    /// level, and one last level.
    pub fn new(machine: &Machine, seed: u64) -> Result<Self, Unsupported> {
        let unsupported = |reason: &str| Unsupported { machine: machine.name.clone(), reason: reason.into() };
        let l1i =
            first_level(machine, Holds::Instructions).ok_or_else(|| unsupported("no instruction cache"))?;
        let l1d = first_level(machine, Holds::Data).ok_or_else(|| unsupported("no data cache"))?;
        if l1i.holds == Holds::Both || l1d.holds == Holds::Both {
            return Err(unsupported("the first level must be split into an instruction and a data cache"));
        }
        let outer: Vec<_> =
            machine.caches.iter().filter(|cache| cache.name != l1i.name && cache.name != l1d.name).collect();
        let (l2, llc) = match outer[..] {
            [llc] => (None, llc),
            [l2, llc] => (Some(l2), llc),
            _ => return Err(unsupported("two or three levels of cache can be simulated")),
        };
        if outer.iter().any(|cache| cache.holds == Holds::Instructions) {
            return Err(unsupported("a second level for instructions only cannot be simulated"));
        }
        if l1i.shared_by != 1 || l1d.shared_by != 1 || l2.is_some_and(|l2| l2.shared_by != 1) {
            return Err(unsupported("only the last level may be shared by CPUs"));
        }
        let cycle_ps = machine.cycle_ps();
        let port = |index| {
            Rc::new(Port::new(PortShape {
                index,
                cycle_ps,
                hit_cycles: l1d.latency_cycles,
                line_bytes: machine.line_bytes,
                page_bytes: machine.page_bytes,
                l1d: Cache::new(l1d, machine.line_bytes),
                l1i: Cache::new(l1i, machine.line_bytes),
            }))
        };
        let cycles = |cycles: u32| u64::from(cycles) * cycle_ps;
        let channel =
            |bytes_per_s: u64| Channel::new(machine.line_bytes * 1_000_000_000_000 / bytes_per_s.max(1));
        let by_node = |bytes_per_s: u64| machine.nodes.iter().map(|_| channel(bytes_per_s)).collect();
        let ports: Vec<_> = (0..machine.cpus()).map(port).collect();
        Ok(Self {
            caches: Caches::new(machine, l2, llc, ports.clone()),
            ports,
            pages: Pages::new(machine, seed),
            tlbs: (0..machine.cpus()).map(|cpu| Tlb::new(machine.tlb, seed ^ cpu as u64)).collect(),
            channels: by_node(machine.memory.bandwidth_bytes_per_s),
            links: machine.memory.link_bytes_per_s.map_or_else(Vec::new, by_node),
            has_node_bus: machine.memory.has_node_bus,
            cost: Costs {
                l1: cycles(l1d.latency_cycles),
                l2: cycles(l2.map_or(0, |l2| l2.latency_cycles)),
                llc: cycles(llc.latency_cycles),
                local: cycles(machine.memory.local_cycles),
                remote: cycles(machine.memory.remote_cycles),
                remote_modified: cycles(machine.memory.remote_modified_cycles),
                cache_to_cache: cycles(machine.memory.cache_to_cache_cycles),
                tlb_refill: cycles(machine.tlb.refill_cycles),
            },
            node_of_cpu: (0..machine.cpus()).map(|cpu| machine.node_of(cpu)).collect(),
            line_shift: machine.line_bytes.trailing_zeros(),
            page_line_shift: (machine.page_bytes / machine.line_bytes).trailing_zeros(),
            told: Kinds::NONE,
            log: None,
        })
    }

    /// The CPUs, by number.
    pub fn ports(&self) -> &[Rc<Port>] {
        &self.ports
    }

    /// Sets aside `bytes` of addresses. No memory is used until a page is touched.
    pub fn segment(&mut self, bytes: u64, placement: Placement) -> Segment {
        self.pages.segment(bytes, placement)
    }

    /// One reference, to at most one line: changes the caches, counts, and charges the CPU's clock.
    #[inline]
    pub fn reference(&mut self, cpu: usize, address: Address, access: Access, mode: Mode) -> Touched {
        let port = Rc::clone(&self.ports[cpu]);
        let (line, refilled, page_fault) = self.translate(&port, address, mode);
        if access == Access::Fetch {
            let served = self.caches.fetch(&port, line);
            self.charge(&port, line, served, 0);
            add(&port.counting.fetches, 1);
            return Touched { page_fault, missed: None, beyond_l2: served.is_beyond_l2() };
        }
        let write = access == Access::Write;
        let served = self.caches.data(&port, line, write);
        self.charge(&port, line, served, self.cost.l1);
        add(if write { &port.counting.writes } else { &port.counting.reads }, 1);
        let left = served == Served::Beyond;
        let missed = match mode {
            Mode::User if refilled || left => self.note_miss(&port, line, address, refilled, left),
            _ => None,
        };
        Touched { page_fault, missed, beyond_l2: served.is_beyond_l2() }
    }

    /// A program's load or store missed the TLB, or the caches.
    fn note_miss(
        &mut self,
        port: &Port,
        line: u32,
        address: Address,
        refilled: bool,
        left: bool,
    ) -> Option<Missed> {
        let page = self.pages.page_of(address);
        if let Some(log) = &mut self.log {
            let kinds = [(refilled, MissKind::Tlb), (left, MissKind::Cache)];
            for (_, kind) in kinds.into_iter().filter(|(happened, _)| *happened) {
                log.push(Miss { at_ns: port.now_ps() / 1000, cpu: port.index(), page, kind });
            }
        }
        let kinds = Kinds { tlb: refilled && self.told.tlb, cache: left && self.told.cache };
        let home = self.pages.node_of_frame(line >> self.page_line_shift);
        (kinds != Kinds::NONE).then_some(Missed { page, home, kinds })
    }

    /// From now on [`Touched`] says which loads and stores of programs missed.
    pub fn tell_misses(&mut self, kinds: Kinds) {
        self.told = kinds;
    }

    /// From now on keeps a log of the misses of programs' loads and stores.
    pub fn log_misses(&mut self) {
        self.log = Some(MissLog::default());
    }

    /// The log so far, in order of time.
    pub fn take_miss_log(&mut self) -> Option<MissLog> {
        self.log.take().map(MissLog::sorted)
    }

    /// A CPU moves a page to another node: copies it, word by word through its caches, and takes the old
    /// copy out of all caches and TLBs. `false`: the node has no room, and nothing has happened.
    pub fn move_page(&mut self, cpu: usize, page: u32, node: usize) -> bool {
        let Some(frame) = self.pages.frame(page) else { return false };
        if !self.pages.has_room(node) {
            return false;
        }
        let port = Rc::clone(&self.ports[cpu]);
        let (begin_ps, before) = (port.now_ps(), port.counters());
        let address = u64::from(page) << (self.line_shift + self.page_line_shift);
        self.copy_words(cpu, address, Access::Read);
        let first = frame << self.page_line_shift;
        (first..first + (1 << self.page_line_shift)).for_each(|line| self.caches.drop_line(line));
        self.tlbs.iter_mut().for_each(|tlb| tlb.remove(page));
        self.ports.iter().for_each(|port| port.forget(page));
        self.pages.rehome(frame, node);
        self.copy_words(cpu, address, Access::Write);
        let copying = port.counters() - before;
        add(&port.counting.copy_misses, copying.misses());
        add(&port.counting.copy_remote_misses, copying.remote_misses());
        add(&port.counting.page_moves, 1);
        port.spent_in_kernel(begin_ps);
        true
    }

    /// Whether a node has memory left for a page.
    pub fn has_room(&self, node: usize) -> bool {
        self.pages.has_room(node)
    }

    fn copy_words(&mut self, cpu: usize, page: Address, access: Access) {
        self.kernel_words(cpu, page, self.page_bytes(), access);
    }

    /// The kernel loads or stores each word of a range. What follows the first word of a line hits, in the first
    /// entry of its set.
    pub fn kernel_words(&mut self, cpu: usize, base: Address, bytes: u64, access: Access) {
        let (mut word, end) = (base, base + bytes);
        while word < end {
            // Kernel memory is there from boot: a first touch costs nothing more.
            let _ = self.reference(cpu, word, access, Mode::Kernel);
            let line_end = (word | (self.line_bytes() - 1)) + 1;
            let words = (line_end.min(end) - word).div_ceil(WORD_BYTES);
            self.ports[cpu].hit_again(access, words - 1);
            word += words * WORD_BYTES;
        }
    }

    /// The node that holds a page, if it has been touched.
    pub fn home(&self, page: u32) -> Option<usize> {
        self.pages.frame(page).map(|frame| self.pages.node_of_frame(frame))
    }

    /// How many pages of programs' memory each node holds that the task `task` touched first; empty if
    /// there are none. The number is that of [`Port::set_task`].
    pub fn resident(&self, task: u16) -> &[u32] {
        self.pages.resident(task)
    }

    /// The physical line of an address, whether the TLB had to be refilled for it, and whether its page
    /// had to be given memory.
    #[inline]
    fn translate(&mut self, port: &Port, address: Address, mode: Mode) -> (u32, bool, bool) {
        let cpu = port.index();
        let page = self.pages.page_of(address);
        let refill = mode == Mode::User && !self.tlbs[cpu].holds(page);
        if refill {
            self.refill_tlb(port, page);
        }
        let (frame, fault) = match self.pages.frame(page) {
            Some(frame) => (frame, false),
            None => (self.map(port, page, mode), true),
        };
        if mode == Mode::User {
            port.remember(page, frame);
        }
        let line_in_page = (address >> self.line_shift) as u32 & ((1 << self.page_line_shift) - 1);
        (frame << self.page_line_shift | line_in_page, refill, fault)
    }

    #[cold]
    fn map(&mut self, port: &Port, page: u32, mode: Mode) -> u32 {
        let owner = if mode == Mode::User { port.task() } else { 0 };
        let frame = self.pages.map(page, self.node_of_cpu[port.index()], owner);
        self.caches.grow(self.pages.frames() << self.page_line_shift);
        add(&port.counting.page_faults, u64::from(mode == Mode::User));
        frame
    }

    #[cold]
    fn refill_tlb(&mut self, port: &Port, page: u32) {
        if let Some(victim) = self.tlbs[port.index()].insert(page) {
            port.forget(victim);
        }
        port.advance_ps(self.cost.tlb_refill);
        add(&port.counting.tlb_misses, 1);
        add(&port.counting.stall_ps, self.cost.tlb_refill);
    }

    /// Charges a reference: `base_ps` is what a first-level hit takes.
    #[inline]
    fn charge(&mut self, port: &Port, line: u32, served: Served, base_ps: u64) {
        let ps = match served {
            Served::L1 => base_ps,
            Served::L2 => self.cost.l2,
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
        let home = self.pages.node_of_frame(line >> self.page_line_shift);
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
    fn charge_memory(&mut self, port: &Port, line: u32) -> u64 {
        let home = self.pages.node_of_frame(line >> self.page_line_shift);
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
            let home = self.pages.node_of_frame(victim >> self.page_line_shift);
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

    /// Pages that begin in a range of addresses, and that nobody has touched, will get memory of the node of a
    /// CPU.
    pub fn place(&mut self, address: Address, bytes: u64, cpu: usize) {
        let page = |address: Address| address.div_ceil(self.page_bytes()) as u32;
        let (first, end) = (page(address), page(address + bytes));
        self.pages.place(first, end, Placement::Node(self.node_of_cpu[cpu]));
    }

    /// Empties the caches of a CPU's cache domain, as the paper does to measure reload misses.
    pub fn flush(&mut self, cpu: usize) {
        self.caches.flush(cpu);
    }

    /// Bytes that a page holds.
    pub fn page_bytes(&self) -> u64 {
        1 << (self.line_shift + self.page_line_shift)
    }

    /// Bytes that a line holds.
    pub fn line_bytes(&self) -> u64 {
        1 << self.line_shift
    }
}
