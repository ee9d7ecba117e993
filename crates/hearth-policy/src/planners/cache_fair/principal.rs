//! A cache-fair task: what it did, what it should have done, and the factor of its share that follows.
//!
//! The *deficit* `D` is what it should have done less what it did, in instructions, since it was first
//! scheduled. In a period of `N` nominal cycles, which is as many as its share would be if nobody changed it,
//! it should complete `fair_ipc N`, and completes `factor ipc N`. So the next period ends without a deficit if
//!
//! ```text
//! factor = (fair_ipc N + D) / (ipc N)          ipc: that of the last period
//! ```
//!
//! `N` is the time of 50 million fair instructions, but no shorter than the last period was: plans come step
//! by step, and a period that lasts longer than it was made for would overshoot, each by more than the one
//! before.
//!
//! A factor has bounds, and within them a task may never come even. So `D` is kept within what one period at a
//! bound makes up for: what is beyond that is forgotten. Otherwise a task that suffered for long would be
//! paid for long after nobody disturbs it any more.

use super::{Rule, Standing, WHOLE_PERMILLE};
use crate::isolation::{Confidence, Estimate, Estimator, MOST_ERROR};
use crate::snapshot::{Run, Task};
use std::collections::VecDeque;
use std::ops::RangeInclusive;

/// Samples are kept for so many times as many as it takes: so long does a task wait for co-runners that differ.
const SAMPLES_KEPT: usize = 5;

/// Misses this many standard deviations off the line surprise, and so do cycles beside misses that are as far off
/// what they were, and by more than an estimate may be.
const SURPRISE: f64 = 3.0;

/// So many runs in succession that surprise are another phase of the program.
const SURPRISES: u32 = 3;

/// See the module.
#[derive(Debug)]
pub(super) struct Principal {
    group: u64,
    /// CPU time that it had had: one that has had less is another task of the same id.
    pub ran_ns: u64,
    /// The factor that it wants of its share.
    pub factor: f64,
    /// The factor in force since the last plan.
    pub share_permille: u32,
    /// Whether others ran or waited where it is, at the last plan.
    pub is_contested: bool,
    estimate: Estimate,
    /// There was none before that is acted on, and its factor does not follow from it yet.
    is_new: bool,
    sampling: Sampling,
    /// So many runs in succession have surprised.
    surprises: u32,
    period: Period,
    /// Of the last whole period.
    ipc: f64,
    deficit: f64,
    given_cycles: f64,
}

/// What a task did since its share was last set.
#[derive(Clone, Copy, Debug, Default)]
struct Period {
    instructions: f64,
    cycles: f64,
    nominal_cycles: f64,
}

/// Whether a task is sampled.
#[derive(Debug)]
enum Sampling {
    /// Its estimate is known from elsewhere.
    Never,
    /// It is, with the latest samples, so many of them new since it was last estimated.
    On { samples: VecDeque<Run>, new: usize },
    /// It was, so many instructions ago.
    Off { instructions: u64 },
}

impl Sampling {
    fn begin() -> Self {
        Self::On { samples: VecDeque::new(), new: 0 }
    }
}

impl Principal {
    pub fn new(task: &Task, known: Option<&Estimate>, is_contested: bool) -> Self {
        Self {
            group: task.group,
            ran_ns: task.ran_ns,
            factor: 1.0,
            share_permille: WHOLE_PERMILLE,
            is_contested,
            estimate: known.copied().unwrap_or_default(),
            is_new: false,
            sampling: if known.is_some() { Sampling::Never } else { Sampling::begin() },
            surprises: 0,
            period: Period::default(),
            ipc: 0.0,
            deficit: 0.0,
            given_cycles: 0.0,
        }
    }

    /// Whether it is this task, and not one before it that had the same id.
    pub fn is(&self, task: &Task) -> bool {
        self.group == task.group && self.ran_ns <= task.ran_ns
    }

    pub fn standing(&self, tid: i32) -> Standing {
        Standing {
            tid,
            group: self.group,
            ipc: if self.ipc > 0.0 { self.ipc } else { self.period.ipc() },
            fair_ipc: self.estimate.fair_ipc,
            share_permille: self.share_permille,
            given_cycles: self.given_cycles as i64,
            confidence: self.estimate.confidence,
        }
    }

    /// Takes in a run that is possible.
    pub fn learn(&mut self, run: &Run, estimator: &Estimator, rule: &Rule) {
        if run.group == self.group {
            self.account(run);
            self.is_new |= self.sample(run, estimator, rule);
        }
    }

    /// Whether its factor is to be set: a period is over, or it has its first estimate.
    pub fn is_due(&self, rule: &Rule) -> bool {
        self.is_new || self.period.instructions >= rule.adjust_instructions as f64
    }

    fn is_scheduled(&self) -> bool {
        let fair_ipc = self.estimate.fair_ipc;
        self.estimate.confidence == Confidence::Strong && fair_ipc.is_finite() && fair_ipc > 0.0
    }

    fn account(&mut self, run: &Run) {
        let (instructions, cycles) = (run.instructions as f64, run.cycles as f64);
        let nominal = cycles * f64::from(WHOLE_PERMILLE) / f64::from(self.share_permille);
        self.period.instructions += instructions;
        self.period.cycles += cycles;
        self.period.nominal_cycles += nominal;
        self.given_cycles += cycles - nominal;
        if self.is_scheduled() && self.is_contested {
            self.deficit += self.estimate.fair_ipc * nominal - instructions;
        }
    }

