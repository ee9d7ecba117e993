//! `hearth observe`: what affinity could give to programs under the kernel's own scheduler.

mod charts;
mod format;
pub mod page;
pub mod text;

use crate::values;
use clap::Args;
use hearth_command::failure::{Failure, Outcome};
use hearth_command::{interrupt, output};
use hearth_observe::{Each, ObserveError, Options, Report, Target};
use hearth_report::Source;
use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

pub const EXAMPLES: &str = "\
Examples:
  hearth observe -- make -C FOLDER -j4
  hearth observe --for 10s
  hearth observe --pid 1234 --for 30s --report report.html
  hearth observe --cgroup system.slice/nginx.service --for 1m --json

Exit codes: a command's own, 127 if it was not found, 126 if it could not be started; else those of
`hearth --help`.";

#[derive(Debug, Args)]
pub struct Arguments {
    /// Observe this process with its threads, and what it started or starts
    #[arg(long, value_parser = values::process, conflicts_with_all = ["cgroup", "command"])]
    pid: Option<u32>,
    /// Observe this control group (version 2) and those below it
    #[arg(long, value_name = "PATH", conflicts_with = "command")]
    cgroup: Option<PathBuf>,
    /// How long: 10s, 2m; until the process ends or Ctrl-C if left out
    #[arg(long = "for", value_name = "TIME", value_parser = duration, conflicts_with = "command")]
    duration: Option<Duration>,
    /// Show each task by itself, in place of programs
    #[arg(long)]
    tasks: bool,
    /// What reading counters may take of each CPU's time, in percent: more for short runs
    #[arg(long, value_name = "PERCENT", default_value_t = hearth_observe::COUNTERS_PERCENT, value_parser = percent)]
    counters_percent: f64,
    /// Show programs with little CPU time, too
    #[arg(short, long)]
    verbose: bool,
    /// Write a page with charts; it needs no other file and no network
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Print JSON; after a command's own output, on one line
    #[arg(long)]
    json: bool,
    /// Start this command, and observe it with all that it starts
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// A time with its unit.
pub fn duration(text: &str) -> Result<Duration, String> {
    match humantime::parse_duration(text) {
        Ok(duration) if duration >= Duration::from_millis(100) => Ok(duration),
        Ok(_) => Err("give at least 100ms".to_owned()),
        Err(_) => Err("give a number with its unit, such as 10s or 2m".to_owned()),
    }
}

/// A share of CPU time that counting may take.
pub fn percent(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(percent) if percent > 0.0 && percent <= 10.0 => Ok(percent),
        _ => Err("give a number above 0 and up to 10".to_owned()),
    }
}

impl Arguments {
    fn target(&self) -> Target {
        match (&self.pid, &self.cgroup) {
            (Some(pid), _) => Target::Process(*pid),
            (_, Some(path)) => Target::Cgroup(path.clone()),
            _ if !self.command.is_empty() => Target::Command(self.command.clone()),
            _ => Target::Host,
        }
    }
}

pub fn run(arguments: &Arguments) -> Outcome {
    if let Some(path) = &arguments.report {
        output::check_writable(path)?;
    }
    let stop = interrupt::flag()?;
    let options = Options {
        target: arguments.target(),
        duration: arguments.duration,
        each: if arguments.tasks { Each::Task } else { Each::Program },
        counters_percent: arguments.counters_percent,
    };
    let observed = hearth_observe::observe(&options, stop).map_err(refusal)?;
    let report = Report::new(&options, &observed);
    if let Some(path) = &arguments.report {
        let source = Source { command: output::command_line(), ..Source::default() };
        output::write_file(path, page::page(&report, arguments.verbose, &source).as_bytes())?;
    }
    print(arguments, &report)?;
    output::announce([&arguments.report]);
    if observed.interrupted {
        return Err(Failure::Interrupted);
    }
    observed.exit.map_or(Ok(()), passed_on)
}

fn print(arguments: &Arguments, report: &Report) -> Outcome {
    match (arguments.json, arguments.command.is_empty()) {
        (false, _) => output::print(&text::report(report, arguments.verbose)),
        (true, true) => output::print_json(report),
        (true, false) => output::print_json_line(report),
    }
}

/// Why nothing was observed, with its exit code.
pub fn refusal(error: ObserveError) -> Failure {
    match error {
        ObserveError::NotFound { .. } => Failure::Code(127, error.into()),
        ObserveError::NotStarted { .. } => Failure::Code(126, error.into()),
        ObserveError::NoProcess { .. } | ObserveError::Thread { .. } | ObserveError::NoCgroup { .. } => {
            Failure::input(error)
        }
        ObserveError::NoPrivilege => Failure::Code(5, error.into()),
        ObserveError::NoBtf { .. } | ObserveError::Refused { .. } | ObserveError::NoCounters { .. } => {
            Failure::Code(4, error.into())
        }
        error => Failure::failed(error),
    }
}

/// The command's exit code, as a shell gives it.
fn passed_on(status: ExitStatus) -> Outcome {
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default());
    if code == 0 { Ok(()) } else { Err(Failure::Command(u8::try_from(code).unwrap_or(1))) }
}
