//! What the program gets through its environment. The user's own settings go first, always.

use super::way::Way;
use std::env;
use std::ffi::{OsStr, OsString};
use std::path::Path;

/// What reads its number of threads once, at its start: rayon, tokio, joblib, numexpr, Polars, Julia.
const READ_ONCE: &[&str] = &[
    "RAYON_NUM_THREADS",
    "TOKIO_WORKER_THREADS",
    "LOKY_MAX_CPU_COUNT",
    "NUMEXPR_MAX_THREADS",
    "POLARS_MAX_THREADS",
    "JULIA_NUM_THREADS",
];

/// The user's LD_PRELOAD with ours at its end, once: what the user has there comes before ours.
pub fn preload(users: Option<&OsStr>, library: &Path) -> OsString {
    let mut all = users.unwrap_or_default().to_os_string();
    if env::split_paths(&all).any(|path| path == library) {
        return all;
    }
    if !all.is_empty() {
        all.push(":");
    }
    all.push(library);
    all
}

/// The variables that tell `cpus` to what reads them once, but for those that the user has set.
pub fn told_once(way: &Way, cpus: usize) -> Vec<(&'static str, String)> {
    let own = match way {
        Way::Told(name) => Some(*name),
        _ => None,
    };
    let names = READ_ONCE.iter().copied().chain(own);
    names.filter(|name| env::var_os(name).is_none()).map(|name| (name, cpus.to_string())).collect()
}

/// Has Go read the CPUs that it may run on again and again, whatever version the program was written
/// for. What the user says comes later, and so goes first.
pub fn go_debug(users: Option<&str>) -> String {
    let ours = "containermaxprocs=1,updatemaxprocs=1";
    users.filter(|users| !users.is_empty()).map_or(ours.to_owned(), |users| format!("{ours},{users}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_user_preloads_stays() {
        let ours = Path::new("/lib/ours.so");
        assert_eq!(preload(None, ours), "/lib/ours.so");
        assert_eq!(preload(Some(OsStr::new("/lib/ours.so:b.so")), ours), "/lib/ours.so:b.so");
        assert_eq!(preload(Some(OsStr::new("a.so:b.so")), ours), "a.so:b.so:/lib/ours.so");
    }

    #[test]
    fn a_program_that_reads_one_variable_is_told_by_it() {
        let told = told_once(&Way::Told("GOMAXPROCS"), 3);
        assert!(told.contains(&("GOMAXPROCS", "3".to_owned())) && told.len() > 1);
        assert!(!told_once(&Way::Mask("Go"), 3).contains(&("GOMAXPROCS", "3".to_owned())));
    }

    #[test]
    fn the_users_word_on_go_goes_first() {
        assert!(go_debug(Some("updatemaxprocs=0")).ends_with(",updatemaxprocs=0"));
    }
}
