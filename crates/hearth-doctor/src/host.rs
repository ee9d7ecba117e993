//! The machine: its shape, control groups, real-time tasks, other daemons.

use super::{Finding, Root};
use hearth_abi::MAX_CPUS;
use hearth_host::moves::{self, Moves};
use hearth_host::{hogs, journal};
use hearth_linux::daemon;
use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;

/// How long real-time tasks are watched.
const WATCH: Duration = Duration::from_millis(200);

pub(super) fn findings(root: &Root) -> Vec<Finding> {
    let mut findings = vec![shape(root), control_groups(root), throttling(root)];
    if root.is_here() {
        findings.extend(moves(root));
        findings.push(real_time());
        findings.extend(left_over());
    }
    findings
}

fn shape(root: &Root) -> Finding {
    const SUBJECT: &str = "topology";
    match hearth_machine::host::read(&root.0) {
        Err(error) => Finding::missing(SUBJECT, "unknown", error.to_string()),
        Ok(host) => {
            let greatest = host.cpus.iter().map(|cpu| cpu.id).chain(host.offline.iter().copied()).max();
            let domains = host.domains().len();
            let found = format!(
                "{}, {}, {}",
                count(host.cpus.len(), "CPU"),
                count(domains, "cache domain"),
                count(host.nodes.len().max(1), "memory node")
            );
            if greatest.unwrap_or(0) >= MAX_CPUS {
                let advice = format!("the scheduler serves CPUs below number {MAX_CPUS}");
                Finding::missing(SUBJECT, found, advice)
            } else if host.cpus.len() == 1 {
                Finding::warning(
                    SUBJECT,
                    found,
                    "with one CPU nothing can move: credits change only the order",
                )
            } else {
                Finding::ok(SUBJECT, found)
            }
        }
    }
}

/// What a task pays that moves, if there is where to; `start` measures the same.
fn moves(root: &Root) -> Option<Finding> {
    let host = hearth_machine::host::read(&root.0).ok()?;
    let Moves { costs, is_measured } = moves::measure(&host);
    let there_are = costs.of(host.domains().len(), host.nodes.len()).into_iter().zip(is_measured);
    let said = there_are.filter_map(|(there, is_measured)| {
        let (place, ns) = there?;
        let how = if is_measured { "" } else { " by sizes" };
        Some(format!("{place} {:.2} ms{how}", ns as f64 / 1e6))
    });
    let said: Vec<_> = said.collect();
    (!said.is_empty()).then(|| Finding::ok("cost of a move", format!("to {}", said.join(", "))))
}

fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// Where the first file system of a kind is mounted.
fn mounted(mounts: &str, kind: &str) -> Option<String> {
    let mut lines = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    let words = lines.find(|words| words.get(2) == Some(&kind))?;
    Some(words.get(1).copied().unwrap_or_default().to_owned())
}

/// Whether control groups of version 2 have cpusets; `None` if that cannot be read.
pub(super) fn has_cpusets(root: &Root) -> Option<bool> {
    let Some(at) = mounted(&root.text("/proc/mounts")?, "cgroup2") else { return Some(false) };
    let controllers = root.text(&format!("{at}/cgroup.controllers"))?;
    Some(controllers.split_whitespace().any(|controller| controller == "cpuset"))
}

fn control_groups(root: &Root) -> Finding {
    const SUBJECT: &str = "control groups";
    let Some(mounts) = root.text("/proc/mounts") else {
        return Finding::warning(SUBJECT, "unknown", root.lacks("/proc/mounts", "mount /proc"));
    };
    match (mounted(&mounts, "cgroup2"), mounted(&mounts, "cgroup")) {
        (Some(at), _) => Finding::ok(SUBJECT, format!("version 2 at {at}")),
        (None, Some(at)) => Finding::warning(
            SUBJECT,
            format!("version 1 at {at}"),
            "--only works with systemd's own and the cpu hierarchy",
        ),
        (None, None) => Finding::warning(
            SUBJECT,
            "none is mounted",
            "--only does not work; mount -t cgroup2 none EMPTY-FOLDER",
        ),
    }
}

