//! `hearth emulate`: one command of this host in a real kernel on an emulated machine, under several
//! schedulers.

mod comparison;
mod page;
mod pairs;
mod plan;
mod programs;
mod summary;
mod table;

use crate::names::{machines, schedulers};
use crate::progress::Bar;
use crate::values::{self, Seeds};
use clap::Args;
use comparison::Comparison;
use hearth_command::failure::{self, Failure, Outcome};
use hearth_command::{complete, interrupt, output};
use hearth_emulate::{Job, Progress, run_all};
use hearth_report::Source;
use plan::Plan;
use serde::Serialize;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Duration;

pub const EXAMPLES: &str = "\
Examples:
  hearth emulate -- sort FILE
  hearth emulate --machine chiplet-64 --copies 32 --seeds 3 -- gzip -k FILE
  hearth emulate --schedulers kernel,hearth:mine.toml --report report.html -- sort FILE
  hearth emulate --schedulers kernel,hearth:fair,'scx_bpfland -s 5000' -- sort FILE
  hearth emulate --program gcc --file FOLDER -- make -C FOLDER -j4
  hearth list machines";

#[derive(Debug, Args)]
pub struct Arguments {
    /// Machine: a name (see `hearth list machines`) or a TOML file
    #[arg(short, long, value_name = "NAME", default_value = "dash-16", add = complete::names(machines))]
    machine: String,
    /// Schedulers, joined by commas: kernel, kernel-cache (the kernel's own with its cache-aware
    /// scheduling), hearth:POLICY with a name (see `hearth list policies`) or a TOML file, or a command that
    /// loads another of sched_ext, such as 'scx_bpfland -s 5000'; the others are compared with the first
    #[arg(short, long, value_name = "NAMES")]
    #[arg(default_value = "kernel,kernel-cache,hearth:light,hearth:both", add = complete::listed(schedulers))]
    schedulers: String,
    /// Run under each scheduler with the seeds 1 to N, or A to B (A-B), which shift when copies start; figures are then
    /// means, with their spread
    #[arg(long, value_name = "N", default_value = "1")]
    seeds: Seeds,
    /// Run so many rounds in one guest for each scheduler and seed; what is reported then are ratios of pairs of the
    /// same round and seed, with their interval, and whether they differ
    #[arg(long, value_name = "N", value_parser = rounds)]
    rounds: Option<u32>,
    /// Run so many copies of the command at once; each has its number, from 0, in HEARTH_COPY
    #[arg(long, value_name = "N", default_value = "1", value_parser = copies)]
    copies: usize,
    /// Run the command once before, uncounted, so that the caches are warm when counting begins; else they are cold
    #[arg(long)]
    warm: bool,
    /// Emulated machines at a time [default: the number of CPUs]
    #[arg(short, long, value_name = "N", value_parser = values::jobs)]
    jobs: Option<usize>,
    /// Take a file along, or a folder with all that is in it, to the same place or to another; files that
    /// the command's arguments name come by themselves
    #[arg(long, value_name = "HOST[:GUEST]")]
    file: Vec<String>,
    /// Take a program along that the command runs, with its libraries
    #[arg(long, value_name = "NAME")]
    program: Vec<String>,
    /// What a shell of the guest runs before the command in each round, under the same scheduler, and uncounted: it
    /// starts a server, for example, which is ended after the command
    #[arg(long, value_name = "SHELL")]
    before: Option<String>,
    /// Have what the CPUs do, stalls included, drive the guest's clock: ticks, slices and elapsed time are the
    /// machine's. It takes longer, and one build of QEMU
    #[arg(long)]
    timed: bool,
    /// The guest's memory in MiB [default: as the files make likely]
    #[arg(long, value_name = "MIB", value_parser = memory)]
    memory: Option<usize>,
    /// Keep what comes of each guest in a folder, and run none again that would do the same: what was interrupted goes
    /// on, and a scheduler that has changed is compared anew with others that have not
    #[arg(long, value_name = "FOLDER")]
    keep: Option<PathBuf>,
    /// When a guest that has not ended is killed; with --rounds, for each round
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = humantime::parse_duration)]
    limit: Duration,
    /// Show each program as well
    #[arg(short, long)]
    verbose: bool,
    /// Print everything that was counted as JSON
    #[arg(long)]
    json: bool,
    /// Print a row for each run as CSV
    #[arg(long, conflicts_with = "json")]
    csv: bool,
    /// Write a page with charts, to be opened in a browser
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// The command, whose output goes nowhere
    #[arg(last = true, value_name = "COMMAND", required = true)]
    command: Vec<String>,
}

/// One round has no spread.
fn rounds(text: &str) -> Result<u32, String> {
    values::count(text, 2..=100).map(|rounds| rounds as u32)
}

fn copies(text: &str) -> Result<usize, String> {
    values::count(text, 1..=1024)
}

fn memory(text: &str) -> Result<usize, String> {
    values::count(text, 256..=1 << 20)
}

pub fn run(arguments: &Arguments) -> Outcome {
    arguments.report.iter().try_for_each(|path| output::check_writable(path))?;
    let plan = Plan::new(arguments)?;
    plan.notes().iter().for_each(|note| anstream::eprintln!("note: {note}"));
    let stop = interrupt::flag()?;
    let bar = Bar::new(plan.jobs.len());
    let threads = arguments.jobs.unwrap_or_else(values::default_jobs);
    let results = run_all(&plan.emulation, &plan.jobs, threads, plan.kept.as_ref(), stop, &bar);
    bar.finish();
    let (comparison, errors) = plan.collect(results);
    if !comparison.schedulers.is_empty() {
        show(arguments, &comparison)?;
    }
    failure::of_runs(&errors, plan.runs(), stop.load(Ordering::Relaxed))
}

impl Progress for Bar {
    fn began(&self, job: &Job) {
        self.run_began(name(job));
    }

    fn ended(&self, job: &Job, done: usize, all: usize) {
        self.run_ended(&name(job), done, all);
    }
}

fn name(job: &Job) -> String {
    let scheduler = job.scheduler.name();
    let scheduler = if job.is_again { pairs::again(&scheduler) } else { scheduler };
    format!("{scheduler}, seed {}", job.seed)
}

#[derive(Serialize)]
struct Json<'a> {
    summary: String,
    #[serde(flatten)]
    comparison: &'a Comparison,
}

fn csv(comparison: &Comparison) -> Result<String, Failure> {
    output::csv(&comparison.header(), &comparison.rows())
}

fn show(arguments: &Arguments, comparison: &Comparison) -> Outcome {
    if let Some(path) = &arguments.report {
        let source = Source { command: output::command_line(), csv: csv(comparison)? };
        output::write_file(path, page::page(comparison, &source).as_bytes())?;
    }
    if arguments.json {
        return output::print_json(&Json { summary: comparison.sentence(), comparison });
    }
    if arguments.csv {
        return output::print(&csv(comparison)?);
    }
    output::print(&table::text(comparison, arguments.verbose))?;
    output::announce([&arguments.report]);
    Ok(())
}
