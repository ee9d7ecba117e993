//! Cache-fair scheduling (Fedorova, Seltzer and Smith, PACT 2007): a task that the cache gives too little
//! gets more CPU time, so that it completes as much as with a fair part of the cache.
//!
//! ```text
//! before   CPU 0   |  fair task  | best effort |      the fair task is slow: its co-runner on
//!          CPU 1   |        co-runner          |      CPU 1 takes the cache
//! after    CPU 0   |    fair task    | best e. |      share and slice x 1.25, x 0.75
//! ```
//!
//! Each task of the class cache-fair is first *sampled*: ten runs that were long enough give an
//! [`Estimate`] of how fast it would be. Then it is *scheduled*: after every 50
//! million instructions its share is set anew, so that by the end of the next period it will have done what it
//! would have with a fair cache (`principal.rs`). What it gains, tasks of the class best-effort lose, and the
//! other way round (`ledger.rs`). After every billion instructions it is sampled again; the old
//! estimate holds until a new one is strong.
//!
//! What it does not do:
//! - Nothing is compensated as long as an estimate is weak, nor on a CPU where nobody else runs or waits: there
//!   a task has all time that it asks for, and is owed none.
//! - No gain is given that no best-effort task pays for. So two cache-fair tasks cannot push each other up:
//!   what both want of the same best-effort task is scaled down until it keeps its least share.
//! - A loss that no best-effort task can take up spreads by itself over whoever shares the CPU; the share is
//!   set so that the task's part of that CPU falls by its factor. Cache-fair tasks among those are not told.
//! - A plan speaks of 1024 tasks at most. If more are to be, those with the smallest thread ids are spoken of.

mod ledger;
mod principal;

use super::Planner;
use crate::isolation::{Bus, Confidence, Estimate, Estimator, Fit};
use crate::plan::{MAX_TARGETS, Plan};
use crate::snapshot::{Class, Snapshot, Task};
use ledger::{Ledger, Wish};
use principal::Principal;
use std::collections::BTreeMap;

/// From one comparison and adjustment of a task to the next, in its instructions. (Section 4.)
pub const ADJUST_INSTRUCTIONS: u64 = 50_000_000;

/// From an estimate of a task to when it is sampled anew, in its instructions. (Section 4.)
pub const RESAMPLE_INSTRUCTIONS: u64 = 1_000_000_000;

/// A share as the weight gives it.
const WHOLE_PERMILLE: u32 = 1000;

/// What may be varied. The default is the paper's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// How the line through samples is found.
    pub fit: Fit,
    /// Who pays for a gain.
    pub spread: Spread,
    /// Whether a task is sampled anew as soon as its misses have left the line, or its cycles beside them are others;
    /// nothing is made up for then until it is known anew.
    pub phases: bool,
    /// What a task may lose of its share at most, in thousandths; 900 at most.
    pub most_lost_permille: u32,
    /// From one adjustment to the next, in instructions of the task.
    pub adjust_instructions: u64,
    /// From an estimate to the next sampling, in instructions of the task.
    pub resample_instructions: u64,
}

/// Who pays for a gain, and has a loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spread {
    /// All best-effort tasks that may run on the CPU, each by the same part of its share.
    All,
    /// One of them.
    One,
}

impl Rule {
    /// The paper's.
    pub const PAPER: Self = Self {
        fit: Fit::LeastSquares,
        spread: Spread::All,
        phases: false,
        most_lost_permille: 500,
        adjust_instructions: ADJUST_INSTRUCTIONS,
        resample_instructions: RESAMPLE_INSTRUCTIONS,
    };
}

impl Default for Rule {
    fn default() -> Self {
        Self::PAPER
    }
}

/// What is known of a cache-fair task.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Standing {
    /// Its thread id.
    pub tid: i32,
    /// Its control group.
    pub group: u64,
    /// Its instructions for each cycle, in the last period or so far in the first; 0 if it has not run.
    pub ipc: f64,
    /// What they would be with a fair part of the cache; 0 if that cannot be told.
    pub fair_ipc: f64,
    /// Its share, in thousandths of what its weight gives it.
    pub share_permille: u32,
    /// Cycles that it has got beyond its nominal share so far; below 0 if it gave some.
    pub given_cycles: i64,
    /// Whether its estimate is acted on.
    pub confidence: Confidence,
}

/// See the module.
#[derive(Debug)]
pub struct CacheFair {
    estimator: Estimator,
    rule: Rule,
    known: BTreeMap<u64, Estimate>,
    principals: BTreeMap<i32, Principal>,
}

