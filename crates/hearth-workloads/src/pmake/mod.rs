//! A parallel make: 24 C files of 460 lines on average, eight compilers at a time.
//!
//! `make` forks a process for each file, waits while eight are busy, and ends when all have ended. The
//! compiler is synthetic ([`compiler`]), as the insides of a C compiler of 1990 cannot be had; what is
//! real is what the kernel sees: forks and exits, files that are read and written through disks,
//! blocks that are handed to a flushing process, pages that are touched first.

mod compiler;

use crate::{Built, Description, Kind, scaled};
use compiler::{Compiler, Source};
use hearth_sim::memory::Memory;
use hearth_sim::program::{Application, Cpu};
use hearth_sim::sync::Semaphore;
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg32;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// What this program is.
pub const DESCRIPTION: Description = Description {
    name: "pmake",
    description: "parallel make of 24 C files of 460 lines, 8 compilers at a time, with file I/O",
    kind: Kind::Synthetic,
    source: "Torrellas, Tucker, Gupta 1995, table I; stands for make and a C compiler of 1990",
};

const FILES: usize = 24;
const PROCESSES: u64 = 8;
/// Lines of a file: 460 on average.
const LINES: std::ops::RangeInclusive<u32> = 300..=620;
/// Bytes that the flushing process writes at a time: a block of the file system.
const BLOCK_BYTES: u64 = 8 << 10;
/// Cycles of `make` between two files: timestamps, rules, the command line.
const RULE_CYCLES: u64 = 60_000;
/// Cycles of the flushing process for a block.
const FLUSH_CYCLES: u64 = 4_000;

/// Blocks on their way to the disk, which a process of their own writes.
#[derive(Clone)]
struct Flusher {
    blocks: Semaphore,
    /// Blocks handed over and not yet written; `make` has ended if nothing.
    pending: Rc<Cell<Option<u64>>>,
}

impl Flusher {
    fn new() -> Self {
        Self { blocks: Semaphore::new(0), pending: Rc::new(Cell::new(Some(0))) }
    }

    /// Hands a block over: the flusher is woken, and may well take the CPU.
    fn write(&self, cpu: &mut Cpu<'_>) {
        self.pending.set(self.pending.get().map(|blocks| blocks + 1));
        self.blocks.post(cpu);
    }

    fn run(&self, cpu: &mut Cpu<'_>) {
        loop {
            self.blocks.wait(cpu);
            let Some(blocks) = self.pending.get() else { return };
            self.pending.set(Some(blocks.saturating_sub(1)));
            cpu.compute(FLUSH_CYCLES);
            cpu.io(BLOCK_BYTES);
        }
    }

    fn end(&self, cpu: &mut Cpu<'_>) {
        self.pending.set(None);
        self.blocks.post(cpu);
    }
}

/// Sets the program up; see [`crate::build`]. Scale is the number of files.
pub fn build(memory: &Memory, scale: f64, seed: u64) -> Built {
    let mut random = Pcg32::seed_from_u64(seed);
    let span = LINES.end() - LINES.start() + 1;
    let sources: Vec<Source> = (0..scaled(FILES, scale))
        .map(|_| Source { lines: LINES.start() + random.next_u32() % span, seed: u64::from(random.next_u32()) })
        .collect();
    let compiler = Compiler::new(memory);
    let failures: Rc<RefCell<Vec<String>>> = Rc::default();
    let compiled = Rc::new(Cell::new(0));
    let files = sources.len();
    let mut application = Application::new(DESCRIPTION.name);
    let (errors, count) = (Rc::clone(&failures), Rc::clone(&compiled));
    application.task("make", move |cpu| make(cpu, sources, &compiler, &errors, &count));
    let check = move || match failures.borrow().first() {
        Some(failure) => Err(failure.clone()),
        None if compiled.get() != files => Err(format!("{} of {files} files were compiled", compiled.get())),
        None => Ok(()),
    };
    Built { application, check: Box::new(check) }
}

fn make(
    cpu: &mut Cpu<'_>,
    sources: Vec<Source>,
    compiler: &Compiler,
    failures: &Rc<RefCell<Vec<String>>>,
    compiled: &Rc<Cell<usize>>,
) {
    let flusher = Flusher::new();
    let daemon = flusher.clone();
    cpu.fork("bdflush", move |cpu| daemon.run(cpu));
    let (slots, ended) = (Semaphore::new(PROCESSES), Semaphore::new(0));
    let files = sources.len();
    for (number, source) in sources.into_iter().enumerate() {
        slots.wait(cpu);
        cpu.compute(RULE_CYCLES);
        let (slots, ended, flusher) = (slots.clone(), ended.clone(), flusher.clone());
        let (compiler, failures, compiled) = (compiler.clone(), Rc::clone(failures), Rc::clone(compiled));
        cpu.fork(&format!("cc-{number}"), move |cpu| {
            match compiler.compile(cpu, &source, &|cpu| flusher.write(cpu)) {
                Ok(()) => compiled.set(compiled.get() + 1),
                Err(error) => failures.borrow_mut().push(format!("file {number}: {error}")),
            }
            slots.post(cpu);
            ended.post(cpu);
        });
    }
    (0..files).for_each(|_| ended.wait(cpu));
    flusher.end(cpu);
}
