//! How long the planner of cache-fair shares takes over ten thousand tasks.
//! `cargo run --release -p hearth-policy --example cache_fair`.

use hearth_policy::isolation::{Bus, Fit};
use hearth_policy::planners::CacheFair;
use hearth_policy::planners::cache_fair::Rule;
use hearth_policy::snapshot::{Class, Run, State, Task};
use hearth_policy::{Controller, Snapshot};
use std::error::Error;
use std::time::Instant;

const CPUS: usize = 64;
const TASKS: i32 = 10_000;
/// Runs that end on each CPU in a step.
const RUNS: usize = 10;
const STEPS: u64 = 200;
const FAIR: u64 = 1;
const BEST_EFFORT: u64 = 2;

/// The median and the longest of all steps, in milliseconds, where one of so many tasks is cache-fair.
fn step_ms(one_of: i32, fit: Fit) -> Result<(f64, f64), Box<dyn Error>> {
    let rule = Rule { fit, phases: true, ..Rule::default() };
    let bus = Bus { memory_cycles: 100.0, transfer_cycles: 8.0 };
    let mut controller = Controller::new(vec![Box::new(CacheFair::new(bus, rule))]);
    let mut times = Vec::new();
    for step in 0..STEPS {
        let mut snapshot = Snapshot::new(step, (0..CPUS).map(|cpu| (cpu, cpu / 8, 0)));
        snapshot.classes = [(FAIR, Class::CacheFair), (BEST_EFFORT, Class::BestEffort)].into();
        let mask = snapshot.mask((0..CPUS).collect());
        for tid in 1..=TASKS {
            let group = if tid % one_of == 0 { FAIR } else { BEST_EFFORT };
            let (cpu, state) = (tid as usize % CPUS, State::Waiting);
            snapshot.add(Task { tid, group, weight: 100, cpu, mask, state, ..Task::default() });
        }
        // A few hundred tasks have nearly all runs, so that they are sampled to the end again and again.
        for index in 0..(CPUS * RUNS) as u64 {
            let tid = (index as i32 % 300 + 1) * one_of;
            let mixed = (index + step * 1009).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
            let (others_misses, noise) = (mixed % 1_000_000, mixed % 13 * 10_000);
            let misses = 200_000 + others_misses / 3 + noise;
            snapshot.runs.push(Run {
                tid: tid.min(TASKS),
                group: FAIR,
                cpu: tid as usize % CPUS,
                cycles: 100_000_000,
                instructions: 80_000_000 - 50 * misses,
                misses,
                transfers: misses,
                others_misses,
                others_transfers: others_misses,
                others: 1,
            });
        }
        let start = Instant::now();
        controller.step(&snapshot)?;
        times.push(start.elapsed().as_secs_f64() * 1e3);
    }
    times.sort_by(f64::total_cmp);
    Ok((times[times.len() / 2], times[times.len() - 1]))
}

fn main() -> Result<(), Box<dyn Error>> {
    println!("a step of {TASKS} tasks, ms: the median, and the longest of {STEPS}");
    for one_of in [1, 2, 10, 33] {
        for fit in [Fit::LeastSquares, Fit::Robust] {
            let (median, longest) = step_ms(one_of, fit)?;
            println!("one of {one_of:2} cache-fair, {:14} {median:8.2} {longest:8.2}", format!("{fit:?}"));
        }
    }
    Ok(())
}
