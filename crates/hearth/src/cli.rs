//! The command line: its commands, and what holds for all of them.

use crate::linux::{cpus, doctor, explain, pages, set, start, status, stop, trace, undo};
use crate::{exec, neighbours, observe, top, topology, trial};
use clap::{Parser, Subcommand};
use hearth_command::{STYLES, generate};
use std::ffi::OsString;

const AFTER_HELP: &str = "\
The laboratory's commands, of the program hearth-lab:
  compare      Runs programs on a simulated machine under several policies, side by side
  lab          Re-runs papers' experiments and judges what they claim
  record       Records the memory references of a program, to be replayed by `compare --trace`
  emulate      Runs a command of this host in a real kernel on an emulated machine
  list, show   What comes with Hearth: machines, policies, workloads, experiments
In Python (python/ in the sources):
  sweep        Runs a matrix of machines, policies, programs and seeds, here or on a cluster
Another NAME is looked for as a program hearth-NAME. `hearth help NAME` says what NAME takes.

Exit codes:
  0    done
  1    a run failed, or an output could not be written
  2    wrong input or usage
  4    this kernel or machine cannot do it: no sched_ext, no BTF, too many CPUs
  5    not enough privilege
  6    Hearth runs already, or another scheduler is loaded
  7    the kernel ended the scheduler; it says why
  8    Hearth does not run, and the command needs it
  130  interrupted (Ctrl-C); what was finished by then is printed and written, marked as partial

Standard output carries results only; progress and messages go to standard error. NO_COLOR turns
colours off. Files appear under their names only when they are complete.";

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
    /// Measures what affinity could give to programs on this host
    #[command(after_help = observe::EXAMPLES)]
    Observe(observe::Arguments),
    /// Says which programs slow which by sharing a cache with them
    #[command(after_help = neighbours::EXAMPLES)]
    Neighbours(neighbours::Arguments),
    /// Runs a parallel program with as many threads as it can get CPUs
    #[command(after_help = exec::EXAMPLES)]
    Exec(exec::Arguments),
    /// Shows this host's CPUs, caches and memory nodes
    Topology(topology::Arguments),
    /// Says what this kernel and machine can do, and what changes here under Hearth
    Doctor(doctor::Arguments),
    /// Gives this machine's CPUs to Hearth (sched_ext)
    #[command(after_help = start::EXAMPLES)]
    Start(start::Arguments),
    /// Compares Hearth with the kernel's own scheduler on a command or service, and goes back
    #[command(after_help = trial::EXAMPLES)]
    Trial(trial::Arguments),
    /// Gives them back to the kernel's own scheduler
    Stop(stop::Arguments),
    /// Shows what runs on each CPU, as it happens
    #[command(after_help = top::EXAMPLES)]
    Top(top::Arguments),
    /// Undoes what a Hearth that crashed has left changed on this machine
    Undo(undo::Arguments),
    /// Shows which scheduler runs, and what Hearth did since its start
    Status(status::Arguments),
    /// Says why a task is on its CPU: its last decisions with their ranks and credits
    #[command(after_help = explain::EXAMPLES)]
    Explain(explain::Arguments),
    /// Shows where a program's memory lies, and which pages followed it
    #[command(after_help = pages::EXAMPLES)]
    Pages(pages::Arguments),
    /// Gives programs CPUs of their own: processor sets
    #[command(after_help = set::EXAMPLES)]
    Set(set::Arguments),
    /// Says how many CPUs a program can get now, and why not more
    #[command(after_help = cpus::EXAMPLES)]
    Cpus(cpus::Arguments),
    /// Writes what Hearth decides for a while, to be opened in ui.perfetto.dev
    Trace(trace::Arguments),
    /// Writes a completion script for a shell to standard output
    Completions(generate::CompletionsArguments),
    /// Writes the manual pages into a folder
    Man(generate::ManArguments),
    #[command(external_subcommand)]
    Elsewhere(Vec<OsString>),
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
