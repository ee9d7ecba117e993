//! Recorded memory references of real programs: format, recorder, streaming reader.

mod chunk;
mod delta;
mod error;
mod event;
mod format;
mod pages;
mod reader;
mod record;
mod shape;
mod thread;
mod word;
mod writer;

pub use error::TraceError;
pub use event::{Event, Kind, MAX_INSTRUCTIONS, PAGE_BYTES};
pub use format::{Counts, TraceInfo, VERSION};
pub use reader::{ThreadReader, Trace};
pub use record::{Backend, RecordError, RecordOptions, Summary, check_backend, interrupt_on_signals, record};
pub use writer::{Access, TraceWriter};