impl CacheFair {
    /// For a machine with this bus, with the paper's number and length of samples.
    pub fn new(bus: Bus, rule: Rule) -> Self {
        Self::sampling(Estimator { bus, fit: rule.fit, ..Estimator::default() }, rule)
    }

    /// With samples as the estimator has them.
    pub fn sampling(estimator: Estimator, rule: Rule) -> Self {
        Self { estimator, rule, known: BTreeMap::new(), principals: BTreeMap::new() }
    }

    /// Groups whose estimates are known, as the paper's are of another experiment (section 5.1): their tasks
    /// are not sampled, even where an estimate is weak.
    #[must_use]
    pub fn with_estimates(self, known: BTreeMap<u64, Estimate>) -> Self {
        Self { known, ..self }
    }

    /// What is known of cache-fair tasks, by thread id.
    pub fn standings(&self) -> impl Iterator<Item = Standing> {
        self.principals.iter().map(|(tid, principal)| principal.standing(*tid))
    }
}

impl Planner for CacheFair {
    fn name(&self) -> &'static str {
        super::CACHE_FAIR
    }

    fn plan(&mut self, snapshot: &Snapshot, plan: &mut Plan) {
        let fair = of_class(snapshot, Class::CacheFair);
        let mut payers = of_class(snapshot, Class::BestEffort);
        payers.retain(|task| task.is_runnable());
        let room = MAX_TARGETS.saturating_sub(plan.tasks.len() + plan.groups.len());
        payers.truncate(room - fair.len().min(room / 2));

        let mut ledger = Ledger::new(snapshot, &payers, &self.rule);
        self.follow(&fair, &ledger);
        self.learn(snapshot);
        let wishes = self.wishes(&fair, &mut ledger, room / 2);
        let shares = ledger.settle(&wishes);
        for (tid, principal) in &mut self.principals {
            principal.share_permille = shares.get(tid).map_or(WHOLE_PERMILLE, |share| share.factor_permille);
        }
        for task in fair.iter().chain(&payers) {
            let Some(share) = shares.get(&task.tid) else { continue };
            let mut target = plan.target(task.tid, task.group).copied().unwrap_or_default();
            target.share_permille = share.share_permille;
            target.slice_permille = share.factor_permille;
            plan.tasks.insert(task.tid, target);
        }
    }
}

/// The tasks of a class that a plan can speak of, by thread id.
fn of_class(snapshot: &Snapshot, class: Class) -> Vec<&Task> {
    let is_of = |task: &&Task| task.tid > 0 && snapshot.classes.get(&task.group) == Some(&class);
    let mut tasks: Vec<&Task> = snapshot.tasks.iter().filter(is_of).collect();
    tasks.sort_unstable_by_key(|task| task.tid);
    tasks.dedup_by_key(|task| task.tid);
    tasks
}

impl CacheFair {
    /// From here on there is a principal for each of these tasks, and no other.
    fn follow(&mut self, fair: &[&Task], ledger: &Ledger) {
        let mut tasks = fair.iter().peekable();
        self.principals.retain(|tid, principal| {
            while tasks.next_if(|task| task.tid < *tid).is_some() {}
            tasks.peek().is_some_and(|task| task.tid == *tid && principal.is(task))
        });
        for task in fair {
            let new = || Principal::new(task, self.known.get(&task.group), ledger.is_contested(task));
            self.principals.entry(task.tid).or_insert_with(new).ran_ns = task.ran_ns;
        }
    }

    fn learn(&mut self, snapshot: &Snapshot) {
        for run in snapshot.runs.iter().filter(|run| run.is_possible()) {
            if let Some(principal) = self.principals.get_mut(&run.tid) {
                principal.learn(run, &self.estimator, &self.rule);
            }
        }
    }

    /// What tasks want that are not alone where they are. Who is due is adjusted first, with what it may get
    /// on the CPU where it is now.
    fn wishes(&mut self, fair: &[&Task], ledger: &mut Ledger, most: usize) -> Vec<Wish> {
        let mut wishes = Vec::new();
        for (task, principal) in fair.iter().zip(self.principals.values_mut()) {
            if principal.is_due(&self.rule) {
                principal.adjust(&self.rule, ledger.bounds(task));
            }
            principal.is_contested = ledger.is_contested(task);
            if principal.is_contested && principal.factor != 1.0 && wishes.len() < most {
                let factor = principal.factor;
                wishes.push(Wish { tid: task.tid, cpu: task.cpu, weight: task.weight, factor });
            }
        }
        wishes
    }
}

#[cfg(test)]
mod machine;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
