//! The caches under the guest: what each CPU's references do to them. Knows no emulator and no task.

use crate::layout::Layout;
use crate::lengths::Lengths;
use crate::translations::Translations;
use hearth_emulate::counts::{Causes, Counts};
use hearth_hardware::{Access, Counters, Memory, Port, Unsupported};
use hearth_machine::Machine;
use std::rc::Rc;

/// Who executes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// A program.
    User,
    /// The kernel.
    Kernel,
}

impl Mode {
    /// Whose code is at an address: the kernel has the upper half.
    pub(crate) fn of(address: u64) -> Self {
        if address >> 63 == 0 { Self::User } else { Self::Kernel }
    }
}

/// Instructions that follow each other on one line of code, packed into what is passed along with a callback:
///
/// ```text
/// line: 32 bits | instructions: 31 bits | kernel: 1 bit
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stretch(u64);

/// Code that is not in memory, but in a ROM.
const NO_LINE: u32 = u32::MAX;

impl Stretch {
    pub(crate) fn new(line: Option<u32>, instructions: u32, mode: Mode) -> Self {
        let line = u64::from(line.unwrap_or(NO_LINE));
        Self(line << 32 | u64::from(instructions) << 1 | u64::from(mode == Mode::Kernel))
    }

    pub(crate) fn packed(self) -> u64 {
        self.0
    }

    #[inline(always)]
    pub(crate) fn unpacked(packed: u64) -> Self {
        Self(packed)
    }

    #[inline(always)]
    pub(crate) fn mode(self) -> Mode {
        if self.0 & 1 == 0 { Mode::User } else { Mode::Kernel }
    }

    #[inline(always)]
    fn instructions(self) -> u64 {
        u64::from(self.0 as u32 >> 1)
    }

