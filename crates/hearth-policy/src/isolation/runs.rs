//! Runs, of stretches as they come: what a planner of isolation is told where CPUs are counted one by one.
//!
//! ```text
//!            kept       told now, and sampled     too new
//! CPU 0   |   |    a    | a  |  a  |   a   |     |
//! CPU 1   |  idle  |  c  |    d      | idle      .           an idle CPU is told of when it is asked
//!                  from                    until
//! ```
//!
//! A stretch becomes a sample when all that ran beside it is told. A CPU tells of itself every few
//! milliseconds, so samples of one task are added up until they are long enough to be a run.

use super::LEAST_INSTRUCTIONS;
use super::side_by_side::{Sample, Stretch, samples};
use crate::snapshot::{Run, Snapshot};
use std::collections::BTreeMap;

/// Where runs come from.
pub trait Counting: Send {
    /// The runs that ended since the last time, of tasks of the snapshot. It has its classes already.
    ///
    /// # Errors
    /// Why nobody counts any more.
    fn runs(&mut self, snapshot: &Snapshot) -> Result<Vec<Run>, String>;
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct Runs {
    domains: Vec<Vec<usize>>,
    kept: Vec<Stretch>,
    /// Stretches that began before are sampled, or lost.
    from_ns: u64,
    sums: BTreeMap<i32, Sum>,
}

/// Samples of a task on one CPU, added up.
#[derive(Clone, Copy, Debug)]
struct Sum {
    run: Run,
    /// Co-runners, times cycles.
    others: f64,
}

impl Runs {
    /// For CPUs that are in these cache domains.
    pub fn new(domains: Vec<Vec<usize>>) -> Self {
        Self { domains, ..Self::default() }
    }

    /// Takes in stretches, and tells the runs that are complete. All stretches that began before `until_ns` and
    /// have ended are among them or were before; `idle` CPUs have been so since, up to now.
    pub fn take(&mut self, told: &[Stretch], idle: &[Stretch], until_ns: u64) -> Vec<Run> {
        self.kept.extend(told);
        let known: Vec<Stretch> = self.kept.iter().chain(idle).copied().collect();
        let mut runs = Vec::new();
        for domain in &self.domains {
            let begun = |sample: &Sample| (self.from_ns..until_ns).contains(&sample.start_ns);
            for sample in samples(&known, domain).into_iter().filter(begun) {
                let sum = self.sums.entry(sample.tid).or_insert_with(|| Sum::of(&sample));
                // Who moves begins anew: its misses were warm ones elsewhere.
                if sum.run.cpu != sample.cpu {
                    *sum = Sum::of(&sample);
                }
                sum.add(&sample);
                if sum.run.instructions >= LEAST_INSTRUCTIONS {
                    runs.push(sum.run());
                    self.sums.remove(&sample.tid);
                }
            }
        }
        self.from_ns = self.from_ns.max(until_ns);
        self.kept.retain(|stretch| stretch.end_ns() > until_ns);
        runs
    }

    /// Forgets all tasks but these.
    pub fn keep_only(&mut self, is_there: impl Fn(i32) -> bool) {
        self.sums.retain(|tid, _| is_there(*tid));
    }
}

impl Sum {
    fn of(sample: &Sample) -> Self {
        Self { run: Run { tid: sample.tid, cpu: sample.cpu, ..Run::default() }, others: 0.0 }
    }

    fn add(&mut self, sample: &Sample) {
        let of_others: f64 = sample.beside.iter().map(|(_, misses)| misses).sum();
        let run = &mut self.run;
        run.cycles += sample.cycles as u64;
        run.instructions += sample.instructions as u64;
        run.misses += sample.misses as u64;
        run.others_misses += of_others as u64;
        self.others += sample.busy_beside * sample.cycles;
    }

