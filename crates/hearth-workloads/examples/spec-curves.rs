//! Prints the miss-rate curves of the programs that stand for those of SPEC CPU2000: the points that were given,
//! with where they come from, and what the simulated machine of the cache-fair paper measures at some sizes of
//! its second-level cache, the program being alone.
//!
//! ```text
//! cargo run --release -p hearth-workloads --example spec-curves -- [MILLIONS [SEED [PROGRAM...]]]
//! ```
//!
//! Misses are those of the second half of a run of twice `MILLIONS` instructions: the caches are cold at first.

use anyhow::Context;
use hearth_hardware::Counters;
use hearth_machine::Machine;
use hearth_policy::Policy;
use hearth_sim::{Options, Simulation};
use hearth_workloads::build;
use hearth_workloads::spec::{FIRST_KIB, PROGRAMS, Program};

/// Sizes of the second level in KB.
const SIZES_KIB: [u64; 4] = [128, 512, 1024, 2048];

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let millions = arguments.first().map_or(Ok(100), |text| text.parse())?;
    let seed = arguments.get(1).map_or(Ok(1), |text| text.parse())?;
    let wanted = arguments.get(2..).unwrap_or_default();
    for program in PROGRAMS {
        if wanted.is_empty() || wanted.iter().any(|name| name == program.description.name) {
            print(program, millions, seed)?;
        }
    }
    Ok(())
}

fn print(program: &Program, millions: u64, seed: u64) -> anyhow::Result<()> {
    let curve = program.curve();
    println!("{}: misses of 1,000 instructions", program.description.name);
    for point in curve.points() {
        println!("  {:>7} KB {:>8.2}  {:?}", point.kib, point.misses, point.origin);
    }
    for kib in SIZES_KIB {
        let started = std::time::Instant::now();
        let half = run(program, kib, millions, seed)?;
        let whole = run(program, kib, 2 * millions, seed)?;
        let counters = whole.0 - half.0;
        let a_thousand = |count: u64| count as f64 / millions as f64 / 1000.0;
        println!(
            "  {kib:>7} KB {:>8.2}  8-way {:.2}, measured {:.2}; first level {:.2} of {:.2}, TLB {:.2}, stores {:.1} %, \
             {:.2} cycles an instruction; {:.1} s on this host",
            curve.misses(kib as f64),
            curve.misses_in(kib as f64, 8),
            a_thousand(counters.misses() - counters.instruction_misses),
            a_thousand(counters.l1d_misses),
            curve.misses(f64::from(FIRST_KIB)),
            a_thousand(counters.tlb_misses),
            100.0 * counters.writes as f64 / (counters.reads + counters.writes) as f64,
            (whole.1 - half.1) / (millions as f64 * 1e6) * (CLOCK_MHZ / 1e3),
            started.elapsed().as_secs_f64(),
        );
    }
    Ok(())
}

/// The machine's clock.
const CLOCK_MHZ: f64 = 992.0;

/// What was counted, and the CPU time in nanoseconds.
fn run(program: &Program, kib: u64, millions: u64, seed: u64) -> anyhow::Result<(Counters, f64)> {
    let mut machine = Machine::load("t1-dual")?;
    let second =
        machine.caches.iter_mut().find(|cache| cache.name == "L2").context("it has a second level")?;
    second.size_bytes = kib << 10;
    let options = Options { seed, ..Options::default() };
    let mut simulation = Simulation::new(&machine, &Policy::load("vanilla")?, &options)?;
    let name = format!("{}:millions={millions}", program.description.name);
    let built = build(&name, &simulation.memory(), 1.0, seed)?;
    built.applications.into_iter().for_each(|application| simulation.add(application));
    let result = simulation.run()?;
    (built.check)().map_err(anyhow::Error::msg)?;
    let tally = &result.applications[0].tally;
    Ok((tally.counters, tally.cpu_ns as f64))
}
