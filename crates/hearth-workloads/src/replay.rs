//! Replays of recorded programs: each copy runs the recorded references in memory of its own.

use crate::{Built, Check};
use hearth_hardware::Placement;
use hearth_sim::memory::{Code, Memory};
use hearth_sim::program::{Application, Cpu, Piece, Span, Work};
use hearth_trace::{Event, Execution, Executions, Kind, SharedReader, SharedTrace, Trace, TraceError};
use std::cell::RefCell;
use std::rc::Rc;

/// The first error that a replay met.
type Failure = Rc<RefCell<Option<TraceError>>>;

/// One copy of a recorded program, before it runs.
struct Copy {
    base: u64,
    line_bytes: u64,
    /// Events of each thread after which it ends.
    most: u64,
    failure: Failure,
}

/// Sets up `copies` replays of a trace, each an application with a task for each recorded thread. `scale` below 1
/// ends each thread after that share of its events.
///
/// A replay makes the references that were recorded, in their order within a thread; threads of one
/// program are not ordered against each other. An instruction takes a cycle, loads and stores what the
/// machine makes of them.
///
/// The trace is checked as it is read, what is replayed of it. If it is damaged, all copies end, and their checks say
/// how.
///
/// # Errors
/// [`TraceError`] if there is nothing to read.
pub fn replay(trace: &Trace, copies: usize, memory: &Memory, scale: f64) -> Result<Vec<Built>, TraceError> {
    let info = trace.info();
    let name = trace.path().file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let failure = Failure::default();
    let shared = SharedTrace::new(trace);
    let numbers = 0..info.threads.len() as u32;
    let threads = numbers.map(|number| shared.thread(number)).collect::<Result<Vec<_>, _>>()?;
    let mut all = Vec::new();
    for number in 1..=copies {
        let mut application =
            Application::new(&if copies == 1 { name.clone() } else { format!("{name}#{number}") });
        // One page more, for a reference whose last byte lies in the page behind it.
        let bytes = (info.pages + 1) * info.page_bytes;
        let base = memory.segment(bytes, Placement::FirstTouch).base;
        for (thread, (shared, counts)) in threads.iter().zip(&info.threads).enumerate() {
            let most = if scale < 1.0 { (counts.events as f64 * scale).ceil() as u64 } else { u64::MAX };
            let copy = Copy { base, line_bytes: memory.line_bytes(), most, failure: Rc::clone(&failure) };
            let reader = shared.reader();
            application.task(&format!("{name}-{thread}"), move |cpu| {
                if let Err(error) = copy.run(cpu, reader) {
                    copy.failure.borrow_mut().get_or_insert(error);
                }
            });
        }
        let failure = Rc::clone(&failure);
        let check: Check = Box::new(move || match &*failure.borrow() {
            Some(error) => Err(error.to_string()),
            None => Ok(()),
        });
        all.push(Built::new(application, check));
    }
    Ok(all)
}

impl Copy {
    fn run(&self, cpu: &mut Cpu<'_>, mut reader: SharedReader) -> Result<(), TraceError> {
        let mut left = self.most;
        while left > 0
            && self.failure.borrow().is_none()
            && let Some(chunk) = reader.next_executions()?
        {
            left = left.saturating_sub(self.execute(cpu, &chunk, left));
        }
        Ok(())
    }

    /// Executes the blocks of a chunk, but no more than `most` events. Returns how many the chunk has.
    fn execute(&self, cpu: &mut Cpu<'_>, chunk: &Executions, most: u64) -> u64 {
        let events = chunk.counts().events;
        if events > most {
            let all = chunk.iter().flat_map(|block| block.events());
            all.take(most as usize).for_each(|event| self.step(cpu, event));
            return events;
        }
        let mut blocks = chunk.iter().map(|block| Block { block, base: self.base });
        while let Some(Block { block, .. }) = cpu.run(&mut blocks) {
            block.events().for_each(|event| self.step(cpu, event));
        }
        events
    }

    fn step(&self, cpu: &mut Cpu<'_>, event: Event) {
        let Span { first: address, last } = span(self.base, event.address(), event.bytes());
        let two_lines = address / self.line_bytes != last / self.line_bytes;
        let instructions = u64::from(event.instructions());
        match event.kind() {
            Kind::Fetch => {
                cpu.fetch(Code { base: address, bytes: u64::from(event.bytes()) });
                return cpu.compute(instructions);
            }
            Kind::Read => {
                cpu.read(address);
                if two_lines {
                    cpu.read(last);
                }
            }
            Kind::Write => {
                cpu.write(address);
                if two_lines {
                    cpu.write(last);
                }
            }
        }
        // The load or store itself has taken its cycle.
        cpu.compute(instructions.saturating_sub(1));
    }
}

/// A block as a copy executes it.
struct Block<'a> {
    block: Execution<'a>,
    base: u64,
}

impl Piece for Block<'_> {
    #[inline(always)]
    fn work(&self) -> Work {
        Work { reads: self.block.reads(), writes: self.block.writes(), computed: self.block.computed() }
    }

    #[inline(always)]
    fn fetches(&self) -> impl Iterator<Item = Span> {
        self.block.fetches().iter().map(|fetch| span(self.base, fetch.address(), fetch.bytes()))
    }

    #[inline(always)]
    fn references(&self) -> impl Iterator<Item = (Span, bool)> {
        let references = self.block.references();
        references
            .map(|reference| (span(self.base, reference.address(), reference.bytes()), reference.is_write()))
    }
}

#[inline(always)]
fn span(base: u64, address: u64, bytes: u32) -> Span {
    let first = base + address;
    Span { first, last: first + u64::from(bytes) - 1 }
}
