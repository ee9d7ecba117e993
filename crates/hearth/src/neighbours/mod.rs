//! `hearth neighbours`: which programs slow which by sharing a cache with them.

mod metrics;
mod page;
mod report;
mod text;

use crate::linux::no_process;
use crate::observe::{duration, percent, refusal};
use anyhow::anyhow;
use clap::{Args, ValueEnum};
use hearth_command::failure::{Failure, Outcome};
use hearth_command::{interrupt, output};
use hearth_host::cgroup;
use hearth_host::task::threads_of;
use hearth_observe::neighbours::{Options, neighbours};
use hearth_observe::{Each, ObserveError, Target, observe};
use hearth_report::Source;
use report::Report;
use serde_json::json;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub const EXAMPLES: &str = "\
Examples:
  hearth neighbours                  which programs slow which, for 10 seconds
  hearth neighbours 4242 --for 1m    what slows the program of this process
  hearth neighbours --by cgroup      which control groups slow which: services, containers
  hearth neighbours nginx.service    what slows this one, and those below it
  hearth neighbours --for 1m --report neighbours.html
  hearth neighbours --metrics neighbours.prom    for the textfile collector of Prometheus's node exporter";

#[derive(Debug, Args)]
pub struct Arguments {
    /// Show the program of this process only; or this control group (version 2), and those below it
    #[arg(value_name = "PID|CGROUP")]
    whose: Option<String>,
    /// Tell apart programs, or control groups; those if one is named
    #[arg(long, value_enum)]
    by: Option<Unit>,
    /// How long: 10s, 2m
    #[arg(long = "for", value_name = "TIME", default_value = "10s", value_parser = duration)]
    duration: Duration,
    /// What reading counters may take of each CPU's time, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = hearth_observe::COUNTERS_PERCENT, value_parser = percent)]
    counters_percent: f64,
    /// Show programs with little CPU time, too
    #[arg(short, long)]
    verbose: bool,
    /// Write a page with a table of who slows whom; it needs no other file and no network
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Write who slows whom for sure as metrics for Prometheus
    #[arg(long, value_name = "FILE")]
    metrics: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// For tests: what the kernel counts stands for what a CPU would
    #[arg(long, hide = true)]
    software_counters: bool,
}

/// What is told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Unit {
    Program,
    Cgroup,
}

/// What is shown.
enum Wanted {
    All,
    /// A program's name.
    Program(String),
    /// A control group's path.
    Cgroup(PathBuf),
}

pub fn run(arguments: &Arguments) -> Outcome {
    let files = [&arguments.report, &arguments.metrics];
    files.into_iter().flatten().try_for_each(|path| output::check_writable(path))?;
    let wanted = Wanted::of(arguments)?;
    let named_cgroup = matches!(wanted, Wanted::Cgroup(_));
    let options = Options {
        by_cgroup: named_cgroup || arguments.by == Some(Unit::Cgroup),
        duration: arguments.duration,
        counters_percent: arguments.counters_percent,
        software: arguments.software_counters,
    };
    let found = match neighbours(&options, interrupt::flag()?) {
        // Metrics have no place for what can be told then.
        Err(error @ ObserveError::NoCounters { .. }) if arguments.metrics.is_none() => {
            return waits(arguments, &options, &wanted, &error);
        }
        found => found.map_err(refusal)?,
    };
    let mut report = Report::new(&found);
    report.programs.retain(|program| wanted.has(&program.name));
    if let Some(path) = &arguments.report {
        let source = Source { command: output::command_line(), ..Source::default() };
        output::write_file(path, page::page(&report, arguments.verbose, &source).as_bytes())?;
    }
    if let Some(path) = &arguments.metrics {
        output::write_file(path, metrics::text(&report, arguments.verbose).as_bytes())?;
    }
    match arguments.json {
        true => output::print_json(&report)?,
        false => output::print(&text::text(&report, &wanted, arguments.verbose))?,
    }
    output::announce(files);
    if found.interrupted { Err(Failure::Interrupted) } else { Ok(()) }
}

