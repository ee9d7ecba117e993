//! Hardware counters, one by one: which of them this machine counts.

use super::Finding;
use perf_event::Builder;
use perf_event::events::{Cache, CacheId, CacheOp, CacheResult, Event, Hardware};
use std::io;

pub(super) fn findings() -> Vec<Finding> {
    let misses = |which| Cache { which, operation: CacheOp::READ, result: CacheResult::MISS };
    let tried = [
        ("cycles", "observe cannot tell how fast programs run", attempt(Hardware::CPU_CYCLES)),
        ("instructions", "observe cannot show reload transients", attempt(Hardware::INSTRUCTIONS)),
        ("cache references", "nothing needs it yet", attempt(Hardware::CACHE_REFERENCES)),
        ("cache misses", "observe cannot show reload transients", attempt(Hardware::CACHE_MISSES)),
        ("L1d load misses", "nothing needs it yet", attempt(misses(CacheId::L1D))),
        ("LLC load misses", "cache misses stand in for it", attempt(misses(CacheId::LL))),
        ("dTLB load misses", "nothing needs it yet", attempt(misses(CacheId::DTLB))),
    ];
    let counted: Vec<&str> =
        tried.iter().filter(|(.., result)| result.is_ok()).map(|(name, ..)| *name).collect();
    let mut findings = Vec::new();
    if !counted.is_empty() {
        findings.push(Finding::ok("counters", counted.join(", ")));
    }
    findings.extend(tried.iter().filter_map(|(name, loss, result)| {
        let why = result.as_ref().err()?;
        Some(Finding::warning("counters", format!("no {name}: {why}"), *loss))
    }));
    findings
}

/// Counts this thread for a moment.
fn attempt(event: impl Event) -> Result<(), String> {
    let mut counter = Builder::new(event).build().map_err(|error| explain(&error))?;
    counter.enable().and_then(|()| counter.read()).map(|_| ()).map_err(|error| error.to_string())
}

fn explain(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::ENOENT | libc::EOPNOTSUPP | libc::ENODEV) => "the processor does not offer it here".into(),
        Some(libc::EACCES | libc::EPERM) => "kernel.perf_event_paranoid forbids it; run as root".into(),
        Some(libc::EINVAL) => "this kernel does not know it".into(),
        Some(libc::ENOSYS) => "this kernel has no perf events".into(),
        _ => error.to_string(),
    }
}
