//! Files of sysfs and procfs: one value or list each.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use super::HostError;

/// Linux numbers fewer CPUs and nodes than this; it bounds what a malformed range can cost.
const MAX_ID: usize = 1 << 16;

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

fn parse_list(text: &str) -> Option<Vec<usize>> {
    let mut list = Vec::new();
    for range in text.split(',').filter(|range| !range.is_empty()) {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        if first > last || last >= MAX_ID {
            return None;
        }
        list.extend(first..=last);
    }
    list.sort_unstable();
    list.dedup();
    Some(list)
}

/// Writes numbers in ascending order as the kernel does: `0-3,8`.
fn show_list(list: &[usize]) -> String {
    let mut text = String::new();
    for run in list.chunk_by(|a, b| a + 1 == *b) {
        let comma = if text.is_empty() { "" } else { "," };
        // Writing to a string cannot fail.
        let _ = match run {
            [one] => write!(text, "{comma}{one}"),
            [first, .., last] => write!(text, "{comma}{first}-{last}"),
            [] => Ok(()),
        };
    }
    text
}

/// The same with its noun: `CPU 3`, `CPUs 0-3,8`.
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lists_are_those_of_the_kernel() {
        assert_eq!(parse_list("0-3,8"), Some(vec![0, 1, 2, 3, 8]));
        assert_eq!(parse_list(""), Some(vec![]));
        assert_eq!(parse_list("3-1"), None);
        assert_eq!(parse_list("0-99999999999"), None);
        assert_eq!(parse_list("a"), None);
    }

    proptest! {
        #[test]
        fn a_shown_list_reads_back(ids in prop::collection::btree_set(0_usize..300, 0..40)) {
            let ids: Vec<usize> = ids.into_iter().collect();
            prop_assert_eq!(parse_list(&show_list(&ids)), Some(ids));
        }
    }
}
