//! What the kernel itself costs: its time, and its footprint in the caches.

use crate::memory::Memory;
use hearth_hardware::{Access, Address, Hardware, Mode, Placement, Port};
use hearth_machine::{Machine, Path};

/// Kernel paths, each with its own stretch of kernel text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    Switch,
    Tick,
    SystemCall,
    Interrupt,
    PageFault,
    Fork,
    PageMove,
    Counters,
}

const ENTRIES: [Entry; 8] = [
    Entry::Switch,
    Entry::Tick,
    Entry::SystemCall,
    Entry::Interrupt,
    Entry::PageFault,
    Entry::Fork,
    Entry::PageMove,
    Entry::Counters,
];
/// The kernel's memory and the price of its paths.
pub(crate) struct Costs {
    paths: [(Path, Address); 8],
    shared: Address,
    cpus: Vec<Address>,
    task_bytes: u64,
    line_bytes: u64,
    page_bytes: u64,
}

impl Costs {
    pub(crate) fn new(machine: &Machine, memory: &Memory) -> Self {
        let kernel = &machine.kernel;
        let path = |entry: Entry| match entry {
            Entry::Switch => kernel.switch,
            Entry::Tick => kernel.tick,
            Entry::SystemCall => kernel.system_call,
            Entry::Interrupt => kernel.interrupt,
            Entry::PageFault => kernel.page_fault,
            Entry::Fork => kernel.fork,
            Entry::PageMove => kernel.page_move,
            Entry::Counters => kernel.counters,
        };
        let text_bytes = ENTRIES.iter().map(|&entry| u64::from(path(entry).code_bytes)).sum();
        let mut text = memory.segment(text_bytes, Placement::FirstTouch).base;
        let paths = ENTRIES.map(|entry| {
            let base = text;
            text += u64::from(path(entry).code_bytes);
            (path(entry), base)
        });
        let most = |bytes: fn(&Path) -> u32| {
            paths.iter().map(|(path, _)| u64::from(bytes(path))).max().unwrap_or_default()
        };
        let data = |bytes: u64| memory.segment(bytes, Placement::FirstTouch).base;
        let cpu_bytes = most(|path| path.cpu_bytes);
        Self {
            shared: data(most(|path| path.shared_bytes)),
            cpus: (0..machine.cpus()).map(|_| data(cpu_bytes)).collect(),
            task_bytes: most(|path| path.task_bytes),
            paths,
            line_bytes: machine.line_bytes,
            page_bytes: machine.page_bytes,
        }
    }

    /// Kernel memory for a new task.
    pub(crate) fn task_data(&self, memory: &Memory) -> Address {
        memory.segment(self.task_bytes, Placement::FirstTouch).base
    }

    /// A CPU goes through a path, on behalf of a task if there is one.
    pub(crate) fn charge(&self, hardware: &mut Hardware, port: &Port, entry: Entry, task: Option<Address>) {
        let (path, text) = self.paths[entry as usize];
        let begin_ps = port.now_ps();
        let cpu = port.index();
        for address in (text..text + u64::from(path.code_bytes)).step_by(self.line_bytes as usize) {
            // Kernel memory is there from boot: a first touch costs nothing more.
            let _ = hardware.reference(cpu, address, Access::Fetch, Mode::Kernel);
        }
        let mut store =
            |base: Address, bytes: u32| hardware.kernel_words(cpu, base, bytes.into(), Access::Write);
        store(self.shared, path.shared_bytes);
        store(self.cpus[cpu], path.cpu_bytes);
        if let Some(task) = task {
            store(task, path.task_bytes);
        }
        port.compute(u64::from(path.cycles));
        port.spent_in_kernel(begin_ps);
    }

    /// A page that was touched first is cleared: a store to each word.
    pub(crate) fn clear_page(&self, hardware: &mut Hardware, port: &Port, address: Address) {
        let begin_ps = port.now_ps();
        let page = address & !(self.page_bytes - 1);
        hardware.kernel_words(port.index(), page, self.page_bytes, Access::Write);
        port.spent_in_kernel(begin_ps);
    }
}