    /// Whether there is an estimate now where there was none.
    fn sample(&mut self, run: &Run, estimator: &Estimator, rule: &Rule) -> bool {
        let is_sample = estimator.is_sample(run);
        let is_odd = rule.phases && self.is_odd(run, estimator);
        match &mut self.sampling {
            Sampling::Never => false,
            Sampling::Off { instructions } => {
                *instructions = instructions.saturating_add(run.instructions);
                if *instructions >= rule.resample_instructions {
                    self.sampling = Sampling::begin();
                }
                false
            }
            Sampling::On { samples, new } => {
                if !is_sample || is_odd {
                    return false;
                }
                if samples.len() >= SAMPLES_KEPT * estimator.samples {
                    samples.pop_front();
                }
                samples.push_back(*run);
                *new += 1;
                *new >= estimator.samples && self.estimate(estimator)
            }
        }
    }

    /// Whether a run surprises: by what is known, or, where that is nothing yet, by being unlike the samples, for those
    /// of two phases are on no line. After some in succession what was known of it is not true any more: it has its own
    /// share until that is known anew, of samples from here on.
    fn is_odd(&mut self, run: &Run, estimator: &Estimator) -> bool {
        let surprises = match &self.sampling {
            _ if self.is_scheduled() => surprises_by(&self.estimate, estimator, run),
            Sampling::On { samples, .. } => is_unlike(samples, estimator, run),
            _ => None,
        };
        let Some(is_surprise) = surprises else { return false };
        self.surprises = if is_surprise { self.surprises + 1 } else { 0 };
        if self.surprises >= SURPRISES && !matches!(self.sampling, Sampling::Never) {
            self.sampling = Sampling::begin();
            self.estimate = Estimate::default();
            self.surprises = 0;
            (self.factor, self.deficit) = (1.0, 0.0);
        }
        is_surprise
    }

    /// Ends the sampling, if it gives a strong estimate.
    fn estimate(&mut self, estimator: &Estimator) -> bool {
        let Sampling::On { samples, new } = &mut self.sampling else { return false };
        *new = 0;
        let found = estimator.estimate(samples.make_contiguous());
        let was_scheduled = self.is_scheduled();
        let is_strong = found.confidence == Confidence::Strong;
        if is_strong || !was_scheduled {
            self.estimate = found;
        }
        if is_strong {
            self.sampling = Sampling::Off { instructions: 0 };
        }
        is_strong && !was_scheduled
    }

    /// Sets the factor, and begins a period. `bounds`: what factors it can have.
    pub fn adjust(&mut self, rule: &Rule, bounds: RangeInclusive<f64>) {
        let last = std::mem::take(&mut self.period);
        self.ipc = last.ipc();
        self.is_new = false;
        if !self.is_scheduled() || self.ipc <= 0.0 {
            return;
        }
        let fair_ipc = self.estimate.fair_ipc;
        let nominal = last.nominal_cycles.max(rule.adjust_instructions as f64 / fair_ipc);
        let made_up = |factor: f64| (factor * self.ipc - fair_ipc) * nominal;
        let most = made_up(*bounds.end()).max(0.0);
        let least = made_up(*bounds.start()).min(0.0);
        self.deficit = self.deficit.clamp(least, most);
        let factor = (fair_ipc * nominal + self.deficit) / (self.ipc * nominal);
        self.factor = factor.clamp(*bounds.start(), *bounds.end());
    }
}

impl Period {
    fn ipc(&self) -> f64 {
        if self.cycles > 0.0 { self.instructions / self.cycles } else { 0.0 }
    }
}

/// Whether what a run took beside its misses is far off what samples did in the middle. Nothing if it is no sample, or
/// there are none.
fn is_unlike(samples: &VecDeque<Run>, estimator: &Estimator, run: &Run) -> Option<bool> {
    let mut usual: Vec<f64> = samples.iter().map(|sample| estimator.own_cycles(sample)).collect();
    usual.sort_unstable_by(f64::total_cmp);
    let middle = usual.get(usual.len() / 2).filter(|_| estimator.is_sample(run))?;
    Some((estimator.own_cycles(run) - middle).abs() > MOST_ERROR * middle)
}

/// Whether what a run took beside its misses is far off what it did, or its misses are far off the line, as it is
/// known and as misses come one by one. Nothing if that cannot be told of so short a run: the misses of one that is
/// no sample are those of a cold cache, and of one half as long nothing is sure.
fn surprises_by(estimate: &Estimate, estimator: &Estimator, run: &Run) -> Option<bool> {
    let line = estimate.line?;
    if run.instructions < estimator.least_instructions / 2 {
        return None;
    }
    let usual = estimate.own_cycles;
    let allowed = (SURPRISE * estimate.own_cycles_spread).max(MOST_ERROR * usual);
    if (estimator.own_cycles(run) - usual).abs() > allowed {
        return Some(true);
    }
    let others = run.per_cycle(run.others_misses);
    let counted = (run.misses as f64).sqrt() / run.cycles as f64;
    let deviation = line.residual.hypot(line.error_at(others)).hypot(counted);
    let is_off = (run.per_cycle(run.misses) - line.at(others)).abs() > SURPRISE * deviation;
    estimator.is_sample(run).then_some(is_off)
}