    #[inline(always)]
    fn line(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

/// A CPU of the guest.
///
/// What most code does changes nothing but counts: it is on the line that its set of the first level was last used
/// for, and translations are remembered. That is answered here, and short enough to be what QEMU calls; for the rest
/// there is the [`Model`].
pub(crate) struct Cpu {
    port: Rc<Port>,
    instructions: u64,
    /// How long it waited of its own accord.
    paused_ps: u64,
    /// When it began to execute what it has executed.
    begun_ps: u64,
    /// When its time is looked at next, by what it executed.
    due_ps: u64,
    mode: Mode,
    lengths: Lengths,
    translations: Translations,
}

/// Loads and stores are of this many bytes at most.
const WIDEST: u64 = 16;

impl Cpu {
    /// The line of a reference that ends where it begins, as most do whatever their length is.
    #[inline(always)]
    pub(crate) fn only_line(&self, address: u64, sort: u32) -> Option<u32> {
        let line_bytes = self.port.line_bytes();
        let place = address & (line_bytes - 1);
        let ends_there = place <= line_bytes - WIDEST
            || self.lengths.of(sort).is_some_and(|bytes| place <= line_bytes - bytes);
        if ends_there { self.translations.line(address) } else { None }
    }

    /// A load or store of the most recent line of a set: done, or `false`, and nothing has happened.
    #[inline(always)]
    pub(crate) fn recent(&self, line: u32, access: Access) -> bool {
        match access {
            Access::Write => self.port.write_recent_line(line),
            _ => self.port.read_recent_line(line),
        }
    }

    /// A load or store that hits the first level: done, or `false`, and nothing has happened.
    #[inline(always)]
    pub(crate) fn hit(&self, line: u32, access: Access) -> bool {
        match access {
            Access::Write => self.port.write_line(line),
            _ => self.port.read_line(line),
        }
    }

    /// A stretch of code is executed: done, or `false`, and nothing has happened.
    #[inline(always)]
    pub(crate) fn execute(&mut self, stretch: Stretch) -> bool {
        let line = stretch.line();
        let done = stretch.mode() == self.mode && (line == NO_LINE || self.port.fetch_recent_line(line));
        if done {
            self.instructions += stretch.instructions();
        }
        done
    }

    /// Tells its port the time. Whether that is to be looked at.
    #[inline(always)]
    pub(crate) fn pass(&self) -> bool {
        let executed_ps = self.executed_ps();
        self.port.set_now_ps(self.begun_ps + executed_ps);
        executed_ps >= self.due_ps
    }

    /// What its execution took so far: a cycle for each instruction, and the stalls.
    #[inline(always)]
    fn executed_ps(&self) -> u64 {
        self.instructions * self.port.cycle_ps() + self.port.stall_ps() + self.paused_ps
    }
}

/// Cycles of a `PAUSE` beyond its own, whatever the machine: AMD's Zen parts take about 40 to 65, Intel's 140 since
/// Skylake and 10 before (Intel's optimization manual). An estimate.
const PAUSE_CYCLES: u64 = 40;

/// The guest's CPUs, and the memory that they share.
pub(crate) struct Model {
    cpus: Vec<Cpu>,
    memory: Memory,
    layout: Layout,
    line_shift: u32,
    /// A physical address that was used, and is of memory that nobody named.
    unnamed: Option<u64>,
}

impl Model {
    /// A machine with cold caches. Unless its CPUs have a clock in common, nobody waits for a bus or a node's memory.
    ///
    /// # Errors
    /// A machine or memory that [`Memory`] refuses.
    pub(crate) fn new(machine: &Machine, node_bytes: &[u64], has_clock: bool) -> Result<Self, Unsupported> {
        let mut machine = machine.clone();
        if !has_clock {
            machine.memory.bandwidth_bytes_per_s = u64::MAX;
            machine.memory.link_bytes_per_s = None;
        }
        let memory = Memory::new(&machine, node_bytes)?;
        let cpu = |port: &Rc<Port>| Cpu {
            port: Rc::clone(port),
            instructions: 0,
            paused_ps: 0,
            begun_ps: 0,
            due_ps: 0,
            mode: Mode::Kernel,
            lengths: Lengths::new(),
            translations: Translations::new(machine.line_bytes),
        };
        Ok(Self {
            cpus: memory.ports().iter().map(cpu).collect(),
            memory,
            layout: Layout::new(node_bytes.iter().sum()),
            line_shift: machine.line_bytes.trailing_zeros(),
            unnamed: None,
        })
    }

    /// The bytes of a CPU's references of a sort. `length` says it of those that it has not made before.
    #[inline(always)]
    pub(crate) fn length(&mut self, cpu: usize, sort: u32, length: impl Fn() -> u64) -> u64 {
        let lengths = &mut self.cpus[cpu].lengths;
        lengths.of(sort).unwrap_or_else(|| {
            let bytes = length();
            lengths.remember(sort, bytes);
            bytes
        })
    }

    /// A load or store of `bytes` at an address. `physical` says which physical address that is, if it is memory.
    #[inline(always)]
    pub(crate) fn data(
        &mut self,
        cpu: usize,
        address: u64,
        bytes: u64,
        access: Access,
        physical: impl Fn(u64) -> Option<u64>,
    ) {
        self.line_of_data(cpu, address, access, &physical);
        let last = address + (bytes - 1);
        if last >> self.line_shift != address >> self.line_shift {
            self.line_of_data(cpu, last, access, &physical);
        }
    }

    #[inline(always)]
    fn line_of_data(
        &mut self,
        cpu: usize,
        address: u64,
        access: Access,
        physical: &impl Fn(u64) -> Option<u64>,
    ) {
        let known = self.cpus[cpu].translations.line(address);
        if let Some(line) = known.or_else(|| self.translate(cpu, address, physical))
            && !self.cpus[cpu].hit(line, access)
        {
            self.miss(cpu, line, access);
        }
    }

    /// A reference to a line that the first level does not have, or does not own.
    pub(crate) fn miss(&mut self, cpu: usize, line: u32, access: Access) {
        self.memory.reference(cpu, line, access);
    }

    #[cold]
    fn translate(&mut self, cpu: usize, address: u64, physical: impl Fn(u64) -> Option<u64>) -> Option<u32> {
        let physical = physical(address)?;
        let Some(offset) = self.layout.offset(physical) else {
            self.unnamed = self.unnamed.or(self.layout.is_beyond(physical).then_some(physical));
            return None;
        };
        let line = (offset >> self.line_shift) as u32;
        self.cpus[cpu].translations.remember(address, line);
        Some(line)
    }

    /// A physical address that was used, and not counted, for it is of memory that nobody named.
    pub(crate) fn unnamed(&self) -> Option<u64> {
        self.unnamed
    }

    /// A CPU executes a stretch of code.
    #[inline(always)]
    pub(crate) fn execute(&mut self, cpu: usize, stretch: Stretch) {
        let executing = &mut self.cpus[cpu];
        executing.instructions += stretch.instructions();
        let line = stretch.line();
        if line != NO_LINE && !executing.port.fetch_line(line) {
            self.memory.reference(cpu, line, Access::Fetch);
        }
    }

    /// What a CPU's execution took so far.
    pub(crate) fn executed_ps(&self, cpu: usize) -> u64 {
        self.cpus[cpu].executed_ps()
    }

    /// When a CPU began to execute what it has executed here.
    pub(crate) fn set_begun(&mut self, cpu: usize, ps: u64) {
        self.cpus[cpu].begun_ps = ps;
    }

    /// When a CPU's time is to be looked at next, by what it executed here.
    pub(crate) fn set_due(&mut self, cpu: usize, executed_ps: u64) {
        self.cpus[cpu].due_ps = executed_ps;
    }

    /// A CPU executes a `PAUSE`.
    #[inline(always)]
    pub(crate) fn pause(&mut self, cpu: usize) {
        let Cpu { port, paused_ps, .. } = &mut self.cpus[cpu];
        *paused_ps += PAUSE_CYCLES * port.cycle_ps();
    }

    /// The CPUs. They stay where they are in the host's memory.
    pub(crate) fn all_cpus(&mut self) -> &mut [Cpu] {
        &mut self.cpus
    }

    /// Addresses may mean something else on a CPU from now on.
    pub(crate) fn forget_translations(&mut self, cpu: usize) {
        self.cpus[cpu].translations.forget();
    }

    /// Who executes on a CPU.
    #[inline(always)]
    pub(crate) fn mode(&self, cpu: usize) -> Mode {
        self.cpus[cpu].mode
    }

    /// Somebody else executes on a CPU now.
    pub(crate) fn set_mode(&mut self, cpu: usize, mode: Mode) {
        self.cpus[cpu].mode = mode;
    }

    /// Which task runs on a CPU, for the causes of misses; `moved`: on another CPU before.
    pub(crate) fn set_task(&mut self, cpu: usize, number: u16, moved: bool) {
        self.cpus[cpu].port.set_task(number, moved);
    }

    /// Number of CPUs.
    pub(crate) fn cpus(&self) -> usize {
        self.cpus.len()
    }

    /// All that a CPU has counted.
    pub(crate) fn counts(&self, cpu: usize) -> Counts {
        let Cpu { port, instructions, paused_ps, .. } = &self.cpus[cpu];
        let of: Counters = port.counters();
        let [first_touch, own, other, coherence, moved] = of.causes;
        Counts {
            instructions: *instructions,
            loads: of.reads,
            stores: of.writes,
            fetches: of.fetches,
            l1d_misses: of.l1d_misses,
            l1i_misses: of.l1i_misses,
            l2_hits: of.l2_hits,
            llc_hits: of.llc_hits,
            cache_local: of.cache_to_cache - of.cache_to_cache_remote,
            cache_remote: of.cache_to_cache_remote,
            memory_local: of.memory_local,
            memory_remote: of.memory_remote,
            upgrades: of.upgrades,
            invalidations: of.invalidations,
            write_backs: of.write_backs,
            stall_ps: of.stall_ps + paused_ps,
            queue_ps: of.queue_ps,
            causes: Causes { first_touch, own, other, coherence, moved },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODE: u64 = 16 << 20;
    /// Where the guest of these tests sees its memory.
    const SEEN_AT: u64 = 0xffff_8880_0000_0000;

    fn machine() -> Machine {
        Machine::load("dash-16").unwrap()
    }

    fn physical(address: u64) -> Option<u64> {
        Some(address - SEEN_AT)
    }

    /// References that any generator would make: some lines often, all now and then.
    fn stream() -> impl Iterator<Item = (usize, u64, Access)> {
        let mut state = 1u64;
        (0..200_000).map(move |_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let random = state >> 20;
            let span = if random & 4 == 0 { 4 * NODE } else { 8192 };
            let access = if random & 3 == 0 { Access::Write } else { Access::Read };
            ((random >> 3) as usize % 16, (random >> 7) % span / 8 * 8, access)
        })
    }

    #[test]
    fn a_stream_is_served_as_without_translations_and_ports() {
        let machine = machine();
        let mut model = Model::new(&machine, &[NODE; 4], false).unwrap();
        let mut memory = Memory::new(&machine, &[NODE; 4]).unwrap();
        for (number, (cpu, place, access)) in stream().enumerate() {
            model.data(cpu, SEEN_AT + place, 8, access, physical);
            memory.reference(cpu, (place / machine.line_bytes) as u32, access);
            if number % 1000 == 0 {
                model.forget_translations(cpu);
            }
        }
        for cpu in 0..machine.cpus() {
            let (counts, direct) = (model.counts(cpu), memory.ports()[cpu].counters());
            assert_eq!((counts.loads, counts.stores), (direct.reads, direct.writes));
            assert_eq!((counts.l1d_misses, counts.l2_hits), (direct.l1d_misses, direct.l2_hits));
            assert_eq!((counts.memory_local, counts.upgrades), (direct.memory_local, direct.upgrades));
            assert_eq!(counts.memory_remote, direct.memory_remote);
            assert_eq!(counts.cache_local + counts.cache_remote, direct.cache_to_cache);
        }
    }

    #[test]
    fn a_reference_that_spans_two_lines_is_two() {
        let machine = machine();
        let mut model = Model::new(&machine, &[NODE; 4], false).unwrap();
        model.data(0, SEEN_AT + machine.line_bytes - 4, 8, Access::Read, physical);
        assert_eq!((model.counts(0).loads, model.counts(0).l1d_misses), (2, 2));
    }

    #[test]
    fn code_is_fetched_by_lines_and_counted_by_instructions() {
        let mut model = Model::new(&machine(), &[NODE; 4], false).unwrap();
        for line in [Some(3), Some(3), None] {
            model.execute(1, Stretch::new(line, 5, Mode::Kernel));
        }
        let counts = model.counts(1);
        assert_eq!((counts.instructions, counts.fetches, counts.l1i_misses), (15, 2, 1));
        assert_eq!(Stretch::unpacked(Stretch::new(None, 5, Mode::Kernel).packed()).mode(), Mode::Kernel);
    }

    #[test]
    fn memory_that_nobody_named_is_noticed_and_devices_are_not() {
        let mut model = Model::new(&machine(), &[NODE; 4], false).unwrap();
        model.data(0, SEEN_AT, 8, Access::Read, |_| None);
        assert_eq!(model.unnamed(), None);
        model.data(0, SEEN_AT, 8, Access::Read, |_| Some(4 * NODE));
        assert_eq!((model.unnamed(), model.counts(0).loads), (Some(4 * NODE), 0));
    }
}
