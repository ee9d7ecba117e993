//! `hearth trial`: the kernel's own scheduler and Hearth, in turns, on a command or a service of the
//! user's, and what the difference is.

mod measure;
mod order;
mod pages;
mod text;

use crate::linux::choice::Choice;
use crate::linux::{start, undo};
use crate::values;
use anyhow::anyhow;
use clap::Args;
use hearth_command::failure::{Failure, Outcome};
use hearth_command::{interrupt, output};
use hearth_linux::daemon::Session;
use hearth_migration::{NAME, Nodes, PagesStatus};
use hearth_report::pairs::{self, Difference, Verdict, least_pairs};
use measure::{Lack, Subject};
use order::Side;
use pages::{Moved, Pages, Round};
use serde::Serialize;
use std::ffi::OsString;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

pub const EXAMPLES: &str = "\
Examples:
  hearth trial -- make -C FOLDER -j8
  hearth trial --rounds 20 --policy heavy -- ./benchmark
  hearth trial --pages none -- ./benchmark     only the scheduler: pages stay on their memory nodes
  hearth trial --pages-only -- ./benchmark     only pages, under the kernel's own scheduler
  hearth trial --metric './requests-per-second' --higher-is-better --window 30s --only nginx.service

Each round measures once under each scheduler. Fewer than 6 rounds cannot show any difference.
Whatever comes out, the kernel's own scheduler has the machine afterwards, but with --keep.";

#[derive(Debug, Args)]
pub struct Arguments {
    #[command(flatten)]
    choice: Choice,
    /// How many rounds
    #[arg(short, long, default_value_t = 10, value_parser = rounds)]
    rounds: u32,
    /// Draw each round's order by this seed; ABBA if left out
    #[arg(long, value_parser = values::whole)]
    seed: Option<u64>,
    /// For a service that runs: a shell command that prints a number at the end of each window
    #[arg(long, value_name = "COMMAND", conflicts_with = "command")]
    metric: Option<String>,
    /// How long a window is
    #[arg(long, default_value = "10s", value_parser = values::time, conflicts_with = "command")]
    window: Duration,
    /// How long after each switch a window begins
    #[arg(long, default_value = "2s", value_parser = values::time, conflicts_with = "command")]
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

fn rounds(text: &str) -> Result<u32, String> {
    let wrong = || "give from 1 to 200 rounds; 6 are the least that can show a difference".to_owned();
    values::count(text).ok().filter(|rounds| *rounds <= 200).ok_or_else(wrong)
}

/// Everything that a trial found.
#[derive(Debug, Serialize)]
struct Trial {
    /// Nothing if the kernel's own scheduler stayed on.
    policy: Option<String>,
    unit: &'static str,
    higher_is_better: bool,
    rounds_asked: u32,
    rounds: Vec<Round>,
    /// Nothing if none were to follow their processes.
    pages: Option<Pages>,
    test: &'static str,
    comparison: Option<Comparison>,
    kept: bool,
}

/// One measurement under each scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
struct Pair {
    /// The kernel's own.
    kernel: f64,
    /// Hearth.
    hearth: f64,
}

/// The comparison of all pairs.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct Comparison {
    kernel_median: f64,
    hearth_median: f64,
    /// Hearth in terms of the kernel's own.
    #[serde(flatten)]
    difference: Difference,
}

impl Comparison {
    /// `None` without pairs.
    fn of(pairs: &[Pair], higher_is_better: bool) -> Option<Self> {
        let compared: Vec<pairs::Pair> =
            pairs.iter().map(|pair| pairs::Pair { base: pair.kernel, other: pair.hearth }).collect();
        Some(Self {
            kernel_median: pairs::median(pairs.iter().map(|pair| pair.kernel).collect())?,
            hearth_median: pairs::median(pairs.iter().map(|pair| pair.hearth).collect())?,
            difference: pairs::compare(&compared, higher_is_better)?,
        })
    }
}

