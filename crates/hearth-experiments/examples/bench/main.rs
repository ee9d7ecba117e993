//! Simulated references a second, and how many if misses are told apart by cause; and data references a second of
//! recorded programs from the command's start to its end. `make bench` runs it, and then other cache simulators on the
//! same streams, which it leaves in the folder given: 64-bit words, the address
//! with bit 63 for a store.

use hearth_experiments::{Job, Policies, Workload, run_one};
use hearth_hardware::{Access, Hardware, Mode, Placement};
use hearth_machine::Machine;
use hearth_trace::{Kind, Trace};
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg32;
use std::error::Error;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

const STORE: u64 = 1 << 63;
/// Runs of each measurement; the best counts, as noise only ever slows a run down.
const RUNS: usize = 5;
const USAGE: &str = "usage: bench TRACE FOLDER HEARTH LONG_TRACE [--small]";

/// How much is measured.
struct Size {
    /// References of a stream.
    references: usize,
    /// Of the whole machine's workload.
    scale: f64,
}

const FULL: Size = Size { references: 8_000_000, scale: 0.25 };
/// Enough to see that everything works.
const SMALL: Size = Size { references: 400_000, scale: 0.05 };

/// Walks over random places in 64 MB, `words` words at each: one miss of the first level in `words` references.
fn walks(references: usize, words: u32) -> Vec<u64> {
    let footprint = 64 << 20;
    let mut random = Pcg32::seed_from_u64(u64::from(words));
    let mut stream = Vec::with_capacity(references);
    while stream.len() < references {
        let line = u64::from(random.next_u32()) * 64 % footprint;
        for word in 0..words {
            let store = if random.next_u32().is_multiple_of(4) { STORE } else { 0 };
            stream.push((line + u64::from(word) * 8 % 64) | store);
        }
    }
    stream
}

/// The first data references of a trace.
fn recorded(path: &Path, references: usize) -> Result<Vec<u64>, Box<dyn Error>> {
    let events = Trace::open(path)?.load_thread(0, u64::MAX)?;
    let data = events.iter().filter(|event| event.kind() != Kind::Fetch);
    let data = data.map(|event| event.address() | if event.kind() == Kind::Write { STORE } else { 0 });
    Ok(data.take(references).collect())
}

/// Seconds for a stream, on caches that have seen it once, and the share of it that misses the first level.
fn simulate(machine: &Machine, stream: &[u64], causes: bool) -> Result<(f64, f64), Box<dyn Error>> {
    let mut hardware = Hardware::new(machine, 1)?;
    if !causes {
        hardware.count_no_causes();
    }
    let end = stream.iter().map(|reference| reference & !STORE).max().unwrap_or_default() + 8;
    let base = hardware.segment(end, Placement::FirstTouch).base;
    let port = Rc::clone(&hardware.ports()[0]);
    let mut best = f64::MAX;
    let mut misses = 0;
    for run in 0..=RUNS {
        let (start, before) = (Instant::now(), port.counters());
        for &reference in stream {
            let address = base + (reference & !STORE);
            if reference & STORE != 0 {
                if !port.write(address) {
                    let _ = hardware.reference(0, address, Access::Write, Mode::User);
                }
            } else if !port.read(address) {
                let _ = hardware.reference(0, address, Access::Read, Mode::User);
            }
        }
        if run > 0 {
            best = best.min(start.elapsed().as_secs_f64());
        }
        misses = (port.counters() - before).l1d_misses;
    }
    Ok((best, misses as f64 / stream.len() as f64))
}

fn export(folder: &Path, name: &str, stream: &[u64]) -> std::io::Result<()> {
    let mut file = BufWriter::new(std::fs::File::create(folder.join(format!("{name}.refs")))?);
    stream.iter().try_for_each(|reference| file.write_all(&reference.to_le_bytes()))?;
    file.flush()
}

/// Sixteen CPUs with coherence, timing and a kernel: four matrix multiplications.
fn whole_machine(scale: f64, causes: bool) -> Result<f64, Box<dyn Error>> {
    let job = Job {
        machine: Arc::new(Machine::load("dash-16")?),
        workload: Workload::Mix("matrix+matrix+matrix+matrix".into()),
        policies: Policies::load("light")?,
        scale,
        seed: 1,
        options: hearth_sim::Options { causes, ..hearth_sim::Options::default() },
        sampled: None,
    };
    let mut best = f64::MAX;
    let mut references = 0;
    for _ in 0..3 {
        let start = Instant::now();
        references = run_one(&job, None)?.result.references;
        best = best.min(start.elapsed().as_secs_f64());
    }
    Ok(references as f64 / best / 1e6)
}

/// Millions of data references a second of the command `hearth compare`, which replays copies of a trace.
fn command(hearth: &Path, machine: &str, trace: &Path, copies: u64) -> Result<f64, Box<dyn Error>> {
    let references = copies * Trace::open(trace)?.info().total.references();
    let mut best = f64::MAX;
    for _ in 0..3 {
        let mut command = Command::new(hearth);
        command.args(["compare", "-p", "fair", "-m", machine, "--copies", &copies.to_string(), "--trace"]);
        let start = Instant::now();
        let status = command.arg(trace).stdout(Stdio::null()).stderr(Stdio::null()).status()?;
        best = best.min(start.elapsed().as_secs_f64());
        if !status.success() {
            return Err(format!("{command:?} ended with {status}").into());
        }
    }
    Ok(references as f64 / best / 1e6)
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let trace = arguments.next().ok_or(USAGE)?;
    let folder = arguments.next().ok_or(USAGE)?;
    let (hearth, long) = (arguments.next().ok_or(USAGE)?, arguments.next().ok_or(USAGE)?);
    let size = match arguments.next().as_deref() {
        None => FULL,
        Some("--small") => SMALL,
        Some(_) => return Err(USAGE.into()),
    };
    let folder = Path::new(&folder);
    std::fs::create_dir_all(folder)?;
    let machine = Machine::parse(include_str!("machine.toml"), "machine.toml")?;
    println!("{:24} {:>10} {:>26} {:>12}", "stream", "misses %", "M references/s, one core", "and causes");
    let streams = [
        ("recorded", recorded(Path::new(&trace), size.references)?),
        ("walks-6", walks(size.references, 16)),
        ("walks-23", walks(size.references, 4)),
        ("random", walks(size.references, 1)),
    ];
    for (name, stream) in streams {
        export(folder, name, &stream)?;
        let (seconds, misses) = simulate(&machine, &stream, false)?;
        let (with_causes, _) = simulate(&machine, &stream, true)?;
        let speed = |seconds: f64| stream.len() as f64 / seconds / 1e6;
        println!("{name:24} {:>10.2} {:>26.1} {:>12.1}", 100.0 * misses, speed(seconds), speed(with_causes));
    }
    let whole = |causes| whole_machine(size.scale, causes);
    println!("{:24} {:>10} {:>26.1} {:>12.1}", "16 CPUs, kernel, timing", "", whole(false)?, whole(true)?);
    // From a file, as a command of its own, which always tells causes apart.
    let (hearth, trace) = (Path::new(&hearth), Path::new(&trace));
    let one = command(hearth, "xeon-smp2", Path::new(&long), 1)?;
    let many = command(hearth, "dash-16", trace, 24)?;
    for (name, speed) in [("compare, 1 copy", one), ("compare, 24 on 16 CPUs", many)] {
        println!("{name:24} {:>10} {:>26} {speed:>12.1}", "", "");
    }
    Ok(())
}
