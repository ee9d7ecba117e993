//! Looks for races, seed after seed: `cargo run --release -p hearth-races --example hunt -- --seeds 1000`

use anyhow::Result;
use clap::Parser;
use hearth_machine::Machine;
use hearth_policy::Policy;
use hearth_races::{Setting, run};
use std::process::ExitCode;

/// Runs the scheduler on CPUs that interleave at every access to memory.
#[derive(Parser)]
struct Options {
    /// Machine, at most 64 CPUs
    #[arg(long, default_value = "dash-16")]
    machine: String,
    /// Policy
    #[arg(long, default_value = "fair")]
    policy: String,
    /// Number of tasks
    #[arg(long, default_value_t = 24)]
    tasks: usize,
    /// The machine's time for each seed, in ms
    #[arg(long, default_value_t = 1000)]
    ms: u64,
    /// Weights and classes change, and higher classes take CPUs
    #[arg(long)]
    unequal: bool,
    /// CPUs go away and come back, and the scheduler is loaded anew
    #[arg(long)]
    hotplug: bool,
    /// A task that cannot run at once where it was inserted to run is enqueued anew
    #[arg(long)]
    immediate: bool,
    /// Plans come and go, with parts, homes and rows of time
    #[arg(long)]
    plans: bool,
    /// Tasks declare the data that they are about to use
    #[arg(long)]
    fragments: bool,
    /// First seed
    #[arg(long, default_value_t = 1)]
    from: u64,
    /// Number of seeds
    #[arg(long, default_value_t = 100)]
    seeds: u64,
}

fn main() -> Result<ExitCode> {
    let options = Options::parse();
    let mut machine = Machine::load(&options.machine)?;
    machine.kernel.tick_ns = 4_000_000;
    let policy = Policy::load(&options.policy)?;
    let (mut found, mut rests, mut mended, mut longest) = (0, 0, 0, 0);
    for seed in options.from..options.from + options.seeds {
        let make = if options.unequal { Setting::unequal } else { Setting::new };
        let Options { hotplug, immediate, fragments, .. } = options;
        let made = make(options.tasks, options.ms * 1_000_000, seed);
        let setting = Setting { hotplug, immediate, fragments, ..made };
        let setting = if options.plans { setting.with_plans() } else { setting };
        match run(&machine, &policy, setting)? {
            Ok(outcome) => {
                rests += outcome.rests;
                mended += outcome.mended_by_tick;
                longest = longest.max(outcome.longest_wait_ns);
            }
            Err(violation) => {
                found += 1;
                println!("seed {seed}: {violation}");
            }
        }
    }
    println!(
        "{found} of {} seeds violate; of {rests} rests {mended} needed a tick; longest wait {} ms",
        options.seeds,
        longest as f64 / 1e6
    );
    Ok(if found > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
