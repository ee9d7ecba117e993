//! The command line: its commands, and what holds for all of them.

use crate::{compare, generate, lab, list, record, show, topology};
use clap::builder::styling::{AnsiColor, Styles};
use clap::{Parser, Subcommand};
use std::ops::RangeInclusive;

const AFTER_HELP: &str = "\
Exit codes:
  0    done
  1    a run failed, or an output could not be written
  2    wrong input or usage
  3    `lab --check` only: a claim does not hold
  130  interrupted (Ctrl-C); what was finished by then is printed and written, marked as partial

Standard output carries results only; progress and messages go to standard error. NO_COLOR turns
colours off. Files appear under their names only when they are complete.";

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default());

/// Runs work where its data is warm: a CPU scheduler, and a machine to try it on.
#[derive(Debug, Parser)]
#[command(name = "hearth", version, styles = STYLES, after_help = AFTER_HELP)]
#[command(propagate_version = true, disable_help_subcommand = true)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Runs programs on a simulated machine under several policies, side by side
    #[command(after_help = compare::EXAMPLES)]
    Compare(compare::Arguments),
    /// Re-runs papers' experiments and judges what they claim
    #[command(after_help = lab::EXAMPLES)]
    Lab(lab::Arguments),
    /// Records the memory references of a program, to be replayed by `compare --trace`
    #[command(after_help = record::EXAMPLES)]
    Record(record::Arguments),
    /// Shows this host's CPUs, caches and memory nodes
    Topology(topology::Arguments),
    /// Lists what comes with Hearth
    List(list::Arguments),
    /// Shows one machine, policy, workload or experiment
    Show(show::Arguments),
    /// Writes a completion script for a shell to standard output
    Completions(generate::CompletionsArguments),
    /// Writes the manual pages into a folder
    Man(generate::ManArguments),
}

/// Kinds of things that come with Hearth and have names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Kind {
    /// What programs run on
    #[value(alias = "machine")]
    Machines,
    /// What the scheduler does
    #[value(alias = "policy")]
    Policies,
    /// The programs
    #[value(alias = "workload")]
    Workloads,
    /// Whose claims `hearth lab` checks
    #[value(alias = "experiment")]
    Experiments,
}

/// The length of programs: above 0 and up to 1.
pub fn scale(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(scale) if scale > 0.0 && scale <= 1.0 => Ok(scale),
        _ => Err("give a number above 0 and up to 1, which is the paper's size".to_owned()),
    }
}

/// A count in a range that says how to mend a value outside of it.
pub fn count(text: &str, range: RangeInclusive<usize>) -> Result<usize, String> {
    match text.parse::<usize>() {
        Ok(count) if range.contains(&count) => Ok(count),
        _ => Err(format!("give a whole number from {} to {}", range.start(), range.end())),
    }
}

/// How many seeds: the seeds are 1 up to that.
pub fn seeds(text: &str) -> Result<u64, String> {
    Ok(count(text, 1..=1000)? as u64)
}

/// How many runs at a time.
pub fn jobs(text: &str) -> Result<usize, String> {
    count(text, 1..=1024)
}

/// As many runs at a time as this host has CPUs for this process.
pub fn default_jobs() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_scale_is_above_0_and_up_to_1() {
        assert_eq!(scale("0.1"), Ok(0.1));
        assert_eq!(scale("1"), Ok(1.0));
        for wrong in ["0", "-1", "1.01", "NaN", "inf", "half", ""] {
            assert!(scale(wrong).is_err(), "{wrong}");
        }
    }
}
