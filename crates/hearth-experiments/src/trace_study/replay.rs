//! What a page policy makes of a trace.

use super::StudyError;
use super::counts::Counts;
use super::trace::Trace;
use hearth_policy::pages::{InMiss, Misses, PagePolicy, PlannerError, Rule};
use serde::Serialize;

/// The policies of table 6, in its order.
pub const POLICIES: [&str; 7] =
    ["none", "post-facto", "competitive", "single-cache", "single-tlb", "freeze", "hybrid"];

/// The paper's costs, "loosely based on DASH".
const CLOCK_HZ: f64 = 33e6;
const LOCAL_CYCLES: f64 = 30.0;
const REMOTE_CYCLES: f64 = 150.0;
const MOVE_S: f64 = 2e-3;
/// No policy of table 6 asks for it.
const PAGE_BYTES: u64 = 4096;

/// What a policy comes to.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outcome {
    /// The policy.
    pub policy: String,
    /// Cache misses to the memory of the CPU.
    pub local_misses: u64,
    /// Cache misses to another.
    pub remote_misses: u64,
    /// Moves of pages.
    pub moves: u64,
}

impl Outcome {
    /// What misses and moves take, of all CPUs together.
    pub fn memory_s(&self) -> f64 {
        let cycles = self.local_misses as f64 * LOCAL_CYCLES + self.remote_misses as f64 * REMOTE_CYCLES;
        cycles / CLOCK_HZ + self.moves as f64 * MOVE_S
    }
}

/// Goes through a trace in the papers' variant: it is decided in the miss. A page moves at once, and the
/// miss that moved it counts at its old place, except that a TLB miss comes before the cache miss
/// of the same access.
pub(super) fn replay(trace: &Trace<'_>, counts: &Counts, name: &str) -> Result<Outcome, StudyError> {
    let policy = PagePolicy::load(name)?;
    let mut pages = pages(trace, counts, &policy)?;
    let mut outcome = Outcome { policy: policy.name.clone(), local_misses: 0, remote_misses: 0, moves: 0 };
    for event in trace.events() {
        if event.kind == Misses::Cache {
            let local = pages.home(event.page) == Some(event.node);
            *if local { &mut outcome.local_misses } else { &mut outcome.remote_misses } += 1;
        }
        if let Some(found) = pages.miss(event.at_ns, event.page, event.node, event.kind) {
            pages.moved(event.at_ns, found.page, found.to)?;
        }
    }
    outcome.moves = pages.counters().moves;
    Ok(outcome)
}

/// Pages as they are dealt, or where they will be missed most.
fn pages(trace: &Trace<'_>, counts: &Counts, policy: &PagePolicy) -> Result<InMiss, PlannerError> {
    let mut pages = InMiss::new(policy, trace.cpus(), PAGE_BYTES)?;
    for (page, &dealt) in trace.dealt().iter().enumerate() {
        let best = || counts.cache.holder(page).unwrap_or(dealt);
        let home = if policy.rule == Rule::PostFacto { best() } else { dealt };
        pages.set_home(page as u32, home)?;
    }
    Ok(pages)
}

#[cfg(test)]
mod tests {
    use super::super::tests::log;
    use super::*;
    use hearth_hardware::MissKind::{Cache, Tlb};

    fn outcome(policy: &str, misses: &[(u64, usize, u32, hearth_hardware::MissKind)]) -> (u64, u64, u64) {
        let log = log(misses.iter().copied());
        let trace = Trace::new(&log, 3).expect("a run");
        let outcome = replay(&trace, &Counts::of(&trace), policy).expect("a preset");
        (outcome.local_misses, outcome.remote_misses, outcome.moves)
    }

    #[test]
    fn memory_time_is_the_papers() {
        let of_table_6 = |local_misses, remote_misses, moves| {
            Outcome { policy: String::new(), local_misses, remote_misses, moves }.memory_s()
        };
        // Panel under competitive, ocean under none; the paper's misses are rounded to 0.1 million.
        assert!((of_table_6(5_500_000, 14_600_000, 1577) - 73.9).abs() < 1.0);
        assert!((of_table_6(1_600_000, 22_600_000, 0) - 103.2).abs() < 1.5);
    }

    #[test]
    fn a_page_is_local_from_its_move_on() {
        let misses = [(0, 1, 0, Tlb), (0, 1, 0, Cache), (1, 1, 0, Cache), (2, 2, 0, Tlb), (3, 2, 0, Cache)];
        assert_eq!(outcome("none", &misses), (0, 3, 0));
        assert_eq!(outcome("single-tlb", &misses), (2, 1, 1));
        assert_eq!(outcome("single-cache", &misses), (1, 2, 1));
        assert_eq!(outcome("post-facto", &misses), (2, 1, 0));
    }

    #[test]
    fn a_frozen_page_moves_again_after_a_second() {
        let four = |at_ms| (0..4).flat_map(move |_| [(at_ms, 1, 0, Tlb), (at_ms, 1, 0, Cache)]);
        let back = |at_ms| (0..4).flat_map(move |_| [(at_ms, 2, 0, Tlb), (at_ms, 2, 0, Cache)]);
        let misses: Vec<_> = four(0).chain(back(500)).chain(back(1000)).collect();
        assert_eq!(outcome("freeze", &misses), (1 + 1, 3 + 4 + 3, 2));
    }
}
