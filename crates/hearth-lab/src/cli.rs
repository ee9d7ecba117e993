//! The command line of the laboratory.

use crate::{compare, emulate, lab, list, record, show};
use clap::{Parser, Subcommand};
use hearth_command::{STYLES, generate};

const AFTER_HELP: &str = "\
`hearth NAME` runs these commands, too.

Exit codes:
  0    done
  1    a run failed, or an output could not be written
  2    wrong input or usage
  3    `lab --check` only: a claim does not hold
  130  interrupted (Ctrl-C); what was finished by then is printed and written, marked as partial

Standard output carries results only; progress and messages go to standard error. NO_COLOR turns
colours off. Files appear under their names only when they are complete.";

/// A machine to try schedulers on: simulated, or a real kernel over simulated caches.
#[derive(Debug, Parser)]
#[command(name = "hearth-lab", version, styles = STYLES, after_help = AFTER_HELP)]
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
    /// Runs a command of this host in a real kernel on an emulated machine, under several schedulers
    #[command(after_help = emulate::EXAMPLES)]
    Emulate(emulate::Arguments),
    /// Lists what comes with Hearth
    List(list::Arguments),
    /// Shows one machine, policy, workload or experiment
    Show(show::Arguments),
    /// Writes a completion script for a shell to standard output
    Completions(generate::CompletionsArguments),
    /// Writes the manual pages into a folder
    Man(generate::ManArguments),
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
