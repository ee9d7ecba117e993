//! What loading any sched_ext scheduler turns off or changes on this host.

use super::{Finding, Root};
use std::fs;
use std::path::{Path, PathBuf};

/// Deeper control groups are not looked at.
const DEPTH: usize = 6;
/// So many control groups are named.
const NAMED: usize = 10;

pub(super) fn findings(root: &Root) -> Vec<Finding> {
    let found = [numa_balancing(root), cache_aware(root), core_scheduling(root), frequency(root)];
    found.into_iter().flatten().chain(limits(root)).collect()
}

fn numa_balancing(root: &Root) -> Option<Finding> {
    const SUBJECT: &str = "NUMA balancing";
    let mode = root.number("/proc/sys/kernel/numa_balancing")?;
    Some(match mode {
        0 => Finding::ok(SUBJECT, "off"),
        _ => Finding::warning(
            SUBJECT,
            "on",
            "does not act on Hearth's tasks: the node credit keeps them near their pages, and Hearth moves pages \
             itself (start --pages)",
        ),
    })
}

fn cache_aware(root: &Root) -> Option<Finding> {
    const SUBJECT: &str = "cache-aware load balancing";
    let on = match root.text("/sys/kernel/debug/sched/llc_balancing/enabled") {
        Some(value) => value != "0",
        None => {
            let features = root.text("/sys/kernel/debug/sched/features")?;
            features.split_whitespace().find_map(|word| match word {
                "SCHED_CACHE" => Some(true),
                "NO_SCHED_CACHE" => Some(false),
                _ => None,
            })?
        }
    };
    Some(if on {
        Finding::warning(
            SUBJECT,
            "on",
            "does not act on Hearth's tasks: the cache domain's credit takes its place",
        )
    } else {
        Finding::ok(SUBJECT, "off")
    })
}

fn core_scheduling(root: &Root) -> Option<Finding> {
    let smt = root.text("/sys/devices/system/cpu/smt/active")?;
    (smt == "1").then(|| {
        Finding::warning(
            "core scheduling",
            "hardware threads share cores",
            "tasks with a core cookie (prctl PR_SCHED_CORE) stay apart, but among them the one that has waited \
             longest goes first, whatever its credit",
        )
    })
}

fn frequency(root: &Root) -> Option<Finding> {
    const SUBJECT: &str = "CPU frequency";
    let governor = root.text("/sys/devices/system/cpu/cpufreq/policy0/scaling_governor")?;
    Some(if governor == "schedutil" {
        Finding::warning(
            SUBJECT,
            "governor schedutil",
            "under a sched_ext scheduler that sets no target it asks for full speed while a CPU is busy",
        )
    } else {
        Finding::ok(SUBJECT, format!("governor {governor}, which does not ask the scheduler"))
    })
}

/// Limits and weights of control groups, which only the kernel's own scheduler enforces.
fn limits(root: &Root) -> Vec<Finding> {
    let folders = control_groups(&root.path("/sys/fs/cgroup"));
    let with = |file: &str, is_default: fn(&str) -> bool| -> Vec<PathBuf> {
        let differs = |folder: &&PathBuf| {
            fs::read_to_string(folder.join(file)).is_ok_and(|text| !is_default(text.trim()))
        };
        folders.iter().filter(differs).cloned().collect()
    };
    let line = |subject, found: Vec<PathBuf>, advice: &str| match found.as_slice() {
        [] => Finding::ok(subject, "none is set"),
        found => {
            let named: Vec<String> =
                found.iter().take(NAMED).map(|folder| folder.display().to_string()).collect();
            let others = match found.len().saturating_sub(NAMED) {
                0 => String::new(),
                more => format!(", and {more} more: grep . /sys/fs/cgroup/*/{}", file_of(subject)),
            };
            Finding::warning(subject, named.join(", ") + &others, advice)
        }
    };
    if folders.is_empty() {
        return Vec::new();
    }
    vec![
        line(
            "cpu.max of control groups",
            with("cpu.max", |text| text.is_empty() || text.starts_with("max")),
            "not enforced on Hearth's tasks: only the kernel's own scheduler does; use cpuset.cpus to bound them",
        ),
        line(
            "cpu.weight of control groups",
            with("cpu.weight", |text| text.is_empty() || text == "100"),
            "not followed for Hearth's tasks: they are weighed by their nice values",
        ),
        line(
            "cpu.idle of control groups",
            with("cpu.idle", |text| text.is_empty() || text == "0"),
            "not followed for Hearth's tasks: give them the class SCHED_IDLE (chrt --idle) or nice 19",
        ),
    ]
}

/// The file that a finding is of.
fn file_of(subject: &str) -> &str {
    subject.split(' ').next().unwrap_or_default()
}

fn control_groups(root: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    let mut level = vec![root.to_owned()];
    for _ in 0..DEPTH {
        let below = |folder: &PathBuf| {
            let entries = fs::read_dir(folder).into_iter().flatten().flatten();
            let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
            folders.map(|entry| entry.path()).collect::<Vec<_>>()
        };
        level = level.iter().flat_map(below).collect();
        all.extend(level.iter().cloned());
    }
    all.sort();
    all
}
