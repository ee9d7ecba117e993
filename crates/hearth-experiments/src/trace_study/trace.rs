//! The misses of a run, checked, with its pages numbered from 0.

use hearth_hardware::{MissKind, MissLog};
use hearth_policy::pages::{Misses, NodeId};
use thiserror::Error;

/// Misses in order of time, each of a CPU and a page that are there. Every CPU has a memory of its
/// own, with the CPU's number.
pub struct Trace<'a> {
    log: &'a MissLog,
    cpus: usize,
    start_ns: u64,
    end_ns: u64,
    /// The number of the first page with a miss.
    first: u32,
    /// Of each page from the first on, its place among those with misses.
    places: Vec<u32>,
    /// The memory that each page with misses is dealt to.
    dealt: Vec<NodeId>,
}

/// A miss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// Since the first miss.
    pub at_ns: u64,
    /// The memory beside the CPU that missed.
    pub node: NodeId,
    /// The page, of those with misses.
    pub page: u32,
    /// Of what.
    pub kind: Misses,
}

/// Why a log is none of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum TraceFault {
    /// There is nothing to study.
    #[error("the run had no misses of programs' data; record a program that has some")]
    Empty,
    /// More CPUs than memories can be planned for, or none.
    #[error("pages cannot be dealt over {0} memories; record on a machine of 1 to 64 CPUs")]
    Cpus(usize),
    /// Time goes backwards.
    #[error("miss {index} is at {at_ns} ns, before the one ahead of it at {before_ns} ns; sort the log")]
    OutOfOrder {
        /// Which one, from 0.
        index: usize,
        /// Its time.
        at_ns: u64,
        /// The one ahead of it.
        before_ns: u64,
    },
    /// A CPU that the machine does not have.
    #[error("miss {index} is of CPU {cpu}, and the machine has {cpus}; give the machine of the run")]
    NoSuchCpu {
        /// Which one, from 0.
        index: usize,
        /// As recorded.
        cpu: usize,
        /// How many there are.
        cpus: usize,
    },
}

/// No place: a page without misses.
const NONE: u32 = u32::MAX;
/// What the planner can do.
const MAX_CPUS: usize = 64;

impl<'a> Trace<'a> {
    /// Checks a log of a run on so many CPUs. Pages are dealt over the memories in order of address.
    ///
    /// # Errors
    /// [`TraceFault`].
    pub fn new(log: &'a MissLog, cpus: usize) -> Result<Self, TraceFault> {
        if !(1..=MAX_CPUS).contains(&cpus) {
            return Err(TraceFault::Cpus(cpus));
        }
        let start_ns = log.iter().next().ok_or(TraceFault::Empty)?.at_ns;
        let (mut before_ns, mut first, mut last) = (start_ns, u32::MAX, 0);
        for (index, miss) in log.iter().enumerate() {
            let at_ns = miss.at_ns;
            if at_ns < before_ns {
                return Err(TraceFault::OutOfOrder { index, at_ns, before_ns });
            }
            if miss.cpu >= cpus {
                return Err(TraceFault::NoSuchCpu { index, cpu: miss.cpu, cpus });
            }
            before_ns = at_ns;
            (first, last) = (first.min(miss.page), last.max(miss.page));
        }
        let mut places = vec![NONE; (last - first) as usize + 1];
        log.iter().for_each(|miss| places[(miss.page - first) as usize] = 0);
        let mut dealt = Vec::new();
        for (offset, place) in places.iter_mut().enumerate().filter(|(_, place)| **place != NONE) {
            *place = dealt.len() as u32;
            dealt.push((offset % cpus) as NodeId);
        }
        Ok(Self { log, cpus, start_ns, end_ns: before_ns, first, places, dealt })
    }

    /// The misses, in order of time.
    pub fn events(&self) -> impl Iterator<Item = Event> + '_ {
        self.log.iter().map(|miss| Event {
            at_ns: miss.at_ns - self.start_ns,
            node: miss.cpu as NodeId,
            page: self.places[(miss.page - self.first) as usize],
            kind: match miss.kind {
                MissKind::Tlb => Misses::Tlb,
                MissKind::Cache => Misses::Cache,
            },
        })
    }

    /// How many CPUs there are, and memories.
    pub fn cpus(&self) -> usize {
        self.cpus
    }

    /// How many pages have misses.
    pub fn pages(&self) -> usize {
        self.dealt.len()
    }

    /// From the first miss to the last.
    pub fn length_ns(&self) -> u64 {
        self.end_ns - self.start_ns
    }

    /// The memory that each page is dealt to at first.
    pub fn dealt(&self) -> &[NodeId] {
        &self.dealt
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::log;
    use super::*;

    #[test]
    fn what_is_not_of_a_run_is_refused() {
        let fault = |misses: &[(u64, usize, u32, MissKind)], cpus| {
            Trace::new(&log(misses.iter().copied()), cpus).err().map(|fault| fault.to_string())
        };
        let good = (5, 3, 9, MissKind::Tlb);
        assert_eq!(fault(&[good], 4), None);
        assert_eq!(fault(&[], 4).as_deref(), Some(TraceFault::Empty.to_string().as_str()));
        assert!(fault(&[good], 0).expect("no CPUs").contains("over 0 memories"));
        assert!(fault(&[good], 65).expect("too many").contains("over 65 memories"));
        assert!(fault(&[good], 3).expect("no CPU 3").contains("miss 0 is of CPU 3"));
        let earlier = fault(&[good, (4, 0, 0, MissKind::Tlb)], 4).expect("out of order");
        assert!(earlier.contains("miss 1 is at 4000000 ns"), "{earlier}");
    }

    #[test]
    fn pages_with_misses_are_numbered_and_all_pages_dealt_in_order_of_address() {
        let misses = [(1, 0, 103, MissKind::Tlb), (1, 1, 100, MissKind::Cache), (3, 0, 105, MissKind::Tlb)];
        let log = log(misses);
        let trace = Trace::new(&log, 3).expect("a run");
        assert_eq!(trace.dealt(), [0, 0, 2]);
        let events: Vec<(u64, u32)> = trace.events().map(|event| (event.at_ns, event.page)).collect();
        assert_eq!(events, [(0, 1), (0, 0), (2_000_000, 2)]);
        assert_eq!((trace.pages(), trace.cpus(), trace.length_ns()), (3, 3, 2_000_000));
    }
}
