//! What page policies would have made of a run, told from its misses.
//!
//! The study of Chandra, Devine, Verghese, Gupta and Rosenblum, "Scheduling and Page Migration for
//! Multiprocessor Compute Servers" (ASPLOS 1994), section 5.4.1. A run is recorded once, with every
//! TLB and cache miss of its programs' loads and stores. Then each CPU is given a memory of its own,
//! the pages are dealt over the memories, and the misses are gone through again under each policy.
//!
//! | file | what | paper |
//! |---|---|---|
//! | `overlap.rs` | are the pages with many TLB misses those with many cache misses? | figure 14 |
//! | `ranks.rs` | is the CPU with most TLB misses to a page the one with most cache misses? | figure 15 |
//! | `placement.rs` | what does placing by TLB misses lose against placing by cache misses? | figure 16 |
//! | `replay.rs` | what do the policies make of it? | table 6 |

mod counts;
pub(crate) mod measures;
mod overlap;
mod placement;
mod ranks;
mod replay;
mod trace;

use hearth_hardware::MissLog;
use hearth_policy::PolicyError;
use hearth_policy::pages::PlannerError;
use serde::Serialize;
use thiserror::Error;

use counts::Counts;

pub use placement::Placement;
pub use ranks::Ranks;
pub use replay::{Outcome, POLICIES};
pub use trace::{Trace, TraceFault};

/// What was found of one run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Study {
    /// Pages with misses.
    pub pages: usize,
    /// From the first miss to the last.
    pub length_ns: u64,
    /// TLB misses.
    pub tlb_misses: u64,
    /// Cache misses.
    pub cache_misses: u64,
    /// Of the hottest 1, 2, ... 100 % of pages by TLB misses, the share that is among the hottest as
    /// many by cache misses; in percent. (Figure 14.)
    pub overlap: Vec<f64>,
    /// Where the CPU with most cache misses to a page stands among those with TLB misses. (Figure 15.)
    pub ranks: Ranks,
    /// The best fixed places of pages. (Figure 16.)
    pub placement: Placement,
    /// What each policy comes to, in the order of [`POLICIES`]. (Table 6.)
    pub outcomes: Vec<Outcome>,
}

/// Why a run cannot be studied.
#[derive(Debug, Error)]
pub enum StudyError {
    /// The log is none of a run.
    #[error(transparent)]
    Trace(#[from] TraceFault),
    /// A policy that comes with the program cannot be read: a defect of Hearth.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The planner cannot work with this machine.
    #[error(transparent)]
    Planner(#[from] PlannerError),
}

impl Study {
    /// Studies the log of a run on so many CPUs.
    ///
    /// # Errors
    /// [`StudyError`].
    pub fn of(log: &MissLog, cpus: usize) -> Result<Self, StudyError> {
        let trace = Trace::new(log, cpus)?;
        let counts = Counts::of(&trace);
        let outcomes = POLICIES.iter().map(|name| replay::replay(&trace, &counts, name));
        Ok(Self {
            pages: trace.pages(),
            length_ns: trace.length_ns(),
            tlb_misses: counts.tlb.total(),
            cache_misses: counts.cache.total(),
            overlap: overlap::curve(&counts),
            ranks: ranks::ranks(&trace),
            placement: placement::placement(&trace, &counts),
            outcomes: outcomes.collect::<Result<_, _>>()?,
        })
    }

    /// What a policy comes to.
    pub fn outcome(&self, policy: &str) -> Option<&Outcome> {
        self.outcomes.iter().find(|outcome| outcome.policy == policy)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use hearth_hardware::{Miss, MissKind};

    /// A log of `(time in ms, cpu, page, kind)`; times that are not in order stay so.
    pub(crate) fn log(misses: impl IntoIterator<Item = (u64, usize, u32, MissKind)>) -> MissLog {
        let miss = |(at_ms, cpu, page, kind)| Miss { at_ns: at_ms * 1_000_000, cpu, page, kind };
        misses.into_iter().map(miss).collect()
    }

    /// Two CPUs: CPU 1 uses pages 0 and 2 all the time, CPU 0 uses page 1 now and then.
    pub(crate) fn two_cpus() -> MissLog {
        let rounds = 0..3000u64;
        log(rounds.flat_map(|round| {
            let own = [0, 2].into_iter().map(move |page| (round, 1, page, MissKind::Cache));
            let tlb = [0, 2].into_iter().map(move |page| (round, 1, page, MissKind::Tlb));
            let rare = (round % 100 == 0).then_some((round, 0, 1, MissKind::Tlb));
            rare.into_iter().chain(tlb.filter(move |_| round % 10 == 0)).chain(own)
        }))
    }

    #[test]
    fn a_study_finds_where_pages_belong() {
        let study = Study::of(&two_cpus(), 2).expect("a run");
        assert_eq!((study.pages, study.cache_misses, study.tlb_misses), (3, 6000, 630));
        assert_eq!(study.length_ns, 2_999_000_000);
        let local = |policy| study.outcome(policy).map(|outcome| outcome.local_misses);
        // Pages 0 and 2 are dealt to CPU 0, where nobody misses their caches.
        assert_eq!(local("none"), Some(0));
        assert_eq!(local("post-facto"), Some(6000));
        assert_eq!(local("single-tlb"), Some(6000));
        assert_eq!(local("single-cache"), Some(5998));
        assert_eq!(local("competitive"), Some(4000));
    }

    #[test]
    fn the_same_run_gives_the_same_study() {
        let study = || Study::of(&two_cpus(), 2).expect("a run");
        assert_eq!(study(), study());
    }
}