/// What the kernel tells by itself, where nothing counts misses: who waits for a CPU, and behind whom.
fn waits(arguments: &Arguments, options: &Options, wanted: &Wanted, why: &ObserveError) -> Outcome {
    let options = hearth_observe::Options {
        target: Target::Host,
        duration: Some(options.duration),
        each: if options.by_cgroup { Each::Cgroup } else { Each::Program },
        counters_percent: options.counters_percent,
    };
    let observed = observe(&options, interrupt::flag()?).map_err(refusal)?;
    let mut report = hearth_observe::Report::new(&options, &observed);
    report.programs.retain(|program| wanted.has(&program.name));
    let verbose = arguments.verbose || !matches!(wanted, Wanted::All);
    if let Some(path) = &arguments.report {
        let source = Source { command: output::command_line(), ..Source::default() };
        output::write_file(path, crate::observe::page::page(&report, verbose, &source).as_bytes())?;
    }
    match arguments.json {
        true => output::print_json(&json!({ "not_measurable": why.to_string(), "waits": report }))?,
        false => output::print(&format!(
            "Who slows whom is {why}.\n\nWho makes whom wait for a CPU: {}",
            crate::observe::text::waiting(&report, verbose)
        ))?,
    }
    output::announce([&arguments.report]);
    if observed.interrupted { Err(Failure::Interrupted) } else { Ok(()) }
}

impl Wanted {
    fn of(arguments: &Arguments) -> Result<Self, Failure> {
        let Some(whose) = &arguments.whose else { return Ok(Self::All) };
        match (whose.parse::<i32>(), arguments.by) {
            (Ok(pid), Some(Unit::Cgroup)) => Ok(Self::Cgroup(cgroup_of(pid)?)),
            (Ok(pid), _) => Ok(Self::Program(program_of(pid)?)),
            (Err(_), Some(Unit::Program)) => Err(Failure::input(anyhow!(
                "programs are named by a process: hearth neighbours PID; a control group is shown with --by cgroup"
            ))),
            (Err(_), _) => {
                let folder = cgroup::find(whose).map_err(Failure::input)?;
                let number = folder.metadata().map_err(|_| gone(whose))?.ino();
                cgroup::numbered().remove(&number).map(Self::Cgroup).ok_or_else(|| gone(whose))
            }
        }
    }

    fn has(&self, name: &str) -> bool {
        match self {
            Self::All => true,
            Self::Program(program) => program == name,
            Self::Cgroup(path) => Path::new(name).starts_with(path),
        }
    }

    fn describe(&self) -> String {
        match self {
            Self::All => "any program".to_owned(),
            Self::Program(program) => program.clone(),
            Self::Cgroup(path) => path.display().to_string(),
        }
    }
}

fn gone(cgroup: &str) -> Failure {
    Failure::input(anyhow!("{cgroup} is no control group of version 2; `systemd-cgls` shows which there are"))
}

/// The name of a process's program, as the kernel has it.
fn program_of(pid: i32) -> Result<String, Failure> {
    let name = fs::read_to_string(format!("/proc/{pid}/comm"));
    let is_process = threads_of(pid).next().is_some();
    match name.ok().filter(|_| is_process) {
        Some(name) => Ok(name.trim_end_matches('\n').to_owned()),
        None => Err(no_process(pid)),
    }
}

/// The control group of a process.
fn cgroup_of(pid: i32) -> Result<PathBuf, Failure> {
    let groups = fs::read_to_string(format!("/proc/{pid}/cgroup")).map_err(|_| no_process(pid))?;
    let path = groups.lines().find_map(|line| line.strip_prefix("0::"));
    path.map(PathBuf::from).ok_or_else(|| gone(&format!("the group of process {pid}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_has_those_below_it() {
        let wanted = Wanted::Cgroup("/system.slice".into());
        assert!(wanted.has("/system.slice") && wanted.has("/system.slice/nginx.service"));
        assert!(!wanted.has("/system.slice-2") && !wanted.has("system.slice") && !wanted.has("(kernel)"));
    }
}
