//! Judging claims: runs what they need, once, and compares.

use crate::experiment::{Claim, Experiment, Kind, Row};
use crate::isolation::{self, Figures, ScheduleError};
use crate::job::{Job, JobError, Run, Runner};
use crate::setup::Setup;
use crate::variant::{Variant, VariantResult};
use hearth_machine::{Machine, MachineError};
use hearth_policy::PolicyError;
use hearth_report::Figure;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use thiserror::Error;

/// What became of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Verdict {
    /// Every row is within its band.
    #[serde(rename = "holds")]
    Holds,
    /// Some row is not.
    #[serde(rename = "does not hold")]
    DoesNotHold,
    /// Some row could not be measured: its runs were not done, or too short.
    #[serde(rename = "not run")]
    NotRun,
}

impl Verdict {
    /// As printed.
    pub fn text(self) -> &'static str {
        match self {
            Verdict::Holds => "holds",
            Verdict::DoesNotHold => "does not hold",
            Verdict::NotRun => "not run",
        }
    }
}

/// A row with what was measured.
#[derive(Clone, Debug, Serialize)]
pub struct RowResult {
    /// Whom it is about.
    pub name: String,
    /// The paper's figure.
    pub paper: Option<f64>,
    /// The mean over the seeds.
    pub measured: Option<f64>,
    /// Least and greatest over the seeds.
    pub spread: Option<[f64; 2]>,
    /// The band: least and greatest value that holds.
    pub band: [Option<f64>; 2],
    /// Whether the mean is within the band; nothing if not measured.
    pub holds: Option<bool>,
    /// The same without one of the seeds, for each; nothing of fewer than [`LEAST_SEEDS`].
    #[serde(skip)]
    holds_without: Vec<bool>,
}

/// A claim with its verdict.
#[derive(Clone, Debug, Serialize)]
pub struct ClaimResult {
    /// For example `T6`.
    pub id: String,
    /// Input or outcome.
    pub kind: Kind,
    /// In a sentence.
    pub text: String,
    /// The paper's figures, row by row.
    pub paper: Vec<Option<f64>>,
    /// Ours.
    pub measured: Vec<Option<f64>>,
    /// Least and greatest over the seeds, row by row.
    pub spread: Vec<Option<[f64; 2]>>,
    /// Bands, row by row.
    pub band: Vec<[Option<f64>; 2]>,
    /// The verdict.
    pub verdict: Verdict,
    /// Whether the verdict is another one if some seed is left out (of three or more), or under some variant.
    pub fragile: bool,
    /// The verdicts under variants of the experiment, if these were asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub variants: Vec<VariantResult>,
    /// The same, row by row, with names.
    pub rows: Vec<RowResult>,
}

impl ClaimResult {
    /// Adds the verdict under a variant. What was not run turns nothing.
    pub(crate) fn add_variant(&mut self, variant: VariantResult) {
        self.fragile |= self.is_turned_by(&variant);
        self.variants.push(variant);
    }

    /// The variants under which the verdict is another one, by name.
    pub fn turned_by(&self) -> Vec<&str> {
        let turning = self.variants.iter().filter(|variant| self.is_turned_by(variant));
        turning.map(|variant| variant.name.as_str()).collect()
    }

    fn is_turned_by(&self, variant: &VariantResult) -> bool {
        ![self.verdict, variant.verdict].contains(&Verdict::NotRun) && self.verdict != variant.verdict
    }

    /// The verdict as printed.
    pub fn verdict_text(&self) -> &'static str {
        match self.verdict {
            Verdict::Holds if self.fragile => "holds (fragile)",
            Verdict::DoesNotHold if self.fragile => "does not hold (fragile)",
            verdict => verdict.text(),
        }
    }
}

/// So many seeds are needed to ask what becomes of a verdict without one of them.
const LEAST_SEEDS: usize = 3;

/// What [`judge`] found.
#[derive(Default)]
pub struct Judgement {
    /// Each claim, in order.
    pub claims: Vec<ClaimResult>,
    /// Every run that was done.
    pub runs: Vec<Run>,
    /// Runs that failed.
    pub failures: Vec<JobError>,
    /// The figures of groups of programs whose isolation is measured.
    pub figures: Vec<Figures>,
}

