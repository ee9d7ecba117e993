//! What libbpf prints, the verifier's log in it: kept, and shown only with an error.

use libbpf_rs::PrintLevel;
use std::sync::Mutex;

/// Lines that an error shows.
const SHOWN: usize = 12;

static LOG: Mutex<String> = Mutex::new(String::new());

/// Keeps from now on what libbpf prints.
pub(crate) fn keep() {
    libbpf_rs::set_print(Some((PrintLevel::Warn, |_, text| {
        if let Ok(mut log) = LOG.lock() {
            log.push_str(&text);
        }
    })));
}

/// The last lines, after a line break; nothing if there are none.
pub(crate) fn last_lines() -> String {
    let log = LOG.lock().map(|mut log| std::mem::take(&mut *log)).unwrap_or_default();
    let lines: Vec<&str> = log.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(SHOWN)..].iter().map(|line| format!("\n    {line}")).collect()
}
