//! `hearth pages`: where a program's memory lies, and which pages followed it.

use super::require_process;
use super::start::failure;
use crate::values;
use clap::Args;
use hearth_command::failure::Outcome;
use hearth_command::output;
use hearth_command::table::{number, table};
use hearth_linux::daemon::{self, Status};
use hearth_migration::{Backend, Moment, NAME, NodeId, PagesStatus, ProcessPages, Tally};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};

pub const EXAMPLES: &str = "\
Examples:
  hearth pages              what was moved on this machine
  hearth pages 4242         one program: memory by node, moves, and how local it was over time
  hearth pages 4242 --json  the same for scripts";

/// Points of the history that are printed.
const MOMENTS: usize = 12;

#[derive(Debug, Args)]
pub struct Arguments {
    /// The process; all of this machine if none is named
    #[arg(value_parser = values::pid)]
    pid: Option<i32>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: &Arguments) -> Outcome {
    let folder = daemon::run_folder();
    let status = daemon::ask_status(&folder).map_err(failure)?;
    let hint = hint(status.as_ref());
    let pages = status.as_ref().and_then(of);
    let Some(pid) = arguments.pid else {
        return match (arguments.json, &pages) {
            (true, _) => output::print_json(&json!({ "hearth": pages, "hint": hint })),
            (false, Some(pages)) => output::print(&summary(pages)),
            (false, None) => output::print(&hint.unwrap_or_default()),
        };
    };
    require_process(pid)?;
    let may_ask = rustix::process::geteuid().is_root();
    let followed = match pages {
        Some(_) if may_ask => daemon::ask_service(&folder, NAME, pid).map_err(failure)?,
        _ => None,
    };
    let is_followed = followed.is_some();
    let hint = hint.or_else(|| (!is_followed).then(|| unknown(may_ask).to_owned()));
    // What the kernel says now is newer than what the daemon saw last.
    let mut process = hearth_migration::look(pid).map_err(failure)?;
    if let Some(followed) = followed {
        process = ProcessPages { movable: process.movable, stays: process.stays, ..followed };
    }
    if arguments.json {
        let local_share = process.local_share();
        return output::print_json(&json!({
            "process": process, "local_share": local_share, "followed": is_followed, "hint": hint,
        }));
    }
    output::print(&text(&process, is_followed, hint.as_deref()))
}

/// What a daemon tells of pages that follow their processes, if they do.
pub fn of(status: &Status) -> Option<PagesStatus> {
    status.service(NAME)
}

/// What is to be known where no pages follow.
fn hint(status: Option<&Status>) -> Option<String> {
    match status {
        None => Some("Hearth does not run, so no page follows: this is what the kernel tells\n".into()),
        Some(status) if of(status).is_none() => Some(
            "This Hearth moves no pages: it was started with --pages none, or only one node has memory\n"
                .into(),
        ),
        Some(_) => None,
    }
}

/// Why nothing is known of a process.
fn unknown(may_ask: bool) -> &'static str {
    if may_ask {
        "Hearth does not follow it: it has not run since Hearth was started, or is smaller than 4 MiB\n"
    } else {
        "This is what the kernel tells; what Hearth knows of it is for root: sudo hearth pages …\n"
    }
}

/// All of the machine, in some lines.
pub fn summary(pages: &PagesStatus) -> String {
    let mut text = format!("Pages follow their processes (page policy {}", pages.policy);
    if pages.backend != Backend::None {
        text += &format!(", sampled by {}", pages.backend.text());
    }
    text += &format!(
        "): {} processes known, {} sampled now\n{}  frozen {}; stayed: frozen {}, not worth it {}, quota {}\n",
        pages.processes,
        pages.sampled,
        moved(&pages.tally),
        count(pages.frozen_pages, "page"),
        pages.stayed_frozen,
        pages.stayed_cost,
        pages.stayed_quota,
    );
    text += &format!("  moving took {:.2} s, all of it {:.2} s of CPU time", pages.moving_s, pages.cpu_s);
    text += &pages.local_share.map_or("\n".into(), |share| format!("; {} is local\n", percent(share)));
    pages.notes.iter().for_each(|note| text += &format!("  {note}\n"));
    text
}

