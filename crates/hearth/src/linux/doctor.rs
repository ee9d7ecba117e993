//! `hearth doctor`: what this kernel and machine can do, before anything is switched on.

use anyhow::anyhow;
use clap::Args;
use clap::builder::styling::{AnsiColor, Style};
use hearth_command::failure::{Failure, Outcome};
use hearth_command::output;
use hearth_doctor::{Command, Finding, Level, Report, Verdict, Works};
use hearth_host::privilege;
use std::collections::BTreeMap;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct Arguments {
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Look at another host's copy of /sys and /proc below this folder
    #[arg(long, value_name = "FOLDER", default_value = "/")]
    root: PathBuf,
}

pub fn run(arguments: &Arguments) -> Outcome {
    if !arguments.root.is_dir() {
        return Err(Failure::Input(anyhow!("{} is no folder", arguments.root.display())));
    }
    let report = hearth_doctor::look(&arguments.root);
    if arguments.json {
        output::print_json(&report)?;
    } else {
        output::print(&text(&report))?;
    }
    match report.verdict {
        Verdict::Ready => Ok(()),
        Verdict::Cannot => {
            Err(Failure::Code(4, anyhow!("Hearth cannot schedule this machine: {}", lacking(&report))))
        }
        Verdict::NoPrivilege => {
            let advice = privilege::advice();
            Err(Failure::Code(5, anyhow!("Hearth could schedule this machine, but you may not: {advice}")))
        }
    }
}

fn text(report: &Report) -> String {
    let width = report.findings.iter().map(|finding| finding.subject.len()).max().unwrap_or(0);
    let findings: String = report.findings.iter().map(|finding| line(finding, width)).collect();
    format!("{findings}\nWhat works here:\n{}", commands(&report.commands))
}

/// A line for all commands that work alike, for the same reason.
fn commands(commands: &[Command]) -> String {
    let mut alike: BTreeMap<(Works, Option<&str>), Vec<&str>> = BTreeMap::new();
    for command in commands {
        alike.entry((command.works, command.why.as_deref())).or_default().push(command.name);
    }
    let line = |((works, why), names): ((Works, Option<&str>), Vec<&str>)| {
        let (word, colour) = match works {
            Works::Yes => ("yes", AnsiColor::Green),
            Works::Partly => ("partly", AnsiColor::Yellow),
            Works::No => ("no", AnsiColor::Red),
        };
        let style: Style = colour.on_default();
        let why = why.map(|why| format!(" ({why})")).unwrap_or_default();
        format!("{style}{word:<7}{style:#}  {}{why}\n", names.join(", "))
    };
    alike.into_iter().map(line).collect()
}

fn line(finding: &Finding, width: usize) -> String {
    let (word, colour) = match finding.level {
        Level::Ok => ("ok", AnsiColor::Green),
        Level::Warning => ("warning", AnsiColor::Yellow),
        Level::Missing => ("missing", AnsiColor::Red),
    };
    let style: Style = colour.on_default();
    let mut text = format!("{style}{word:<7}{style:#}  {:<width$}  {}\n", finding.subject, finding.found);
    if let Some(advice) = &finding.advice {
        text += &format!("{:<7}  {:<width$}  → {advice}\n", "", "");
    }
    text
}

fn lacking(report: &Report) -> String {
    let missing = report.findings.iter().filter(|finding| finding.level == Level::Missing);
    missing.map(|finding| format!("{}: {}", finding.subject, finding.found)).collect::<Vec<_>>().join("; ")
}
