//! `hearth compare`: one workload on a simulated machine under several policies.

mod plan;
mod table;

use crate::names::{beside_policies, machines, workloads};
use crate::progress::Bar;
use crate::values::{self, Seeds};
use anyhow::anyhow;
use clap::Args;
use hearth_command::failure::{self, Failure, Outcome};
use hearth_command::names::{NO_PLANNER, POLICY, planner_names};
use hearth_command::{complete, interrupt, output};
use hearth_experiments::report::Comparison;
use hearth_experiments::{Job, Runner, perfetto, report};
use hearth_policy::planners::PLANNERS;
use hearth_report::Source;
use plan::{Copies, Plan};
use serde::Serialize;
use std::path::PathBuf;
use std::sync::atomic::Ordering;

pub const EXAMPLES: &str = "\
Examples:
  hearth compare                                 parallel makes on a server of two sockets
  hearth compare --seeds 3 --report report.html  with the spread of three seeds, and a page
  hearth compare --trace sort.trace --copies 96 -m chiplet-64
  hearth compare --trace sort.trace --copies 8 -m host -p plain,fair,mine.toml
  hearth compare --trace sort.trace --copies 1.5x -m chiplet-64,host --report report.html
  hearth compare -m sgi-4d340 -p standard,light,heavy,attached matrix+matrix
  hearth compare -m dash-16 -p standard,both,both+dash engineering
  hearth compare -m server-2s -p fair,fair+masks containers
  hearth list workloads";

#[derive(Debug, Args)]
pub struct Arguments {
    /// Programs to run together, joined by + (see `hearth list workloads`)
    #[arg(default_value = "pmake+pmake+pmake+pmake", add = complete::joined(workloads, workloads))]
    workload: String,
    /// Machines, joined by commas: names (see `hearth list machines`), host for this one, or TOML files
    #[arg(short, long = "machine", value_name = "NAMES", value_delimiter = ',', default_value = "server-2s")]
    #[arg(add = complete::names(machines))]
    machines: Vec<String>,
    /// Policies, joined by commas: names (see `hearth list policies`) or TOML files, each with a page
    /// policy behind a + if pages shall move, and a planner behind a +; the others are compared with the
    /// first
    #[arg(short, long, value_name = "NAMES", value_delimiter = ',')]
    #[arg(default_value = "plain,fair,both", add = complete::joined(POLICY.names, beside_policies))]
    policies: Vec<String>,
    /// What plans while programs run, under each policy that names no planner itself
    #[arg(long, value_name = "NAME", default_value = NO_PLANNER)]
    #[arg(value_parser = planner_names(&PLANNERS))]
    planner: String,
    /// Run each policy with the seeds 1 to N, or A to B (A-B); figures are then means, with their spread
    #[arg(long, value_name = "N", default_value = "1")]
    seeds: Seeds,
    /// Shorten the programs: above 0 and up to 1, the paper's size
    #[arg(short, long, value_name = "X", default_value = "1", value_parser = values::scale)]
    scale: f64,
    /// Runs at a time [default: the number of CPUs]
    #[arg(short, long, value_name = "N", value_parser = values::jobs)]
    jobs: Option<usize>,
    /// Run copies of a recorded program instead (see `hearth record`)
    #[arg(long, value_name = "FILE", conflicts_with = "workload")]
    trace: Option<PathBuf>,
    /// With --trace: how many copies, or how many for each of the machine's CPUs, as 1.5x
    #[arg(long, value_name = "N", requires = "trace", default_value = "4")]
    copies: Copies,
    /// Show each application as well
    #[arg(short, long)]
    verbose: bool,
    /// Print everything that was measured as JSON
    #[arg(long)]
    json: bool,
    /// Print a row for each run as CSV
    #[arg(long, conflicts_with = "json")]
    csv: bool,
    /// Write a page with charts, to be opened in a browser
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Write what ran where, to be opened in ui.perfetto.dev
    #[arg(long, value_name = "FILE")]
    perfetto: Option<PathBuf>,
}

pub fn run(arguments: &Arguments) -> Outcome {
    let files = [&arguments.report, &arguments.perfetto];
    files.into_iter().flatten().try_for_each(|path| output::check_writable(path))?;
    if arguments.perfetto.is_some() && arguments.machines.len() > 1 {
        return Err(Failure::input(anyhow!("--perfetto shows one machine: name one with --machine")));
    }
    let plans: Vec<Plan> =
        arguments.machines.iter().map(|machine| Plan::new(arguments, machine)).collect::<Result<_, _>>()?;
    let jobs: Vec<Job> = plans.iter().flat_map(|plan| plan.jobs.iter().cloned()).collect();
    let stop = interrupt::flag()?;
    let bar = Bar::new(jobs.len());
    let threads = arguments.jobs.unwrap_or_else(values::default_jobs);
    let results = Runner { threads, kept: None, progress: &bar, stop: Some(stop) }.run_all(&jobs);
    bar.finish();
    let is_interrupted = stop.load(Ordering::Relaxed);
    let (mut results, mut errors, mut comparisons) = (results.into_iter(), Vec::new(), Vec::new());
    for plan in &plans {
        let (comparison, failed) = plan.collect(results.by_ref().take(plan.jobs.len()));
        errors.extend(failed);
        comparisons.extend((!comparison.policies.is_empty()).then_some(comparison));
    }
    if !comparisons.is_empty() {
        show(arguments, &comparisons)?;
    }
    failure::of_runs(&errors, jobs.len(), is_interrupted)
}

#[derive(Serialize)]
struct Json<'a> {
    summary: String,
    #[serde(flatten)]
    comparison: &'a Comparison,
}

/// Of several machines.
#[derive(Serialize)]
struct JsonOfMachines<'a> {
    comparisons: Vec<Json<'a>>,
}

impl<'a> From<&'a Comparison> for Json<'a> {
    fn from(comparison: &'a Comparison) -> Self {
        Self { summary: comparison.sentences().join(" "), comparison }
    }
}

fn csv(comparisons: &[Comparison]) -> Result<String, Failure> {
    let rows: Vec<_> = comparisons.iter().flat_map(Comparison::rows).collect();
    output::csv(&Comparison::header(), &rows)
}

/// At least one comparison.
fn show(arguments: &Arguments, comparisons: &[Comparison]) -> Outcome {
    if let Some(path) = &arguments.report {
        let source = Source { command: output::command_line(), csv: csv(comparisons)? };
        output::write_file(path, report::compare_page(comparisons, &source).as_bytes())?;
    }
    if let (Some(path), [comparison]) = (&arguments.perfetto, comparisons) {
        output::write_file(path, &perfetto::trace(comparison))?;
    }
    if arguments.json {
        return match comparisons {
            [comparison] if arguments.machines.len() == 1 => output::print_json(&Json::from(comparison)),
            all => output::print_json(&JsonOfMachines { comparisons: all.iter().map(Json::from).collect() }),
        };
    }
    if arguments.csv {
        return output::print(&csv(comparisons)?);
    }
    let texts: Vec<String> =
        comparisons.iter().map(|comparison| table::text(comparison, arguments.verbose)).collect();
    output::print(&texts.join("\n\n"))?;
    output::announce([&arguments.report, &arguments.perfetto]);
    Ok(())
}
