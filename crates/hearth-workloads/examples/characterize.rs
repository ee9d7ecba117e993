//! Prints what the cache-affinity paper says of its applications (sections 3.1 and 3.2), measured on
//! ours: the figures that programs may be tuned to, claims T1 to T4.
//!
//! ```text
//! cargo run --release -p hearth-workloads --example characterize -- [SCALE [SEED [PROGRAM...]]]
//! ```
//!
//! T1, T2 and T3 come from each program alone under the policy `standard`. T4 needs effective time
//! slices such as the paper's figure 1 has, so there the program shares the machine with the one that
//! it is paired with in table IV.

use hearth_machine::Machine;
use hearth_policy::Policy;
use hearth_sim::measure::Tally;
use hearth_sim::program::End;
use hearth_sim::{Flush, Options, RunResult, Simulation};
use hearth_workloads::build_mix;
use hearth_workloads::cool::Sharing;

/// A program and the mix in which its effective time slices are measured.
const PROGRAMS: [(&str, &str); 5] = [
    ("matrix", "matrix+matrix"),
    ("cholesky", "cholesky+matrix"),
    ("mp3d", "mp3d+matrix"),
    ("pmake", "pmake+pmake"),
    ("oltp", "oltp"),
];

/// Limits of table II's columns, in milliseconds.
const LENGTHS_MS: [u64; 8] = [1, 5, 9, 13, 17, 21, 25, 128];

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let scale = arguments.first().map_or(Ok(0.2), |text| text.parse())?;
    let seed = arguments.get(1).map_or(Ok(1), |text| text.parse())?;
    let wanted = arguments.get(2..).unwrap_or_default();
    for (program, mix) in PROGRAMS {
        if wanted.is_empty() || wanted.iter().any(|name| name == program) {
            characterize(program, mix, scale, seed)?;
        }
    }
    Ok(())
}

fn run(mix: &str, scale: f64, seed: u64, flush: Flush) -> anyhow::Result<RunResult> {
    let machine = Machine::load("sgi-4d340")?;
    let options = Options { seed, flush, ..Options::default() };
    let mut simulation = Simulation::new(&machine, &Policy::load("standard")?, &options)?;
    let mut checks = Vec::new();
    for built in build_mix(mix, &simulation.memory(), scale, seed, Sharing::OneByOne)? {
        built.applications.into_iter().for_each(|application| simulation.add(application));
        checks.push(built.check);
    }
    let result = simulation.run()?;
    for check in checks {
        check().map_err(anyhow::Error::msg)?;
    }
    Ok(result)
}

fn characterize(program: &str, mix: &str, scale: f64, seed: u64) -> anyhow::Result<()> {
    let started = std::time::Instant::now();
    let plain = run(program, scale, seed, Flush::Never)?;
    let host = started.elapsed().as_secs_f64();
    let flushed = run(program, scale, seed, Flush::EachInterval)?;
    let sliced = run(mix, scale, seed, Flush::EachSlice)?;
    let tally = &plain.applications[0].tally;
    let slices = sliced.applications[0].tally.slices;
    let (with, without) = (flushed.total.intervals.mean_misses(), plain.total.intervals.mean_misses());
    println!(
        "{program}: {:.2} s, {:.2} CPU-s, idle {:.1} %, {} M references, {host:.1} s on this host",
        plain.elapsed_ns as f64 / 1e9,
        tally.cpu_ns as f64 / 1e9,
        plain.idle_share * 100.0,
        plain.references / 1_000_000,
    );
    println!(
        "  T1 reload misses {:.0} = {with:.0} - {without:.0} ({} intervals of {:.1} ms, and {} of {:.1} ms)",
        with - without,
        flushed.total.intervals.count,
        flushed.total.intervals.mean_ms(),
        plain.total.intervals.count,
        plain.total.intervals.mean_ms(),
    );
    let extra = flushed.total.intervals.misses as f64 - plain.total.intervals.misses as f64;
    println!(
        "     more misses for the same work, by intervals: {:.0}",
        extra / plain.total.intervals.count as f64
    );
    print_lengths(tally);
    print_ends(tally);
    println!(
        "  T4 misses of a flushed slice {:.0} (mean {:.1} ms, {} slices, in {mix})",
        slices.mean_misses(),
        slices.mean_ms(),
        slices.count
    );
    let counters = tally.counters;
    println!(
        "  misses {}: instructions {}, cache to cache {}; causes (first, self, other, coherence, move) {:?}; \
         TLB {}, page faults {}, queue {:.1} %",
        counters.misses(),
        counters.instruction_misses,
        counters.cache_to_cache,
        counters.causes,
        counters.tlb_misses,
        counters.page_faults,
        counters.queue_ps as f64 / tally.cpu_ns as f64 / 10.0
    );
    Ok(())
}

fn print_lengths(tally: &Tally) {
    print!("  T2 lengths (mean {:.1} ms, {}):", tally.intervals.mean_ms(), tally.intervals.count);
    for limits in LENGTHS_MS.windows(2) {
        let share = tally.interval_lengths.share(limits[0] * 1_000_000, limits[1] * 1_000_000);
        print!(" {}-{} {:.0} %", limits[0], limits[1], share * 100.0);
    }
    println!();
}

fn print_ends(tally: &Tally) {
    print!("  T3 ends:");
    for end in End::ALL {
        print!(" {end:?} {:.1} %", tally.end_share(end) * 100.0);
    }
    println!();
}
