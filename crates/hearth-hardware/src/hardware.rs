//! The memory system of a machine whose pages are simulated: translation, first touch, and moves of pages, in
//! front of the [`Memory`].

use crate::address::{Access, Address, Mode, Placement, Segment};
use crate::coherence::Served;
use crate::counters::add;
use crate::levels::Unsupported;
use crate::memory::Memory;
use crate::misses::{Kinds, Miss, MissKind, MissLog};
use crate::pages::Pages;
use crate::port::Port;
use crate::tlb::Tlb;
use hearth_machine::Machine;
use std::rc::Rc;

/// The kernel goes through its memory in words of this size.
const WORD_BYTES: u64 = 8;

/// Everything that the CPUs of a machine share, and their private caches.
pub struct Hardware {
    memory: Memory,
    pages: Pages,
    tlbs: Vec<Tlb>,
    tlb_refill_ps: u64,
    line_shift: u32,
    page_line_shift: u32,
    /// Which misses the kernel is told of.
    told: Kinds,
    log: Option<MissLog>,
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

impl Hardware {
    /// A machine with cold caches. `seed` decides which page frames the kernel hands out.
    ///
    /// # Errors
    /// [`Unsupported`] if the caches are not a split private first level, at most one private second
    /// level, and one last level.
    pub fn new(machine: &Machine, seed: u64) -> Result<Self, Unsupported> {
        Ok(Self {
            memory: Memory::without_frames(machine)?,
            pages: Pages::new(machine, seed),
            tlbs: (0..machine.cpus()).map(|cpu| Tlb::new(machine.tlb, seed ^ cpu as u64)).collect(),
            tlb_refill_ps: u64::from(machine.tlb.refill_cycles) * machine.cycle_ps(),
            line_shift: machine.line_bytes.trailing_zeros(),
            page_line_shift: (machine.page_bytes / machine.line_bytes).trailing_zeros(),
            told: Kinds::NONE,
            log: None,
        })
    }

    /// From now on misses are not counted by cause, which spares looking up what became of each line. To be called
    /// before the first reference.
    pub fn count_no_causes(&mut self) {
        self.memory.caches.count_no_causes();
    }

    /// The CPUs, by number.
    pub fn ports(&self) -> &[Rc<Port>] {
        &self.memory.ports
    }

    /// Sets aside `bytes` of addresses. No memory is used until a page is touched.
    pub fn segment(&mut self, bytes: u64, placement: Placement) -> Segment {
        self.pages.segment(bytes, placement)
    }

    /// One reference, to at most one line: changes the caches, counts, and charges the CPU's clock.
    #[inline]
    pub fn reference(&mut self, cpu: usize, address: Address, access: Access, mode: Mode) -> Touched {
        let port = Rc::clone(&self.memory.ports[cpu]);
        let (line, refilled, page_fault) = self.translate(&port, address, mode);
        let served = self.memory.serve(&port, line, access);
        let left = served == Served::Beyond;
        let is_wanted = self.log.is_some() || self.told != Kinds::NONE;
        let is_noted = is_wanted && mode == Mode::User && access != Access::Fetch && (refilled || left);
        let missed = if is_noted { self.note_miss(&port, line, address, refilled, left) } else { None };
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
        let home = self.memory.homes.of_line(line);
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
        let port = Rc::clone(&self.memory.ports[cpu]);
        let (begin_ps, before) = (port.now_ps(), port.counters());
        let address = u64::from(page) << (self.line_shift + self.page_line_shift);
        self.copy_words(cpu, address, Access::Read);
        let first = frame << self.page_line_shift;
        (first..first + (1 << self.page_line_shift)).for_each(|line| self.memory.caches.drop_line(line));
        self.tlbs.iter_mut().for_each(|tlb| tlb.remove(page));
        self.memory.ports.iter().for_each(|port| port.forget(page));
        self.pages.rehome(frame, self.memory.homes.of_frame(frame), node);
        self.memory.homes.set(frame, node);
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
            self.memory.ports[cpu].hit_again(access, words - 1);
            word += words * WORD_BYTES;
        }
    }

    /// The node that holds a page, if it has been touched.
    pub fn home(&self, page: u32) -> Option<usize> {
        self.pages.frame(page).map(|frame| self.memory.homes.of_frame(frame))
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
        let (frame, node) = self.pages.map(page, self.memory.node_of_cpu[port.index()], owner);
        self.memory.grow(self.pages.frames());
        self.memory.homes.set(frame, node);
        add(&port.counting.page_faults, u64::from(mode == Mode::User));
        frame
    }

    #[cold]
    fn refill_tlb(&mut self, port: &Port, page: u32) {
        if let Some(victim) = self.tlbs[port.index()].insert(page) {
            port.forget(victim);
        }
        port.advance_ps(self.tlb_refill_ps);
        add(&port.counting.tlb_misses, 1);
        add(&port.counting.stall_ps, self.tlb_refill_ps);
    }

    /// Pages that begin in a range of addresses, and that nobody has touched, will get memory of the node of a
    /// CPU.
    pub fn place(&mut self, address: Address, bytes: u64, cpu: usize) {
        let page = |address: Address| address.div_ceil(self.page_bytes()) as u32;
        let (first, end) = (page(address), page(address + bytes));
        self.pages.place(first, end, Placement::Node(self.memory.node_of_cpu[cpu]));
    }

    /// Empties the caches of a CPU's cache domain, as the paper does to measure reload misses.
    pub fn flush(&mut self, cpu: usize) {
        self.memory.caches.flush(cpu);
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