/// Why nothing was run.
#[derive(Debug, Error)]
pub enum JudgeError {
    /// The experiment names a machine that does not exist.
    #[error(transparent)]
    Machine(#[from] MachineError),
    /// The experiment names a schedule that is none.
    #[error(transparent)]
    Schedule(#[from] ScheduleError),
    /// The experiment names a policy that does not exist.
    #[error(transparent)]
    Policy(#[from] PolicyError),
}

type Runs = BTreeMap<(Setup, u64), Run>;

/// Does the runs that an experiment's claims need, each once, and judges the claims.
///
/// # Errors
/// [`JudgeError`] before anything is run. Runs that fail are in the result, and the claims that need
/// them are not judged.
pub fn judge(
    experiment: &Experiment,
    scale: f64,
    seeds: &[u64],
    runner: &Runner<'_>,
) -> Result<Judgement, JudgeError> {
    judge_varied(experiment, &Variant::default(), scale, seeds, runner)
}

/// The same under a variant.
pub(crate) fn judge_varied(
    experiment: &Experiment,
    variant: &Variant,
    scale: f64,
    seeds: &[u64],
    runner: &Runner<'_>,
) -> Result<Judgement, JudgeError> {
    let machine = Arc::new(variant.machine(Machine::load(&experiment.machine)?));
    let rows = experiment.claims.iter().flat_map(|claim| &claim.rows);
    let of_rows = rows.flat_map(|row| row.measure.setups(experiment));
    let setups: BTreeSet<Setup> = of_rows.chain(experiment.setups()).collect();
    let mut keys = Vec::new();
    let mut jobs: Vec<Job> = Vec::new();
    for setup in setups {
        for &seed in seeds {
            jobs.push(variant.job(variant.applied(&setup).job(&machine, scale, seed)?));
            keys.push((setup.clone(), seed));
        }
    }
    let mut judgement = Judgement::default();
    let mut results = Runs::new();
    for (key, outcome) in keys.into_iter().zip(runner.run_all(&jobs)) {
        match outcome {
            Some(Ok(run)) => {
                results.insert(key, run.clone());
                judgement.runs.push(run);
            }
            Some(Err(error)) if !error.is_interruption() => judgement.failures.push(error),
            _ => {}
        }
    }
    judgement.claims =
        experiment.claims.iter().map(|claim| claim.judge(experiment, seeds, &results)).collect();
    let run = |setup: &Setup, seed| results.get(&(setup.clone(), seed));
    judgement.figures = isolation::figures(experiment, seeds, run);
    Ok(judgement)
}

impl Row {
    fn judge(&self, experiment: &Experiment, seeds: &[u64], runs: &Runs) -> RowResult {
        let setups = self.measure.setups(experiment);
        let of_seed = |&seed: &u64| {
            let needed: Option<Vec<_>> =
                setups.iter().map(|setup| runs.get(&(setup.clone(), seed))).collect();
            let needed = needed?;
            match self.measure.group().and_then(|group| experiment.group(group)) {
                Some(group) => isolation::value(&self.measure, &needed, group),
                None => self.measure.value(&needed),
            }
        };
        let values: Option<Vec<f64>> = seeds.iter().map(of_seed).collect();
        self.result(&values.unwrap_or_default())
    }

    /// What values mean, one of each seed; none if some seed has none.
    fn result(&self, values: &[f64]) -> RowResult {
        let figure = (!values.is_empty()).then(|| Figure::of(values.iter().copied()));
        let without = |left_out: usize| {
            let others = values[..left_out].iter().chain(&values[left_out + 1..]);
            self.is_within(Figure::of(others.copied()).mean)
        };
        let seeds = if values.len() < LEAST_SEEDS { 0 } else { values.len() };
        RowResult {
            name: self.measure.name(),
            paper: self.paper,
            measured: figure.map(|figure| figure.mean),
            spread: figure.map(|figure| [figure.low, figure.high]),
            band: [self.low, self.high],
            holds: figure.map(|figure| self.is_within(figure.mean)),
            holds_without: (0..seeds).map(without).collect(),
        }
    }

    fn is_within(&self, value: f64) -> bool {
        self.low.is_none_or(|low| value >= low) && self.high.is_none_or(|high| value <= high)
    }
}

impl Claim {
    /// Of its rows, in order: each that is in no set must hold, and of a set as many as are asked for.
    fn verdict(&self, holds: &[Option<bool>]) -> Verdict {
        let of = |set: Option<&str>| {
            let both = self.rows.iter().zip(holds);
            both.filter(move |(row, _)| row.set.as_deref() == set)
                .map(|(_, &holds)| holds)
                .collect::<Vec<_>>()
        };
        let mut verdicts: Vec<Verdict> = of(None).into_iter().map(|holds| verdict_of(&[holds], 1)).collect();
        verdicts.extend(self.at_least.iter().map(|(set, &least)| verdict_of(&of(Some(set)), least)));
        let first = |verdict| verdicts.contains(&verdict).then_some(verdict);
        first(Verdict::DoesNotHold).or_else(|| first(Verdict::NotRun)).unwrap_or(Verdict::Holds)
    }

    /// The verdict, and whether it is another one without some seed.
    fn verdicts(&self, rows: &[RowResult]) -> (Verdict, bool) {
        let verdict = self.verdict(&rows.iter().map(|row| row.holds).collect::<Vec<_>>());
        let seeds = rows.iter().map(|row| row.holds_without.len()).min().unwrap_or_default();
        let without = |seed: usize| rows.iter().map(|row| Some(row.holds_without[seed])).collect::<Vec<_>>();
        (verdict, (0..seeds).any(|seed| self.verdict(&without(seed)) != verdict))
    }

    fn judge(&self, experiment: &Experiment, seeds: &[u64], runs: &Runs) -> ClaimResult {
        let rows: Vec<RowResult> = self.rows.iter().map(|row| row.judge(experiment, seeds, runs)).collect();
        let (verdict, fragile) = self.verdicts(&rows);
        ClaimResult {
            id: self.id.clone(),
            kind: self.kind,
            text: self.text.clone(),
            paper: rows.iter().map(|row| row.paper).collect(),
            measured: rows.iter().map(|row| row.measured).collect(),
            spread: rows.iter().map(|row| row.spread).collect(),
            band: rows.iter().map(|row| row.band).collect(),
            verdict,
            fragile,
            variants: Vec::new(),
            rows,
        }
    }
}

/// Of rows of which `least` must hold.
fn verdict_of(holds: &[Option<bool>], least: usize) -> Verdict {
    let holding = holds.iter().filter(|holds| **holds == Some(true)).count();
    let open = holds.iter().filter(|holds| holds.is_none()).count();
    match holding {
        _ if holding >= least => Verdict::Holds,
        _ if holding + open >= least => Verdict::NotRun,
        _ => Verdict::DoesNotHold,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A claim that something lasts below 10, judged by what each seed measured.
    fn verdicts(values: &[f64]) -> (Verdict, bool) {
        let text = r#"
            id = "X"
            title = "x"
            paper = "x"
            machine = "sgi-4d340"
            baseline = "standard"
            [[claim]]
            id = "X1"
            kind = "input"
            text = "x"
            rows = [{ measure = { of = "execution_time", workload = "oltp", policy = "standard" }, high = 10.0 }]
        "#;
        let experiment = Experiment::parse(text, "x.toml").unwrap();
        let claim = &experiment.claims[0];
        claim.verdicts(&[claim.rows[0].result(values)])
    }

    #[test]
    fn a_verdict_that_one_seed_decides_is_fragile() {
        assert_eq!(verdicts(&[9.0, 9.2, 9.1, 8.8, 9.0]), (Verdict::Holds, false));
        assert_eq!(verdicts(&[11.0, 10.4, 5.0, 11.0, 11.5]), (Verdict::Holds, true));
        assert_eq!(verdicts(&[9.0, 9.0, 9.0, 9.0, 16.0]), (Verdict::DoesNotHold, true));
        assert_eq!(verdicts(&[11.0, 12.0, 10.5, 13.0, 11.0]), (Verdict::DoesNotHold, false));
    }

    #[test]
    fn of_few_seeds_it_is_not_asked_and_without_values_there_is_no_verdict() {
        assert_eq!(verdicts(&[5.0, 14.0]), (Verdict::Holds, false));
        assert_eq!(verdicts(&[]), (Verdict::NotRun, false));
    }
}
