//! What the program gets through its environment. The user's own settings go first, always.

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::Path;

/// What reads its number of threads once, at its start: the variable, and who reads it.
pub const READ_ONCE: &[(&str, &str)] = &[
    ("RAYON_NUM_THREADS", "rayon"),
    ("TOKIO_WORKER_THREADS", "tokio"),
    ("LOKY_MAX_CPU_COUNT", "joblib"),
    ("NUMEXPR_MAX_THREADS", "numexpr"),
    ("POLARS_MAX_THREADS", "polars"),
    ("JULIA_NUM_THREADS", "Julia"),
];

/// The user's LD_PRELOAD with ours at its end: what the user has there comes before ours.
pub fn preload(users: Option<&OsStr>, library: &Path) -> OsString {
    let mut all = users.unwrap_or_default().to_os_string();
    if !all.is_empty() {
        all.push(":");
    }
    all.push(library);
    all
}

/// The variables that tell `cpus` to what reads them once, but for those that the user has set.
pub fn told_once(cpus: usize) -> Vec<(&'static str, String)> {
    let unset = |(name, _): &&(&'static str, &str)| env::var_os(name).is_none();
    READ_ONCE.iter().filter(unset).map(|(name, _)| (*name, cpus.to_string())).collect()
}
