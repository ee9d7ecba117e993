//! Recorded memory references of real programs: format, recorder, streaming reader.
//!
//! A trace holds what a program did, thread by thread, as a sequence of [`Event`]s: code fetches,
//! data reads and data writes, each with a dense address and the number of instructions that
//! execute until the next one. `docs/trace-format.md` describes the file format, what a recording
//! leaves out, and how its counts compare with other tools'.
//!
//! # Reading
//! ```
//! # fn main() -> Result<(), hearth_trace::TraceError> {
//! # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../traces/sort-sources.trace");
//! let trace = hearth_trace::Trace::open(path)?;
//! let mut reader = trace.thread(0)?;
//! let (mut events, mut instructions) = (Vec::new(), 0);
//! while reader.next_chunk(&mut events)? {
//!     instructions += events.iter().map(|event| u64::from(event.instructions())).sum::<u64>();
//! }
//! assert_eq!(instructions, trace.info().threads[0].instructions);
//! # Ok(())
//! # }
//! ```
//! Memory stays bounded whatever the trace's size, and damage of any kind is an error that says
//! where and what to do. Several replays of one trace each take their own [`ThreadReader`],
//! share what is decoded between the first and the last of them ([`SharedTrace`]), or all of it
//! ([`Trace::load_thread`]).
//!
//! # Recording
//! [`record`] runs a command with qemu-user and a plugin that is built with this crate, or with
//! valgrind's lackey where no QEMU takes plugins, and writes its trace. [`TraceWriter`] writes a
//! trace of a program that never ran, for tests.
//!
//! # The parts
//! | module | subject |
//! |---|---|
//! | `event` | an event in eight bytes |
//! | `format` | the file's frame: header, chunk headers, trailer |
//! | `shape` | what a block does, all but the data addresses |
//! | `delta` | addresses as differences |
//! | `chunk` | a chunk's payload, encoded and decoded |
//! | `executions` | what a chunk decodes to: blocks executed, and their addresses |
//! | `reader` | streams a thread's chunks |
//! | `shared` | decodes a thread once for several replays |
//! | `word`, `pages`, `thread`, `writer` | from the recorder's raw words to chunks |
//! | `record` | runs the program: `qemu` with `plugin/recorder.c`, or `lackey` |
//!
//! # Speed
//! `cargo run --release -p hearth-trace --example record -- FILE COMMAND...` records, reads back
//! and prints both speeds.

mod chunk;
mod delta;
mod error;
mod event;
mod executions;
mod format;
mod pages;
mod reader;
mod record;
mod shape;
mod shared;
mod thread;
mod word;
mod writer;

pub use error::TraceError;
pub use event::{Event, Kind, MAX_INSTRUCTIONS, PAGE_BYTES};
pub use executions::{Execution, Executions, Reference};
pub use format::{Counts, TraceInfo, VERSION};
pub use reader::{ThreadReader, Trace};
pub use record::{
    Backend, RecordError, RecordOptions, Summary, Tool, find_tool, interrupt_on_signals, record,
};
pub use shared::{SharedReader, SharedThread, SharedTrace};
pub use writer::{Access, TraceWriter};
