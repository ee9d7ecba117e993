//! Hardware counters, on every CPU.

use perf_event::events::{Event, Hardware, Software};
use perf_event::{Builder, Counter, ReadFormat};
use serde::Serialize;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

/// Nanoseconds between two samples on a CPU. Out of step with the kernel's ticks, so that samples come
/// anywhere in intervals.
pub(super) const SAMPLE_NS: u64 = 3_691_000;

/// One counter on all CPUs, by CPU.
pub(super) type Everywhere = Vec<(usize, Counter)>;

/// The counters that are there.
#[derive(Default)]
pub(super) struct Counters {
    pub cycles: Everywhere,
    pub instructions: Everywhere,
    pub misses: Everywhere,
    /// What is missing, and why.
    pub missing: Vec<(&'static str, String)>,
}

/// Which counters were there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Present {
    /// CPU cycles.
    pub cycles: bool,
    /// Instructions.
    pub instructions: bool,
    /// Cache misses.
    pub misses: bool,
}

impl Present {
    /// Whether reloads can be told.
    pub fn all(self) -> bool {
        self.cycles && self.instructions && self.misses
    }
}

/// Who counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The CPU.
    Hardware,
    /// The kernel, in its place: time for cycles and instructions, page faults for misses.
    Software,
}

impl Counters {
    /// Opens what can be opened; a counter that is missing on one CPU is left out on all.
    pub fn open(cpus: &[usize], kind: Kind) -> Self {
        use {Hardware as Cpu, Software as Kernel};
        let mut counters = Counters::default();
        match kind {
            Kind::Hardware => {
                counters.fill(cpus, [Cpu::CPU_CYCLES, Cpu::INSTRUCTIONS, Cpu::CACHE_MISSES]);
            }
            Kind::Software => {
                counters.fill(cpus, [Kernel::CPU_CLOCK, Kernel::CPU_CLOCK, Kernel::PAGE_FAULTS]);
            }
        }
        counters
    }

    fn fill<E: Event + Copy>(&mut self, cpus: &[usize], [cycles, instructions, misses]: [E; 3]) {
        self.cycles = self.everywhere(cpus, "cycles", cycles);
        self.instructions = self.everywhere(cpus, "instructions", instructions);
        self.misses = self.everywhere(cpus, "cache-misses", misses);
    }

    /// The same for people.
    pub fn notes(&self) -> Vec<String> {
        let note = |(name, reason): &(&str, String)| format!("the counter {name} is not there: {reason}");
        self.missing.iter().map(note).collect()
    }

    pub fn present(&self) -> Present {
        Present {
            cycles: !self.cycles.is_empty(),
            instructions: !self.instructions.is_empty(),
            misses: !self.misses.is_empty(),
        }
    }

    fn everywhere<E: Event + Copy>(&mut self, cpus: &[usize], name: &'static str, event: E) -> Everywhere {
        let opened: Result<Everywhere, String> =
            cpus.iter().map(|&cpu| Ok((cpu, open(cpu, event)?))).collect();
        opened.unwrap_or_else(|reason| {
            self.missing.push((name, reason));
            Vec::new()
        })
    }
}

fn open(cpu: usize, event: impl Event) -> Result<Counter, String> {
    let mut builder = Builder::new(event);
    builder.any_pid().one_cpu(cpu).include_kernel().pinned(true).enabled(true);
    builder.read_format(ReadFormat::TOTAL_TIME_ENABLED | ReadFormat::TOTAL_TIME_RUNNING);
    let mut counter = builder.build().map_err(|error| explain(&error))?;
    // A pinned counter that found no room on the CPU reads as nothing.
    match counter.read_full() {
        Ok(_) => Ok(counter),
        Err(_) => Err("all of the CPU's counters are in use, by perf or the NMI watchdog".to_owned()),
    }
}

fn explain(error: &std::io::Error) -> String {
    match error.raw_os_error() {
        // ENOENT, EOPNOTSUPP, ENODEV
        Some(2 | 95 | 19) => "this CPU or virtual machine does not have it".to_owned(),
        // EPERM, EACCES
        Some(1 | 13) => "no permission (kernel.perf_event_paranoid)".to_owned(),
        _ => error.to_string(),
    }
}

/// A clock that samples a CPU.
pub(super) fn sampler(cpu: usize) -> std::io::Result<OwnedFd> {
    let mut builder = Builder::new(Software::CPU_CLOCK);
    builder.any_pid().one_cpu(cpu).include_kernel().exclude_idle(true).enabled(true);
    let clock = builder.sample_period(SAMPLE_NS).build()?;
    // SAFETY: the descriptor is open for as long as `clock` lives, which is longer than this line.
    unsafe { BorrowedFd::borrow_raw(clock.as_raw_fd()) }.try_clone_to_owned()
}
