//! Replays of recorded programs: each copy runs the recorded references in memory of its own.

use crate::{Built, Check};
use hearth_hardware::Placement;
use hearth_sim::memory::{Code, Memory};
use hearth_sim::program::{Application, Cpu};
use hearth_trace::{Event, Kind, ThreadReader, Trace, TraceError};
use std::cell::RefCell;
use std::rc::Rc;

/// One copy of a recorded program, before it runs.
struct Copy {
    base: u64,
    line_bytes: u64,
    /// References of each thread after which it ends.
    most: u64,
}

/// Sets up `copies` replays of a trace, each an application with a task for each recorded thread. The
/// trace is checked in full first. `scale` below 1 ends each thread after that share of its events.
///
/// A replay makes the references that were recorded, in their order within a thread; threads of one
/// program are not ordered against each other. An instruction takes a cycle, loads and stores what the
/// machine makes of them.
///
/// # Errors
/// [`TraceError`] if the file cannot be read, is no trace, or is damaged.
pub fn replay(trace: &Trace, copies: usize, memory: &Memory, scale: f64) -> Result<Vec<Built>, TraceError> {
    trace.verify()?;
    let info = trace.info();
    let name = trace.path().file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let mut all = Vec::new();
    for number in 1..=copies {
        let mut application =
            Application::new(&if copies == 1 { name.clone() } else { format!("{name}#{number}") });
        let failure: Rc<RefCell<Option<TraceError>>> = Rc::default();
        // One page more, for a reference whose last byte lies in the page behind it.
        let bytes = (info.pages + 1) * info.page_bytes;
        let base = memory.segment(bytes, Placement::FirstTouch).base;
        for (thread, counts) in info.threads.iter().enumerate() {
            let most = (counts.events as f64 * scale).ceil() as u64;
            let copy = Copy { base, line_bytes: memory.line_bytes(), most };
            let reader = trace.thread(thread as u32)?;
            let failure = Rc::clone(&failure);
            application.task(&format!("{name}-{thread}"), move |cpu| {
                if let Err(error) = copy.run(cpu, reader) {
                    failure.borrow_mut().get_or_insert(error);
                }
            });
        }
        let check: Check = Box::new(move || match &*failure.borrow() {
            Some(error) => Err(error.to_string()),
            None => Ok(()),
        });
        all.push(Built::new(application, check));
    }
    Ok(all)
}

impl Copy {
    fn run(&self, cpu: &mut Cpu<'_>, mut reader: ThreadReader) -> Result<(), TraceError> {
        let mut events = Vec::new();
        let mut left = self.most;
        while left > 0 && reader.next_chunk(&mut events)? {
            for event in events.iter().take(left as usize) {
                self.step(cpu, *event);
            }
            left = left.saturating_sub(events.len() as u64);
        }
        Ok(())
    }

    #[inline]
    fn step(&self, cpu: &mut Cpu<'_>, event: Event) {
        let address = self.base + event.address();
        let last = address + u64::from(event.bytes()) - 1;
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