fn text(process: &ProcessPages, is_followed: bool, hint: Option<&str>) -> String {
    let mut text = format!("{} ({})", process.name, process.pid);
    if !process.runs_on.is_empty() {
        let on: Vec<String> =
            process.runs_on.iter().map(|(node, part)| format!("node {node} {}", percent(*part))).collect();
        text += &format!(" ran on {}", on.join(", "));
    }
    text += &process.local_share().map_or("\n\n".into(), |share| format!(", {} local\n\n", percent(share)));
    text += &by_node(process);
    if let Some(why) = &process.left_alone {
        text += &format!("left alone: {why}\n");
    }
    if is_followed {
        text += &moved(&process.tally);
        text += &format!("  frozen {}", count(process.frozen_pages, "page"));
        text += if process.sampled { "; sampled now\n" } else { "\n" };
        text += &history(&process.history);
    }
    text + hint.unwrap_or_default()
}

fn by_node(process: &ProcessPages) -> String {
    let rows: Vec<(&str, &BTreeMap<NodeId, u64>)> = [("may be moved", &process.movable)]
        .into_iter()
        .chain(process.stays.iter().map(|(why, bytes)| (why.text(), bytes)))
        .collect();
    let nodes: BTreeSet<NodeId> = rows.iter().flat_map(|(_, bytes)| bytes.keys().copied()).collect();
    let header: Vec<String> = nodes.iter().map(|node| format!("node {node}")).collect();
    let mut out =
        table(&[&["memory"], header.iter().map(String::as_str).collect::<Vec<_>>().as_slice()].concat(), 1);
    for (what, bytes) in rows {
        let sizes = nodes.iter().map(|node| number(size(bytes.get(node).copied().unwrap_or(0))));
        out.add_row(std::iter::once(comfy_table::Cell::new(what)).chain(sizes).collect::<Vec<_>>());
    }
    format!("{out}\n")
}

pub fn moved(tally: &Tally) -> String {
    let mut text = format!("  moved {} ({})\n", count(tally.moved_pages, "page"), size(tally.moved_bytes));
    for (reason, pages) in &tally.failed_pages {
        text += &format!("  not moved {}: {}\n", count(*pages, "page"), reason.text());
    }
    text
}

/// The last points, the newest last.
fn history(moments: &[Moment]) -> String {
    let last = &moments[moments.len().saturating_sub(MOMENTS)..];
    let Some(newest) = last.last() else { return String::new() };
    let points = last
        .iter()
        .map(|moment| format!("{:.0} s ago {}", newest.at_s - moment.at_s, percent(moment.local_share)));
    format!("  local, before the last look: {}\n", points.collect::<Vec<_>>().join(", "))
}

pub fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

pub fn count(number: u64, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

pub fn size(bytes: u64) -> String {
    match bytes {
        0 => "-".into(),
        1..1_048_576 => format!("{} KiB", bytes.div_ceil(1024)),
        _ => format!("{:.1} MiB", bytes as f64 / 1_048_576.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hearth_migration::{Reason, Stays};

    #[test]
    fn a_process_is_shown_with_its_memory_moves_and_history() {
        let mut process = ProcessPages { pid: 7, name: "db".into(), ..ProcessPages::default() };
        process.movable = BTreeMap::from([(NodeId(0), 3 << 20), (NodeId(1), 1 << 20)]);
        process.stays.entry(Stays::Policy).or_default().insert(NodeId(1), 8192);
        process.runs_on.insert(NodeId(0), 1.0);
        process.tally.moved_pages = 1;
        process.tally.moved_bytes = 4096;
        process.tally.failed_pages.insert(Reason::Busy, 2);
        process.history =
            vec![Moment { at_s: 1.0, local_share: 0.0 }, Moment { at_s: 3.0, local_share: 0.75 }];
        let text = text(&process, true, None);
        for part in [
            "db (7) ran on node 0 100 %, 75 % local",
            "moved 1 page (4 KiB)",
            "not moved 2 pages: in use by the kernel (EBUSY)",
            "2 s ago 0 %, 0 s ago 75 %",
            "3.0 MiB",
            "the program asked for a place",
        ] {
            assert!(text.contains(part), "{part} in\n{text}");
        }
    }

    #[test]
    fn without_a_daemon_the_kernels_word_is_shown_and_said_to_be_that() {
        let mut process = ProcessPages { pid: 7, ..ProcessPages::default() };
        process.movable.insert(NodeId(0), 5000);
        let text = text(&process, false, hint(None).as_deref());
        assert!(text.contains("5 KiB") && text.contains("Hearth does not run"), "{text}");
        assert!(!text.contains("moved 0"), "{text}");
    }
}
