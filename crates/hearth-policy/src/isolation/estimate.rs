//! Estimates of a task, of its runs.

use super::{Bus, Fit, LEAST_INSTRUCTIONS, Line, MOST_ERROR, SAMPLES};
use crate::snapshot::Run;
use serde::{Deserialize, Serialize};

/// What a task would do with a fair part of the cache.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Estimate {
    /// Misses for each cycle; 0 if it cannot be told.
    pub fair_miss_rate: f64,
    /// Its standard error.
    pub fair_miss_rate_error: f64,
    /// Instructions for each cycle; 0 if it cannot be told.
    pub fair_ipc: f64,
    /// Its standard error.
    pub fair_ipc_error: f64,
    /// Runs that it is made of.
    pub samples: usize,
    /// Whether to act on it.
    pub confidence: Confidence,
    /// What its misses grow by with each of its co-runners'.
    pub a: f64,
    /// Its misses for each cycle where its co-runners have none.
    pub b: f64,
    /// The line of `a` and `b` with its errors, if there is one.
    pub line: Option<Line>,
    /// Cycles for each instruction beside its misses: what `c0` is in the derivation.
    pub own_cycles: f64,
    /// Their standard deviation from sample to sample.
    pub own_cycles_spread: f64,
}

/// Whether to act on an estimate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Confidence {
    /// It is as good as was asked.
    Strong,
    /// It is not.
    Weak(Why),
}

impl Default for Confidence {
    fn default() -> Self {
        Self::Weak(Why::FewSamples)
    }
}

/// Why an estimate is weak.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// Fewer than ten runs were long enough.
    FewSamples,
    /// All co-runners missed equally often: there is no line.
    SimilarCoRunners,
    /// `1 - a n` is not above 0 by two standard errors: there may be no rate at which all are equal.
    NoFairPoint,
    /// The fair miss rate is below 0 by more than two standard errors.
    NegativeRate,
    /// Misses would take more time than there is: the bus is not as was said.
    BeyondMemory,
    /// The standard error of the fair instructions per cycle is above [`MOST_ERROR`] of them.
    Imprecise,
}

impl std::fmt::Display for Why {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(match self {
            Self::FewSamples => "too few runs were long enough",
            Self::SimilarCoRunners => "its co-runners miss equally often",
            Self::NoFairPoint => "it may always miss more than its co-runners",
            Self::NegativeRate => "its fair miss rate would be negative",
            Self::BeyondMemory => "its misses would take more time than there is",
            Self::Imprecise => "its samples are too far off the line",
        })
    }
}

/// Estimates with the numbers of the paper, but the bus of this machine.
pub fn estimate(runs: &[Run], bus: Bus, fit: Fit) -> Estimate {
    Estimator { bus, fit, ..Estimator::default() }.estimate(runs)
}

/// How to estimate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimator {
    /// The machine's.
    pub bus: Bus,
    /// How the line is found.
    pub fit: Fit,
    /// Runs that it takes.
    pub samples: usize,
    /// Instructions that a run takes to count.
    pub least_instructions: u64,
}

impl Default for Estimator {
    fn default() -> Self {
        Self {
            bus: Bus::default(),
            fit: Fit::default(),
            samples: SAMPLES,
            least_instructions: LEAST_INSTRUCTIONS,
        }
    }
}

/// What samples say of a task beside others, the line aside.
struct Company {
    /// Co-runners at a time.
    others: f64,
    /// Lines that it moves for each miss, and that its co-runners do together if each misses as often.
    lines_per_miss: f64,
}

impl Estimator {
    /// Whether a run is a sample.
    pub fn is_sample(&self, run: &Run) -> bool {
        run.is_possible() && run.instructions >= self.least_instructions
    }

    /// Estimates of the runs of one task, such as are no samples among them.
    pub fn estimate(&self, runs: &[Run]) -> Estimate {
        let samples: Vec<&Run> = runs.iter().filter(|run| self.is_sample(run)).collect();
        let mut found = Estimate { samples: samples.len(), ..Estimate::default() };
        found.confidence = match self.fill(&samples, &mut found) {
            Ok(()) => Confidence::Strong,
            Err(why) => Confidence::Weak(why),
        };
        found
    }

