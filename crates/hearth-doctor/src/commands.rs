//! Which commands work on this host, and why others do not: what follows from the findings.

use super::counters::NO_RELOADS;
use super::{Finding, Level, Root, host};
use hearth_migration::{Backend, Nodes, available};
use serde::Serialize;

/// How far a command works.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Works {
    /// All of it.
    Yes,
    /// With less than elsewhere.
    Partly,
    /// Not at all.
    No,
}

/// What a command can do here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Command {
    /// As it is typed, without `hearth`.
    pub name: &'static str,
    /// Whether it works.
    pub works: Works,
    /// If not all of it does, why.
    pub why: Option<String>,
}

/// What the kernel needs for any scheduler of sched_ext, and what for programs that only look.
const FOR_A_SCHEDULER: [&str; 5] = ["kernel", "sched_ext", "type information", "lockdown", "topology"];
const FOR_LOOKING: [&str; 3] = ["type information", "lockdown", "topology"];

pub(super) fn commands(root: &Root, findings: &[Finding]) -> Vec<Command> {
    let missing = |subjects: &[&str]| {
        let is_meant =
            |finding: &&Finding| finding.level == Level::Missing && subjects.contains(&finding.subject);
        let found = findings.iter().find(is_meant)?;
        Some(format!("{}: {}", found.subject, found.found))
    };
    let no_right = missing(&["privilege"]);
    let no_scheduler = missing(&FOR_A_SCHEDULER).or(no_right.clone());
    let no_look = missing(&FOR_LOOKING).or(no_right.clone());
    let no_misses = findings.iter().any(|finding| finding.advice.as_deref() == Some(NO_RELOADS));
    let uncounted =
        |shown: &str| no_misses.then(|| format!("cache misses cannot be counted; it shows {shown}"));
    let no_classes = no_misses.then(|| "cache misses cannot be counted".to_owned());
    let no_sets = (host::has_cpusets(root) == Some(false))
        .then(|| "no cpusets of control groups of version 2 are here".to_owned());
    let all = |names: &[&'static str], no: Option<String>, partly: Option<String>| -> Vec<Command> {
        let works = match (&no, &partly) {
            (Some(_), _) => Works::No,
            (None, Some(_)) => Works::Partly,
            (None, None) => Works::Yes,
        };
        let why = no.or(partly);
        names.iter().map(|name| Command { name, works, why: why.clone() }).collect()
    };
    [
        all(&["topology", "top", "status", "exec", "cpus"], None, None),
        all(&["start", "trial", "explain", "trace"], no_scheduler.clone(), None),
        all(&["start --no-scheduler"], no_sets.or(no_right.clone()), None),
        all(&["start --pages-only"], no_pages(root).or(no_right), None),
        all(&["start --cache-fair"], no_scheduler.or(no_classes), None),
        all(&["observe"], no_look.clone(), uncounted("intervals, moves and waits")),
        all(&["neighbours"], no_look, uncounted("who waits for a CPU, and behind whom")),
    ]
    .concat()
}

/// Why no pages can be moved.
fn no_pages(root: &Root) -> Option<String> {
    match Nodes::read(&root.0) {
        Ok(nodes) if !nodes.differ() => Some("only one node has memory".to_owned()),
        Ok(_) if available(&root.0).backend == Backend::None => {
            Some("nothing shows which pages are used".to_owned())
        }
        Ok(_) => None,
        Err(_) => Some("its memory nodes cannot be read".to_owned()),
    }
}
