//! What the claims about page policies make of a study.

use super::Study;
use crate::experiment::Measure;
use crate::job::Run;

/// The value of a measure that is about pages, from a run that was recorded; nothing for others.
pub(crate) fn value(measure: &Measure, runs: &[&Run]) -> Option<f64> {
    let study = runs.first()?.study.as_ref()?;
    match measure {
        Measure::HotPages { percent, .. } => study.overlap.get(percent.checked_sub(1)?).copied(),
        Measure::HolderRank { .. } => study.ranks.mean,
        Measure::PlacementLoss { relative, .. } => {
            let (by_cache, by_tlb) = study.placement.local()?;
            Some(if *relative { 100.0 * (1.0 - by_tlb / by_cache) } else { by_cache - by_tlb })
        }
        Measure::RecordedMisses { .. } => {
            let (local, remote) = unmoved(study)?;
            Some((local + remote) / 1e6)
        }
        Measure::RecordedRemote { .. } => {
            let (local, remote) = unmoved(study)?;
            Some(100.0 * remote / (local + remote))
        }
        Measure::MemoryTime { pages, .. } => memory_s(study, pages),
        Measure::MemoryTimeShare { pages, of_pages, .. } => {
            Some(100.0 * memory_s(study, pages)? / memory_s(study, of_pages)?)
        }
        _ => None,
    }
}

/// Misses to the own memory and to others, if no page moves.
fn unmoved(study: &Study) -> Option<(f64, f64)> {
    let outcome = study.outcome("none")?;
    Some((outcome.local_misses as f64, outcome.remote_misses as f64))
}

fn memory_s(study: &Study, pages: &str) -> Option<f64> {
    study.outcome(pages).map(super::Outcome::memory_s)
}