    fn fill(&self, samples: &[&Run], found: &mut Estimate) -> Result<(), Why> {
        if samples.len() < self.samples {
            return Err(Why::FewSamples);
        }
        let rates: Vec<(f64, f64)> =
            samples.iter().map(|run| (run.per_cycle(run.others_misses), run.per_cycle(run.misses))).collect();
        let line = self.fit.line(&rates).ok_or(Why::SimilarCoRunners)?;
        (found.a, found.b, found.line) = (line.slope, line.intercept, Some(line));
        let company = Company::of(samples);
        (found.fair_miss_rate, found.fair_miss_rate_error) = fair_miss_rate(&line, company.others)?;
        (found.fair_ipc, found.fair_ipc_error) = self.fair_ipc(samples, &company, found)?;
        if found.fair_ipc_error <= MOST_ERROR * found.fair_ipc { Ok(()) } else { Err(Why::Imprecise) }
    }

    /// Cycles for each instruction of a run, beside its misses.
    pub fn own_cycles(&self, run: &Run) -> f64 {
        let own = run.transfers.max(run.misses);
        let lines = run.per_cycle(own.saturating_add(run.others_transfers.max(run.others_misses)));
        let missing = run.per_cycle(run.misses) * self.bus.latency_cycles(lines);
        (1.0 - missing) / run.ipc()
    }

    /// Of the fair miss rate; with its standard error.
    fn fair_ipc(&self, samples: &[&Run], company: &Company, found: &mut Estimate) -> Result<(f64, f64), Why> {
        let mut own_cycles: Vec<f64> = samples.iter().map(|run| self.own_cycles(run)).collect();
        let (own, own_error) = self.fit.middle(&mut own_cycles).ok_or(Why::FewSamples)?;
        (found.own_cycles, found.own_cycles_spread) = (own, own_error * (samples.len() as f64).sqrt());
        let rate = found.fair_miss_rate;
        let lines = rate * company.lines_per_miss;
        let latency = self.bus.latency_cycles(lines);
        let computing = 1.0 - rate * latency;
        if !(own > 0.0 && computing > 0.0) {
            return Err(Why::BeyondMemory);
        }
        let ipc = computing / own;
        let missing_slope = latency + lines * self.bus.latency_slope(lines);
        let of_rate = missing_slope * found.fair_miss_rate_error / computing;
        Ok((ipc, ipc * of_rate.hypot(own_error / own)))
    }
}

/// Equation 2, with its standard error. A rate that is negative by chance is none.
fn fair_miss_rate(line: &Line, others: f64) -> Result<(f64, f64), Why> {
    let slope = 1.0 - line.slope * others;
    if slope <= 2.0 * others * line.slope_error {
        return Err(Why::NoFairPoint);
    }
    let rate = line.intercept / slope;
    let error = line.error_at(others * rate) / slope;
    if rate < -2.0 * error {
        return Err(Why::NegativeRate);
    }
    Ok((rate.max(0.0), error))
}

impl Company {
    fn of(samples: &[&Run]) -> Self {
        let mut counts: Vec<u32> = samples.iter().map(|run| run.others).collect();
        counts.sort_unstable();
        let others = f64::from(counts.get(counts.len() / 2).copied().unwrap_or_default());
        let sum = |count: fn(&Run) -> u64| samples.iter().map(|run| count(run) as f64).sum::<f64>();
        let own = lines_per_miss(sum(|run| run.transfers), sum(|run| run.misses));
        let of_others = lines_per_miss(sum(|run| run.others_transfers), sum(|run| run.others_misses));
        Self { others, lines_per_miss: own + others * of_others }
    }
}

/// Each miss moves a line at least.
fn lines_per_miss(lines: f64, misses: f64) -> f64 {
    if misses > 0.0 { (lines / misses).max(1.0) } else { 1.0 }
}
