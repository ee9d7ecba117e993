//! Files of sysfs and procfs: one value or list each.

use std::path::{Path, PathBuf};

use super::HostError;
use crate::list::{MAX_ID, parse_list, show_list};

/// The text of a file without surrounding space; nothing where it is missing or cannot be read,
/// which is common: what is described differs with the machine.
pub(super) fn text(path: &Path) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    Some(text.trim().to_owned())
}

/// A file that holds one number.
pub(super) fn number(path: &Path) -> Option<u64> {
    text(path)?.parse().ok()
}

/// A size as sysfs writes caches: `48K`.
pub(super) fn cache_size(path: &Path) -> Option<u64> {
    let text = text(path)?;
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "" => 1,
        "K" => 1 << 10,
        "M" => 1 << 20,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

/// The `MemTotal` of a node's or the whole machine's `meminfo`, which is in KiB.
pub(super) fn memory_total(path: &Path) -> Option<u64> {
    let text = text(path)?;
    let line = text.lines().find(|line| line.contains("MemTotal:"))?;
    line.split_whitespace().rev().nth(1)?.parse::<u64>().ok()?.checked_mul(1 << 10)
}

/// A list of CPUs or nodes such as `0-3,8`, in order; an empty file is an empty list.
pub(super) fn list(path: PathBuf) -> Result<Option<Vec<usize>>, HostError> {
    let Some(text) = text(&path) else { return Ok(None) };
    match parse_list(&text) {
        Some(list) => Ok(Some(list)),
        None => Err(HostError::Malformed { path, text, expected: "a list such as `0-3,8`" }),
    }
}

/// A list of CPUs with its noun: `CPU 3`, `CPUs 0-3,8`.
pub(super) fn show_cpus(list: &[usize]) -> String {
    let noun = if list.len() == 1 { "CPU" } else { "CPUs" };
    format!("{noun} {}", show_list(list))
}

/// The numbers `N` for which `folder` holds an entry `prefixN`, in order.
pub(super) fn numbered(folder: &Path, prefix: &str) -> Vec<usize> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let number = |name: &str| name.strip_prefix(prefix)?.parse::<usize>().ok().filter(|id| *id < MAX_ID);
    let mut ids: Vec<usize> =
        entries.filter_map(|entry| number(&entry.file_name().to_string_lossy())).collect();
    ids.sort_unstable();
    ids
}
