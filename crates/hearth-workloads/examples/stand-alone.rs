//! Prints tables 1 and 4 of Chandra, Devine, Verghese, Gupta and Rosenblum, "Scheduling and Page Migration
//! for Multiprocessor Compute Servers" (ASPLOS 1994), measured on our programs: how long each takes
//! alone on the machine, and how much memory it touches. Those of table 1 are the figures that the
//! programs of that paper are tuned to. Table 4 has total times of parallel programs, of which ours lack
//! the serial part: they read no files, and their inputs come ordered.
//!
//! ```text
//! cargo run --release -p hearth-workloads --example stand-alone -- [SCALE [SEED [PROGRAM...]]]
//! ```

use hearth_machine::CpuSet;
use hearth_machine::Machine;
use hearth_policy::Policy;
use hearth_sim::{Options, Simulation};
use hearth_workloads::cool::{Invocation, Sharing};
use hearth_workloads::{build_invoked, build_mix};
use std::time::Instant;

/// A program, and the paper's seconds and kilobytes, where it has them for the same size. Memory that
/// `pmake-4` has done with is not used again, so what it touches adds up; how much it works in at a time
/// is a test of the program's.
const PROGRAMS: [(&str, Option<f64>, Option<f64>); 14] = [
    ("mp3d-serial", Some(21.7), Some(7_536.0)),
    ("ocean", Some(26.3), Some(3_059.0)),
    ("water", Some(50.3), Some(1_351.0)),
    ("locus", Some(29.1), Some(3_461.0)),
    ("panel", Some(39.0), Some(8_908.0)),
    ("radiosity", Some(78.6), Some(70_561.0)),
    ("pmake-4", Some(55.0), None),
    ("editor", None, None),
    ("ocean-8", None, None),
    ("panel-8", None, None),
    ("ocean-cool", Some(40.9), None),
    ("water-cool", Some(29.4), None),
    ("locus-cool", Some(39.4), None),
    ("panel-cool", Some(58.3), None),
];

/// How far ours may be from the paper's.
const TOLERANCE: f64 = 0.25;

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let scale = arguments.first().map_or(Ok(1.0), |text| text.parse())?;
    let seed = arguments.get(1).map_or(Ok(1), |text| text.parse())?;
    let wanted = arguments.get(2..).unwrap_or_default();
    for (program, seconds, kilobytes) in PROGRAMS {
        if wanted.is_empty() || wanted.iter().any(|name| name == program) {
            run(program, [seconds, kilobytes], scale, seed)?;
        }
    }
    Ok(())
}

fn run(program: &str, paper: [Option<f64>; 2], scale: f64, seed: u64) -> anyhow::Result<()> {
    let machine = Machine::load("dash-16")?;
    let options = Options { seed, ..Options::default() };
    let mut simulation = Simulation::new(&machine, &Policy::load("standard")?, &options)?;
    let mut checks = Vec::new();
    let built = match program.ends_with("-cool") {
        true => vec![build_invoked(program, &simulation.memory(), scale, seed, &alone())?],
        false => build_mix(program, &simulation.memory(), scale, seed, Sharing::OneByOne)?,
    };
    for built in built {
        built.applications.into_iter().for_each(|application| simulation.add(application));
        checks.push(built.check);
    }
    let started = Instant::now();
    let result = simulation.run()?;
    let host = started.elapsed().as_secs_f64();
    for check in checks {
        check().map_err(anyhow::Error::msg)?;
    }
    let counters = result.total.counters;
    let seconds = result.elapsed_ns as f64 / 1e9;
    let kilobytes = (counters.page_faults * machine.page_bytes) as f64 / 1024.0;
    println!(
        "{program}: {seconds:.1} s{}, {kilobytes:.0} KB{}",
        beside(seconds, paper[0].map(|seconds| seconds * scale)),
        beside(kilobytes, paper[1]),
    );
    let cpu_seconds = result.total.cpu_ns as f64 / 1e9;
    let cycles = cpu_seconds * 1e12 / machine.cycle_ps() as f64;
    let millions = |count: u64| count as f64 / 1e6;
    println!(
        "  {cpu_seconds:.1} CPU-s, {:.1} M references (one in {:.1} cycles), {:.2} M data misses ({} local, {} remote), \
         {:.2} M TLB misses; {host:.1} s on this host, {:.0} M cycles a second",
        millions(counters.reads + counters.writes),
        cycles / (counters.reads + counters.writes).max(1) as f64,
        millions(counters.misses() - counters.instruction_misses),
        counters.memory_local,
        counters.memory_remote,
        millions(counters.tlb_misses),
        cycles / host / 1e6,
    );
    Ok(())
}

/// As the paper's table 4 has its programs: each process has a CPU.
fn alone() -> Invocation {
    Invocation { cpus: CpuSet::of_word(0xffff), attached: true, distributed: true, ..Invocation::default() }
}

/// The paper's figure, and whether ours is near enough.
fn beside(ours: f64, paper: Option<f64>) -> String {
    let Some(paper) = paper else { return String::new() };
    let off = ours / paper - 1.0;
    let verdict = if off.abs() <= TOLERANCE { "within" } else { "NOT within" };
    format!(" (paper {paper:.1}: {:+.0} %, {verdict} {:.0} %)", off * 100.0, TOLERANCE * 100.0)
}
