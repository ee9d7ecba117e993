//! `hearth lab`: what papers found, checked.

mod table;

use crate::names;
use crate::progress::Bar;
use crate::values::{self, Seeds};
use anyhow::anyhow;
use clap::Args;
use hearth_command::failure::{Failure, Outcome, complain_of};
use hearth_command::{complete, interrupt, output};
use hearth_experiments::report::{self, Findings};
use hearth_experiments::{
    ClaimResult, Experiment, Judgement, Kept, Runner, Verdict, judge, judge_with_variants,
};
use hearth_report::Source;
use serde::Serialize;
use std::path::PathBuf;
use std::sync::atomic::Ordering;

pub const EXAMPLES: &str = "\
Examples:
  hearth lab T --scale 0.1                       a quick look, a line for each claim
  hearth lab T --scale 0.1 -v                    every figure of each claim
  hearth lab T --seeds 5 --report report.html    the paper's size, with means and spread
  hearth lab T --scale 0.1 --variants            which verdicts hang on what the paper does not say
  hearth list experiments";

#[derive(Debug, Args)]
pub struct Arguments {
    /// Experiments: names (see `hearth list experiments`) or TOML files [default: all]
    #[arg(value_name = "EXPERIMENT", add = complete::names(names::experiment_ids))]
    experiments: Vec<String>,
    /// Run everything with the seeds 1 to N, or A to B (A-B); figures are then means, with their spread
    #[arg(long, value_name = "N", default_value = "1")]
    seeds: Seeds,
    /// Shorten the programs: above 0 and up to 1, the paper's size
    #[arg(short, long, value_name = "X", default_value = "1", value_parser = values::scale)]
    scale: f64,
    /// Runs at a time [default: the number of CPUs]
    #[arg(short, long, value_name = "N", value_parser = values::jobs)]
    jobs: Option<usize>,
    /// Keep each run that is done in this folder, and take those that are there: so a lab that was stopped
    /// goes on. Only the program that has done a run takes it
    #[arg(long, value_name = "FOLDER")]
    keep: Option<PathBuf>,
    /// Judge each claim also under other answers to what its paper leaves open (`[[variant]]` in the experiment):
    /// a verdict that one of them turns is fragile. Takes as many times as long
    #[arg(long)]
    variants: bool,
    /// Print every figure of each claim, and verdicts under variants
    #[arg(short, long)]
    verbose: bool,
    /// End with exit code 3 if a claim does not hold
    #[arg(long)]
    check: bool,
    /// Print the claims as JSON
    #[arg(long)]
    json: bool,
    /// Print each row of each claim as CSV
    #[arg(long, conflicts_with = "json")]
    csv: bool,
    /// Write a page with charts, to be opened in a browser
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Write the claims as Markdown
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
}

pub fn run(arguments: &Arguments) -> Outcome {
    let files = [&arguments.report, &arguments.markdown];
    files.into_iter().flatten().try_for_each(|path| output::check_writable(path))?;
    let experiments = names::experiments(&arguments.experiments)?;
    let seeds: Vec<u64> = arguments.seeds.all();
    let stop = interrupt::flag()?;
    let threads = arguments.jobs.unwrap_or_else(values::default_jobs);
    let bar = Bar::new(0);
    let kept = arguments.keep.as_deref().map(Kept::open).transpose().map_err(Failure::input)?;
    let runner = Runner { threads, kept: kept.as_ref(), progress: &bar, stop: Some(stop) };
    let judge = if arguments.variants { judge_with_variants } else { judge };
    let judged = |experiment| judge(experiment, arguments.scale, &seeds, &runner);
    let judgements: Vec<Judgement> =
        experiments.iter().map(judged).collect::<Result<_, _>>().map_err(Failure::input)?;
    bar.finish();
    if let (Some(kept), Some(folder)) = (&kept, &arguments.keep) {
        eprintln!("{} runs were in {}", kept.taken(), folder.display());
    }
    let stopped = stop.load(Ordering::Relaxed);
    let finding = |(experiment, judgement)| found(arguments, experiment, judgement, &seeds, stopped);
    let findings: Vec<Findings<'_>> = experiments.iter().zip(&judgements).map(finding).collect();
    show(arguments, &findings)?;
    end(arguments, &judgements, stopped)
}

fn found<'a>(
    arguments: &Arguments,
    experiment: &'a Experiment,
    judgement: &'a Judgement,
    seeds: &'a [u64],
    stopped: bool,
) -> Findings<'a> {
    let partial = stopped || !judgement.failures.is_empty();
    Findings { experiment, judgement, scale: arguments.scale, seeds, partial }
}

#[derive(Serialize)]
struct Json<'a> {
    scale: f64,
    seeds: &'a [u64],
    partial: bool,
    claims: Vec<&'a ClaimResult>,
}

fn csv(findings: &[Findings<'_>]) -> Result<String, Failure> {
    let rows: Vec<_> = findings.iter().flat_map(Findings::rows).collect();
    output::csv(&Findings::header(), &rows)
}

fn show(arguments: &Arguments, findings: &[Findings<'_>]) -> Outcome {
    if let Some(path) = &arguments.report {
        let source = Source { command: output::command_line(), csv: csv(findings)? };
        output::write_file(path, report::lab_page(findings, &source).as_bytes())?;
    }
    if let Some(path) = &arguments.markdown {
        let command = command(arguments);
        let parts = findings.iter().map(|findings| report::markdown(findings, &command));
        output::write_file(path, parts.collect::<Vec<_>>().join("\n").as_bytes())?;
    }
    if arguments.json {
        return output::print_json(&Json {
            scale: arguments.scale,
            seeds: findings.first().map(|findings| findings.seeds).unwrap_or_default(),
            partial: findings.iter().any(|findings| findings.partial),
            claims: findings.iter().flat_map(|findings| &findings.judgement.claims).collect(),
        });
    }
    if arguments.csv {
        return output::print(&csv(findings)?);
    }
    findings.iter().try_for_each(|findings| output::print(&table::text(findings, arguments.verbose)))?;
    output::announce([&arguments.report, &arguments.markdown]);
    Ok(())
}

/// The command that makes the same figures again.
fn command(arguments: &Arguments) -> String {
    let names: String = arguments.experiments.iter().map(|name| format!(" {name}")).collect();
    let variants = if arguments.variants { " --variants" } else { "" };
    format!("hearth lab{names} --scale {} --seeds {}{variants}", arguments.scale, arguments.seeds)
}

fn end(arguments: &Arguments, judgements: &[Judgement], stopped: bool) -> Outcome {
    let failures: Vec<_> = judgements.iter().flat_map(|judgement| &judgement.failures).collect();
    complain_of(&failures);
    let claims = || judgements.iter().flat_map(|judgement| &judgement.claims);
    match failures.len() {
        _ if stopped => Err(Failure::Interrupted),
        1.. => Err(Failure::Failed(anyhow!("{} runs failed", failures.len()))),
        0 if arguments.check && claims().any(|claim| claim.verdict == Verdict::DoesNotHold) => {
            Err(Failure::Refuted)
        }
        0 => Ok(()),
    }
}
