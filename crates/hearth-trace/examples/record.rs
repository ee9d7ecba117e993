//! Records a command, reads the trace back and prints how fast both went.
//!
//! `cargo run --release -p hearth-trace --example record -- FILE COMMAND...`
//! Environment: `LEVEL` (zstd), `LIMIT` (references), `BACKEND` (`qemu` or `lackey`).

use std::ffi::OsString;
use std::time::Instant;

use hearth_trace::{Backend, RecordOptions, Trace, record};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let path = arguments.next().ok_or("usage: record FILE COMMAND...")?;
    let command: Vec<OsString> = arguments.collect();
    let variable = |name: &str| std::env::var(name).ok();
    let mut options = RecordOptions::new(&path);
    options.level = variable("LEVEL").map_or(Ok(options.level), |level| level.parse())?;
    options.max_references = variable("LIMIT").map(|limit| limit.parse()).transpose()?;
    options.interrupt = hearth_trace::interrupt_on_signals()?;
    options.backend = match variable("BACKEND").as_deref() {
        Some("qemu") => Backend::Qemu,
        Some("lackey") => Backend::Lackey,
        _ => Backend::Auto,
    };
    if !command.is_empty() {
        let summary = record(&command, options)?;
        let references = summary.info.total.references() as f64;
        eprintln!(
            "{} references, {} bytes ({:.3} each), {:.2} s, {:.1} M references/s, {}",
            references,
            summary.bytes,
            summary.bytes as f64 / references,
            summary.wall.as_secs_f64(),
            references / summary.wall.as_secs_f64() / 1e6,
            summary.status
        );
    }
    let trace = Trace::open(&path)?;
    eprintln!("{:#?}", trace.info());
    let begin = Instant::now();
    let (mut chunk, mut events) = (Vec::new(), 0);
    for thread in 0..trace.info().threads.len() {
        let mut reader = trace.thread(thread as u32)?;
        while reader.next_chunk(&mut chunk)? {
            events += chunk.len();
        }
    }
    let seconds = begin.elapsed().as_secs_f64();
    eprintln!("{events} events read in {seconds:.3} s: {:.1} M/s", events as f64 / seconds / 1e6);
    Ok(trace.verify()?)
}