/// Since 6.12 the kernel bounds real-time tasks only by reserves for other classes, one each.
fn throttling(root: &Root) -> Finding {
    const SUBJECT: &str = "real-time reserve";
    const CONSEQUENCE: &str = "a real-time task that does not sleep starves Hearth's tasks on its CPU, and the \
                               kernel ends Hearth when one has waited for 10 s";
    if !root.has("/sys/kernel/debug/sched/features") {
        return Finding::warning(
            SUBJECT,
            "unknown",
            root.lacks("/sys/kernel/debug/sched/features", "run as root with debugfs mounted"),
        );
    }
    if !root.has("/sys/kernel/debug/sched/ext_server") {
        return Finding::warning(SUBJECT, "this kernel keeps none for sched_ext; newer ones do", CONSEQUENCE);
    }
    match root.number("/sys/kernel/debug/sched/ext_server/cpu0/runtime") {
        Some(0) => Finding::warning(SUBJECT, "switched off for sched_ext", CONSEQUENCE),
        _ => Finding::ok(SUBJECT, "the kernel keeps one for tasks of sched_ext"),
    }
}

fn real_time() -> Finding {
    let hogs = hogs::watch(WATCH);
    if hogs.is_empty() {
        return Finding::ok("real-time tasks", "none holds a CPU");
    }
    let named: Vec<String> = hogs.iter().map(ToString::to_string).collect();
    Finding::warning(
        "real-time tasks",
        named.join("; "),
        "they go before every fair task under any scheduler; what waits behind one is not Hearth's doing",
    )
}

fn left_over() -> Option<Finding> {
    let left = daemon::state_folder().join(journal::NAME).exists();
    (left && daemon::holder(&daemon::run_folder()).is_none()).then(|| {
        Finding::warning(
            "journal",
            "a Hearth that ended badly has left changes",
            "hearth undo takes them back",
        )
    })
}

/// Programs that also decide where tasks run, and what that means.
const DAEMONS: [(&str, &str); 4] = [
    ("numad", "it moves tasks and memory between nodes, against credits for them"),
    ("ananicy", "it changes nice values and classes of programs; Hearth follows the nice values"),
    ("uresourced", "it gives weights to control groups, which Hearth does not read"),
    ("scx_loader", "it loads other schedulers; hearth start refuses while one is loaded"),
];

pub(super) fn daemons(root: &Root) -> Vec<Finding> {
    const SUBJECT: &str = "other daemons";
    let entries = fs::read_dir(root.path("/proc")).into_iter().flatten().flatten();
    let names: BTreeSet<String> = entries
        .filter(|entry| entry.file_name().to_string_lossy().bytes().all(|byte| byte.is_ascii_digit()))
        // Threads of the kernel have no command line.
        .filter(|entry| fs::read(entry.path().join("cmdline")).is_ok_and(|line| !line.is_empty()))
        .filter_map(|entry| fs::read_to_string(entry.path().join("comm")).ok())
        .map(|name| name.trim_end().to_owned())
        .collect();
    let mut findings: Vec<Finding> = names
        .iter()
        .filter_map(|name| {
            let known = DAEMONS.iter().find(|(known, _)| name.starts_with(known));
            let meaning = known.map(|(_, meaning)| *meaning).or_else(|| {
                name.starts_with("scx_")
                    .then_some("it is a scheduler; hearth start refuses while it is loaded")
            })?;
            Some(Finding::warning(SUBJECT, name.clone(), meaning))
        })
        .collect();
    if names.contains("irqbalance") {
        findings.push(Finding::ok(SUBJECT, "irqbalance moves interrupts, not tasks"));
    }
    if findings.is_empty() {
        findings.push(Finding::ok(SUBJECT, "none that moves tasks"));
    }
    findings
}
