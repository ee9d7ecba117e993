//! Files of sysfs and procfs: one value or set each.

use std::io::Read;
use std::path::{Path, PathBuf};

use super::HostError;
use crate::list::{MAX_ID, parse_list, parse_mask, show_list};

/// Most files are shorter than this, and read at once.
const USUAL_BYTES: usize = 4096;

/// The longest file that is read: far beyond what the kernel writes.
const MAX_BYTES: u64 = 16 << 20;

/// The text of a file without surrounding space and zero bytes; nothing where it is missing or cannot be read,
/// which is common: what is described differs with the machine.
pub(super) fn text(path: &Path) -> Option<String> {
    let mut file = std::fs::File::open(path).ok()?;
    let mut bytes = vec![0; USUAL_BYTES];
    let length = file.read(&mut bytes).ok()?;
    bytes.truncate(length);
    // What is shorter than was asked for is all.
    if length == USUAL_BYTES {
        file.take(MAX_BYTES).read_to_end(&mut bytes).ok()?;
    }
    let text = String::from_utf8(bytes).ok()?;
    Some(text.trim_matches(|letter: char| letter.is_whitespace() || letter == '\0').to_owned())
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

/// A value of a `meminfo` (a node's, or the whole machine's), which is in KiB: `MemTotal`.
pub(super) fn memory(path: &Path, key: &str) -> Option<u64> {
    let text = text(path)?;
    let line = text.lines().find(|line| line.contains(key))?;
    line.split_whitespace().rev().nth(1)?.parse::<u64>().ok()?.checked_mul(1 << 10)
}

/// A list of CPUs or nodes such as `0-3,8`, in order; an empty file is an empty list.
pub(super) fn list(path: PathBuf) -> Result<Option<Vec<usize>>, HostError> {
    set(path, parse_list, "a list such as `0-3,8`, of numbers below 65536")
}

/// A set of CPUs, by the names of the files that may hold it: as a list (older kernels lack some, and copies may),
/// or else as a mask such as `f,00000103`.
pub(super) fn cpus(folder: &Path, lists: &[&str], masks: &[&str]) -> Result<Option<Vec<usize>>, HostError> {
    for name in lists {
        if let Some(found) = list(folder.join(name))?.filter(|list| !list.is_empty()) {
            return Ok(Some(found));
        }
    }
    for name in masks {
        let expected = "a mask such as `f,00000103`, of numbers below 65536";
        if let Some(found) = set(folder.join(name), parse_mask, expected)? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

fn set(
    path: PathBuf,
    parse: impl Fn(&str) -> Option<Vec<usize>>,
    expected: &'static str,
) -> Result<Option<Vec<usize>>, HostError> {
    let Some(text) = text(&path) else { return Ok(None) };
    parse(&text).map(Some).ok_or_else(|| HostError::Malformed { path, text: beginning(text), expected })
}

/// As much of what a file holds as an error shows.
fn beginning(text: String) -> String {
    match text.char_indices().nth(60) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}

/// A list of CPUs with its noun: `CPU 3`, `CPUs 0-3,8`.
pub(super) fn show_cpus(list: &[usize]) -> String {
    let noun = if list.len() == 1 { "CPU" } else { "CPUs" };
    format!("{noun} {}", show_list(list))
}

/// The numbers `N` for which `folder` holds an entry `prefixN`, in order; those of 65,536 and more are told in a note.
pub(super) fn numbered(folder: &Path, prefix: &str, notes: &mut Vec<String>) -> Vec<usize> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let number = |name: &str| name.strip_prefix(prefix)?.parse::<usize>().ok();
    let mut ids: Vec<usize> =
        entries.filter_map(|entry| number(&entry.file_name().to_string_lossy())).collect();
    ids.sort_unstable();
    let beyond = ids.split_off(ids.partition_point(|id| *id < MAX_ID));
    if let Some(first) = beyond.first() {
        let more = if beyond.len() > 1 { " and above" } else { "" };
        notes.push(format!("{prefix}{first}{more}: left out, for numbers end below {MAX_ID}"));
    }
    ids
}
