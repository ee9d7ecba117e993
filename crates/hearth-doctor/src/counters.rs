//! Hardware counters, one by one: which of them this machine counts.

use super::Finding;
use perf_event::Builder;
use perf_event::events::{Cache, CacheId, CacheOp, CacheResult, Event, Hardware};
use std::collections::BTreeSet;
use std::io;

/// What is lost without a counter, for those that `observe` uses.
pub(super) const NO_RELOADS: &str = "observe cannot show reload transients";

pub(super) fn findings() -> Vec<Finding> {
    let misses = |which| Cache { which, operation: CacheOp::READ, result: CacheResult::MISS };
    judge(&[
        ("cycles", NO_RELOADS, attempt(Hardware::CPU_CYCLES)),
        ("instructions", NO_RELOADS, attempt(Hardware::INSTRUCTIONS)),
        ("cache references", "", attempt(Hardware::CACHE_REFERENCES)),
        ("cache misses", NO_RELOADS, attempt(Hardware::CACHE_MISSES)),
        ("L1d load misses", "", attempt(misses(CacheId::L1D))),
        ("LLC load misses", "", attempt(misses(CacheId::LL))),
        ("dTLB load misses", "", attempt(misses(CacheId::DTLB))),
    ])
}

type Tried = (&'static str, &'static str, Result<(), String>);

/// One line for what counts, and one for each reason why others do not.
fn judge(tried: &[Tried]) -> Vec<Finding> {
    const SUBJECT: &str = "counters";
    let names = |of: &[&Tried]| of.iter().map(|(name, ..)| *name).collect::<Vec<_>>().join(", ");
    let counted: Vec<&Tried> = tried.iter().filter(|(.., result)| result.is_ok()).collect();
    let mut findings = Vec::new();
    if !counted.is_empty() {
        findings.push(Finding::ok(SUBJECT, names(&counted)));
    }
    let reasons: BTreeSet<&String> = tried.iter().filter_map(|(.., result)| result.as_ref().err()).collect();
    for why in reasons {
        let lacking: Vec<&Tried> =
            tried.iter().filter(|(.., result)| result.as_ref().err() == Some(why)).collect();
        let loss = lacking.iter().map(|(_, loss, _)| *loss).find(|loss| !loss.is_empty());
        let found = format!("no {}: {why}", names(&lacking));
        findings.push(Finding::warning(SUBJECT, found, loss.unwrap_or("nothing here needs them")));
    }
    findings
}

/// Counts this thread for a moment.
fn attempt(event: impl Event) -> Result<(), String> {
    let mut counter = Builder::new(event).build().map_err(|error| explain(&error))?;
    counter.enable().and_then(|()| counter.read()).map(|_| ()).map_err(|error| error.to_string())
}

fn explain(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::ENOENT | libc::EOPNOTSUPP | libc::ENODEV) => "not offered on this machine".into(),
        Some(libc::EACCES | libc::EPERM) => "kernel.perf_event_paranoid forbids it; run as root".into(),
        Some(libc::EINVAL) => "not known to this kernel".into(),
        Some(libc::ENOSYS) => "this kernel has no perf events".into(),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Level;

    #[test]
    fn counters_that_are_missing_for_one_reason_share_a_line() {
        let no = || Err("not offered".to_owned());
        let findings = judge(&[("a", "", Ok(())), ("b", "", no()), ("c", NO_RELOADS, no())]);
        let lines: Vec<_> = findings.iter().map(|finding| (finding.level, finding.found.as_str())).collect();
        assert_eq!(lines, [(Level::Ok, "a"), (Level::Warning, "no b, c: not offered")]);
        assert_eq!(findings[1].advice.as_deref(), Some(NO_RELOADS));
    }
}
