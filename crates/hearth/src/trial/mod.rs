//! `hearth trial`: the kernel's own scheduler and Hearth, in turns, on a command or a service of the
//! user's, and what the difference is.

mod measure;
mod order;
mod statistics;
mod text;

use crate::failure::{Failure, Outcome};
use crate::linux::start;
use crate::{interrupt, names, output};
use anyhow::anyhow;
use clap::Args;
use hearth_linux::cgroup;
use hearth_linux::daemon::Session;
use measure::{Lack, Subject};
use order::Side;
use serde::Serialize;
use statistics::{Comparison, Pair, Verdict};
use std::ffi::OsString;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

pub const EXAMPLES: &str = "\
Examples:
  hearth trial -- make -C FOLDER -j8
  hearth trial --rounds 20 --policy heavy -- ./benchmark
  hearth trial --metric './requests-per-second' --higher-is-better --window 30s --only nginx.service

Each round measures once under each scheduler. Fewer than 6 rounds cannot show any difference.
Whatever comes out, the kernel's own scheduler has the machine afterwards, but with --keep.";

#[derive(Debug, Args)]
pub struct Arguments {
    /// The policy: a name or a TOML file
    #[arg(short, long, default_value = "fair")]
    policy: String,
    /// Schedule the tasks of this cgroup only: a folder, a path in the hierarchy, or a unit's name
    #[arg(long, value_name = "CGROUP")]
    only: Option<String>,
    /// How many rounds
    #[arg(short, long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=200))]
    rounds: u32,
    /// Draw each round's order by this seed; ABBA if left out
    #[arg(long)]
    seed: Option<u64>,
    /// For a service that runs: a shell command that prints a number at the end of each window
    #[arg(long, value_name = "COMMAND", conflicts_with = "command")]
    metric: Option<String>,
    /// How long a window is
    #[arg(long, default_value = "10s", value_parser = humantime::parse_duration, conflicts_with = "command")]
    window: Duration,
    /// How long after each switch a window begins
    #[arg(long, default_value = "2s", value_parser = humantime::parse_duration, conflicts_with = "command")]
    settle: Duration,
    /// Greater numbers of the metric are better; else smaller ones are
    #[arg(long, conflicts_with = "command")]
    higher_is_better: bool,
    /// Leave Hearth on afterwards if it is better
    #[arg(long)]
    keep: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// The command whose time is measured; its output goes nowhere
    #[arg(last = true, value_name = "COMMAND", required_unless_present = "metric")]
    command: Vec<OsString>,
}

/// Everything that a trial found.
#[derive(Debug, Serialize)]
struct Trial {
    policy: String,
    unit: &'static str,
    higher_is_better: bool,
    rounds_asked: u32,
    rounds: Vec<Pair>,
    test: &'static str,
    comparison: Option<Comparison>,
    kept: bool,
}

pub fn run(arguments: &Arguments) -> Outcome {
    let policy = names::policy(&arguments.policy)?;
    let only = arguments.only.as_deref().map(cgroup::find).transpose().map_err(start::failure)?;
    let subject = match &arguments.metric {
        Some(metric) => {
            Subject::Service { metric: metric.clone(), window: arguments.window, settle: arguments.settle }
        }
        None => Subject::Command(arguments.command.clone()),
    };
    let stop = interrupt::flag()?;
    let mut trial = Trial {
        policy: policy.name.clone(),
        unit: subject.unit(),
        higher_is_better: arguments.higher_is_better,
        rounds_asked: arguments.rounds,
        rounds: Vec::new(),
        test: statistics::TEST,
        comparison: None,
        kept: false,
    };
    if arguments.rounds < statistics::least_pairs() {
        anstream::eprintln!(
            "note: {} rounds cannot show a difference; {} is the least",
            arguments.rounds,
            statistics::least_pairs()
        );
    }
    let mut session = Session::begin(policy, only).map_err(start::failure)?;
    let end = all_rounds(arguments, &subject, &mut session, stop, &mut trial.rounds);
    session.off().map_err(start::failure)?;
    drop(session);

    trial.comparison = statistics::compare(&trial.rounds, trial.higher_is_better);
    let is_better = trial.comparison.as_ref().is_some_and(|found| found.verdict == Verdict::Better);
    if end.is_ok() && arguments.keep && is_better {
        start::leave_on(&arguments.policy, arguments.only.as_deref())?;
        trial.kept = true;
    }
    // What was finished before a failure or Ctrl-C is still worth reading.
    if end.is_ok() || !trial.rounds.is_empty() {
        if arguments.json {
            output::print_json(&trial)?;
        } else {
            output::print(&text::text(&trial))?;
        }
    }
    end.map_err(|lack| match lack {
        Lack::Interrupted => Failure::Interrupted,
        Lack::Failed(failure) => failure,
    })
}

fn all_rounds(
    arguments: &Arguments,
    subject: &Subject,
    session: &mut Session,
    stop: &AtomicBool,
    pairs: &mut Vec<Pair>,
) -> Result<(), Lack> {
    if matches!(subject, Subject::Command(_)) {
        // Both schedulers find files in memory: the first run is not counted. It also loads Hearth
        // once, so that what cannot be loaded is known before anything else.
        session.on().map_err(start::failure)?;
        one(subject, session, stop)?;
    }
    for (round, sides) in order::rounds(arguments.rounds, arguments.seed).into_iter().enumerate() {
        let mut pair = Pair { kernel: 0.0, hearth: 0.0 };
        for side in sides {
            match side {
                Side::Kernel => {
                    session.off().map_err(start::failure)?;
                    pair.kernel = one(subject, session, stop)?;
                }
                Side::Hearth => {
                    session.on().map_err(start::failure)?;
                    pair.hearth = one(subject, session, stop)?;
                }
            }
        }
        pairs.push(pair);
        anstream::eprintln!(
            "round {} of {}: kernel {:.4}{unit}, Hearth {:.4}{unit}",
            round + 1,
            arguments.rounds,
            pair.kernel,
            pair.hearth,
            unit = text::spaced(subject.unit()),
        );
    }
    Ok(())
}

fn one(subject: &Subject, session: &Session, stop: &AtomicBool) -> Result<f64, Lack> {
    let look = || match session.ending() {
        Some(ending) => Err(Failure::Code(7, anyhow!("the kernel ended the scheduler: {ending}"))),
        None => Ok(()),
    };
    let value = subject.measure(stop, look)?;
    look()?;
    Ok(value)
}