pub fn run(arguments: &Arguments) -> Outcome {
    let choice = choice(arguments)?;
    let work = choice.work_with_pages_of_children()?;
    let subject = match &arguments.metric {
        Some(metric) => {
            Subject::Service { metric: metric.clone(), window: arguments.window, settle: arguments.settle }
        }
        None => Subject::Command(arguments.command.clone()),
    };
    start::require_kernel(&work)?;
    let stop = interrupt::flag()?;
    let mut trial = Trial {
        policy: work.policy.as_ref().map(|policy| policy.name.clone()),
        unit: subject.unit(),
        higher_is_better: arguments.higher_is_better,
        rounds_asked: arguments.rounds,
        rounds: Vec::new(),
        pages: None,
        test: pairs::TEST,
        comparison: None,
        kept: false,
    };
    if arguments.rounds < least_pairs() {
        anstream::eprintln!(
            "note: {} rounds cannot show a difference; {} is the least",
            arguments.rounds,
            least_pairs()
        );
    }
    let is_one_node = || Nodes::read(Path::new("/")).is_ok_and(|nodes| !nodes.differ());
    if choice.asks_for_pages() && !choice.is_pages_only() && is_one_node() {
        anstream::eprintln!("note: only one memory node has memory: there is nowhere to move pages to");
    }
    let mut session = Session::begin(work).map_err(start::failure)?;
    let end = all_rounds(arguments, &subject, &mut session, stop, &mut trial);
    off(&mut session)?;
    drop(session);

    let pairs: Vec<Pair> = trial.rounds.iter().map(|round| round.pair).collect();
    trial.comparison = Comparison::of(&pairs, trial.higher_is_better);
    if let Some(pages) = &mut trial.pages {
        pages.sum(&trial.rounds);
    }
    let is_better =
        trial.comparison.as_ref().is_some_and(|found| found.difference.verdict == Verdict::Better);
    if end.is_ok() && arguments.keep && is_better {
        start::leave_on(&choice)?;
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

/// What is to be compared with the kernel's own. Pages of a service would stay where one window has moved
/// them, and lie there in the others, so they stay.
fn choice(arguments: &Arguments) -> Result<Choice, Failure> {
    let choice = arguments.choice.clone();
    if arguments.metric.is_none() {
        return Ok(choice);
    }
    if choice.asks_for_pages() {
        let option = if choice.is_pages_only() { "--pages-only" } else { "--pages" };
        return Err(Failure::Input(anyhow!(
            "{option} cannot be compared by --metric: a service goes on from window to window, and pages that \
             moved under Hearth would lie there under the kernel's own scheduler too; name a command after -- \
             that starts the service, uses it, and ends it"
        )));
    }
    Ok(choice.without_pages())
}

fn all_rounds(
    arguments: &Arguments,
    subject: &Subject,
    session: &mut Session,
    stop: &AtomicBool,
    trial: &mut Trial,
) -> Result<(), Lack> {
    if matches!(subject, Subject::Command(_)) {
        // Both schedulers find files in memory: the first run is not counted. It also loads Hearth
        // once, so that what cannot be loaded is known before anything else.
        let (_, pages) = under_hearth(subject, session, stop)?;
        trial.pages = pages.as_ref().map(Pages::new);
    }
    for (round, sides) in order::rounds(arguments.rounds, arguments.seed).into_iter().enumerate() {
        let mut pair = Pair { kernel: 0.0, hearth: 0.0 };
        let mut pages = None;
        for side in sides {
            match side {
                Side::Kernel => {
                    off(session)?;
                    pair.kernel = one(subject, session, stop)?;
                }
                Side::Hearth => (pair.hearth, pages) = under_hearth(subject, session, stop)?,
            }
        }
        let pages = pages.as_ref().map(Moved::from);
        let moved = pages.as_ref().map(|pages| format!(", {} pages moved", pages.tally.moved_pages));
        trial.rounds.push(Round { pair, pages });
        anstream::eprintln!(
            "round {} of {}: kernel {:.4}{unit}, Hearth {:.4}{unit}{}",
            round + 1,
            arguments.rounds,
            pair.kernel,
            pair.hearth,
            moved.unwrap_or_default(),
            unit = text::spaced(subject.unit()),
        );
    }
    Ok(())
}

/// A measurement under Hearth. Where pages follow, it ends with it, so that each one begins alike and
/// counts its own pages.
fn under_hearth(
    subject: &Subject,
    session: &mut Session,
    stop: &AtomicBool,
) -> Result<(f64, Option<PagesStatus>), Lack> {
    session.on().map_err(start::failure)?;
    let value = one(subject, session, stop)?;
    Ok((value, if session.has_at_work(NAME) { off(session)? } else { None }))
}

/// The machine as it was before, or an error that says what is not.
fn off(session: &mut Session) -> Result<Option<PagesStatus>, Failure> {
    let off = session.off().map_err(start::failure)?;
    undo::outcome(&off.undone)?;
    Ok(off.services.get(NAME).and_then(PagesStatus::read))
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