    /// Write-backs are not counted.
    fn run(&self) -> Run {
        let Run { cycles, misses, others_misses, .. } = self.run;
        let others = (self.others / cycles.max(1) as f64).round() as u32;
        Run { transfers: misses, others_transfers: others_misses, others, ..self.run }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isolation::side_by_side::IDLE;
    use proptest::prelude::*;

    const MS: u64 = 1_000_000;

    fn stretch(cpu: usize, tid: i32, start_ms: u64, ms: u64) -> Stretch {
        let ns = ms * MS;
        let who = if tid == 0 { IDLE } else { 1 };
        Stretch {
            cpu,
            who,
            tid,
            start_ns: start_ms * MS,
            ns,
            cycles: 3 * ns,
            instructions: 2 * ns,
            misses: ns / 100,
        }
    }

    #[test]
    fn stretches_add_up_to_a_run_of_ten_million_instructions() {
        let mut runs = Runs::new(vec![vec![0, 1]]);
        let told: Vec<Stretch> =
            (0..10).flat_map(|at| [stretch(0, 7, at * 2, 2), stretch(1, 8, at * 2, 2)]).collect();
        let found = runs.take(&told, &[], 20 * MS);
        let of_7: Vec<&Run> = found.iter().filter(|run| run.tid == 7).collect();
        // Three stretches of 4 million: 20 ms have three runs, and a stretch is left.
        assert_eq!(of_7.len(), 3);
        let run = of_7[0];
        assert_eq!((run.cycles, run.instructions, run.misses), (18 * MS, 12 * MS, 60_000));
        assert_eq!((run.others, run.others_misses, run.transfers), (1, 60_000, 60_000));
        assert!(run.is_possible());
    }

    #[test]
    fn an_idle_neighbour_is_known_before_its_stretch_ends() {
        let told: Vec<Stretch> = (0..10).map(|at| stretch(0, 7, at * 2, 2)).collect();
        let mut runs = Runs::new(vec![vec![0, 1]]);
        assert_eq!(runs.clone().take(&told, &[], 20 * MS), []);
        let found = runs.take(&told, &[stretch(1, 0, 0, 25)], 20 * MS);
        assert_eq!(found.len(), 3);
        assert!(found.iter().all(|run| run.others == 0 && run.others_misses == 0));
    }

    #[test]
    fn who_moves_begins_anew() {
        let mut runs = Runs::new(vec![vec![0], vec![1]]);
        let told = [stretch(0, 7, 0, 4), stretch(1, 7, 4, 4)];
        assert_eq!(runs.take(&told, &[], 9 * MS), []);
        assert_eq!(runs.take(&[stretch(1, 7, 9, 4)], &[], 20 * MS)[0].instructions, 16 * MS);
    }

    proptest! {
        /// However stretches arrive, none counts twice, and none is lost that is told in time.
        #[test]
        fn what_is_told_in_parts_is_what_is_told_at_once(
            lengths in prop::collection::vec(1u64..4, 1..60),
            cuts in prop::collection::btree_set(1u64..180, 0..10),
        ) {
            let mut all = Vec::new();
            for cpu in 0..2 {
                let mut at = 0;
                for (place, &ms) in lengths.iter().enumerate() {
                    let tid = [7, 8, 0][(place + cpu) % 3];
                    all.push(stretch(cpu, tid * (1 + cpu as i32), at, ms));
                    at += ms;
                }
            }
            let end = 4 * 60 * MS;
            let whole = Runs::new(vec![vec![0, 1]]).take(&all, &[], end);
            let mut runs = Runs::new(vec![vec![0, 1]]);
            let mut found = Vec::new();
            let mut before = 0;
            for cut in cuts.into_iter().map(|cut| cut * MS).chain([end]) {
                // All that has ended is told, and what began some milliseconds ago has.
                let told: Vec<Stretch> =
                    all.iter().filter(|one| (before..cut).contains(&(one.start_ns + one.ns))).copied().collect();
                found.extend(runs.take(&told, &[], cut.saturating_sub(4 * MS)));
                before = cut;
            }
            found.extend(runs.take(&[], &[], end));
            let sorted = |mut runs: Vec<Run>| {
                runs.sort_by_key(|run| (run.tid, run.cycles, run.others_misses));
                runs
            };
            prop_assert_eq!(sorted(found), sorted(whole));
        }
    }
}
