//! `hearth undo`: the host as it was before a Hearth that did not end as it should.

use super::start::failure;
use anyhow::anyhow;
use clap::Args;
use hearth_command::failure::{Failure, Outcome};
use hearth_command::output;
use hearth_host::Outcome as Undone;
use hearth_host::journal::Report;
use hearth_linux::daemon;

/// Changes beyond so many are counted, not listed.
const LISTED: usize = 20;

#[derive(Debug, Args)]
pub struct Arguments {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: &Arguments) -> Outcome {
    let report = daemon::undo().map_err(failure)?;
    if arguments.json {
        output::print_json(&report)?;
    } else if report.is_empty() {
        output::print("There is nothing to undo\n")?;
    } else {
        output::print(&text(&report))?;
    }
    outcome(&report)
}

/// A failure if something is still changed.
pub fn outcome(report: &Report) -> Outcome {
    match report.failed() {
        0 => Ok(()),
        count => Err(Failure::failed(anyhow!(
            "{count} changes are still in force and stay in the journal; run hearth undo as root"
        ))),
    }
}

/// Each change and what became of it.
pub fn text(report: &Report) -> String {
    let mut text = String::new();
    for undone in report.changes.iter().take(LISTED) {
        text += &format!("  {}: {}\n", undone.what, undone.outcome);
    }
    if report.changes.len() > LISTED {
        text += &format!("  and {} more\n", report.changes.len() - LISTED);
    }
    if report.changes.len() > 1 {
        text += &summary(report);
    } else {
        text += &damage(report);
    }
    if report.booted_since {
        text += "The machine was booted since, which undid everything\n";
    }
    text
}

/// How many changes came to which end.
pub fn summary(report: &Report) -> String {
    let (mut undone, mut gone, mut changed, mut failed) = (0, 0, 0, 0);
    for change in &report.changes {
        match &change.outcome {
            Undone::Undone(count) => undone += count,
            Undone::Already => {}
            Undone::Gone => gone += 1,
            Undone::Changed(_) => changed += 1,
            Undone::Failed(_) => failed += 1,
        }
    }
    let parts = [
        (undone, "undone"),
        (gone, "gone"),
        (changed, "changed by somebody else and left alone"),
        (failed, "not undone"),
    ];
    let said: Vec<String> =
        parts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect();
    let said = if said.is_empty() { "nothing was left to undo".to_owned() } else { said.join(", ") };
    format!("Changes of tasks: {said}\n{}", damage(report))
}

fn damage(report: &Report) -> String {
    report.damage.as_ref().map_or_else(String::new, |damage| {
        let lines: Vec<String> = damage.lines.iter().map(ToString::to_string).collect();
        format!(
            "The journal was damaged in line {}; what could be read was undone, and it is kept as {}\n",
            lines.join(", "),
            damage.kept.display()
        )
    })
}
