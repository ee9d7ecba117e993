//! The claims of an experiment with their verdicts, as they are told in text and on pages.

use super::{Comparison, PolicyRuns};
use crate::policies::Names;
use crate::{ClaimResult, Experiment, Judgement, Kind, Policies, RowResult, Run, Verdict};
use hearth_machine::Machine;

/// The columns of [`Findings::rows`].
const COLUMNS: [&str; 12] = [
    "experiment",
    "claim",
    "kind",
    "row",
    "paper",
    "measured",
    "low",
    "high",
    "band_low",
    "band_high",
    "holds",
    "verdict",
];

/// A judged experiment.
pub struct Findings<'a> {
    /// The experiment.
    pub experiment: &'a Experiment,
    /// What was found.
    pub judgement: &'a Judgement,
    /// Length of the programs; 1 is the paper's size.
    pub scale: f64,
    /// The seeds.
    pub seeds: &'a [u64],
    /// Whether runs are missing because of an interruption or a failure.
    pub partial: bool,
}

impl Findings<'_> {
    /// Claims with this verdict.
    fn with(&self, verdict: Verdict) -> impl Iterator<Item = &ClaimResult> {
        self.judgement.claims.iter().filter(move |claim| claim.verdict == verdict)
    }

    /// How many claims hold; outcomes and inputs apart.
    pub fn counts(&self) -> String {
        let Experiment { id, paper, .. } = self.experiment;
        let of = |kind: Kind| {
            let all = self.judgement.claims.iter().filter(|claim| claim.kind == kind).count();
            let holding = self.with(Verdict::Holds).filter(|claim| claim.kind == kind).count();
            (all > 0).then(|| format!("{}s {holding} of {all}", kind.text()))
        };
        let counts: Vec<String> = [Kind::Outcome, Kind::Input].into_iter().filter_map(of).collect();
        format!("Claims of {paper} ({id}) that hold: {}", counts.join(", "))
    }

    /// The columns of [`rows`](Self::rows).
    pub fn header() -> Vec<String> {
        COLUMNS.map(str::to_owned).to_vec()
    }

    /// A row for each row of each claim. What a paper does not say or was not measured is empty.
    pub fn rows(&self) -> impl Iterator<Item = Vec<String>> {
        let number = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
        let of_claim = move |claim: &ClaimResult| -> Vec<Vec<String>> {
            let of_row = |row: &RowResult| {
                let about = [&self.experiment.id, &claim.id, claim.kind.text(), &row.name].map(str::to_owned);
                let spread = row.spread.map_or([None; 2], |spread| spread.map(Some));
                let figures = [[row.paper, row.measured], spread, row.band].concat().into_iter().map(number);
                let holds = row.holds.map_or_else(String::new, |holds| holds.to_string());
                about.into_iter().chain(figures).chain([holds, claim.verdict.text().to_owned()]).collect()
            };
            claim.rows.iter().map(of_row).collect()
        };
        self.judgement.claims.iter().flat_map(of_claim)
    }

    /// What came out, in a sentence.
    pub fn sentence(&self) -> String {
        let mut sentence = self.counts();
        for (verdict, words) in [(Verdict::DoesNotHold, "not holding"), (Verdict::NotRun, "not run")] {
            let claims: Vec<&str> = self.with(verdict).map(|claim| claim.id.as_str()).collect();
            if !claims.is_empty() {
                sentence.push_str(&format!("; {words}: {}", claims.join(", ")));
            }
        }
        sentence.push('.');
        sentence
    }

    /// The runs of the workloads that ran under the baseline and other policies, side by side.
    pub fn comparisons(&self) -> Vec<Comparison> {
        let Self { experiment, judgement, .. } = self;
        let mut workloads: Vec<&str> = Vec::new();
        for run in &judgement.runs {
            if !workloads.contains(&run.workload.as_str()) {
                workloads.push(&run.workload);
            }
        }
        let machine =
            Machine::load(&experiment.machine).map(|machine| machine.description).unwrap_or_default();
        let comparison = |workload: &str| Comparison {
            machine: experiment.machine.clone(),
            machine_description: machine.clone(),
            workload: workload.to_owned(),
            scale: self.scale,
            seeds: self.seeds.to_vec(),
            partial: self.partial,
            policies: self.policies(workload),
        };
        let compares = |comparison: &Comparison| {
            comparison.policies.len() > 1 && comparison.policies[0].name == experiment.baseline
        };
        workloads.into_iter().map(comparison).filter(compares).collect()
    }

    /// What ran under each policy, the baseline first. Of several runs with one seed the first
    /// counts: the later ones were done with caches flushed on purpose.
    fn policies(&self, workload: &str) -> Vec<PolicyRuns> {
        let mut policies: Vec<(&str, Vec<Run>)> = Vec::new();
        for run in self.judgement.runs.iter().filter(|run| run.workload == workload) {
            match policies.iter_mut().find(|(name, _)| *name == run.policy) {
                Some((_, runs)) if runs.iter().all(|other| other.seed != run.seed) => runs.push(run.clone()),
                Some(_) => {}
                None => policies.push((&run.policy, vec![run.clone()])),
            }
        }
        policies
            .sort_by_key(|(name, _)| (*name != self.experiment.baseline, Names::from(*name).pages.is_some()));
        policies
            .into_iter()
            .filter_map(|(name, runs)| PolicyRuns::new(name, &description(name), runs))
            .collect()
    }
}

/// Policies in a sentence, if their name can be loaded.
fn description(name: &str) -> String {
    Policies::load(name).map(|policies| policies.description()).unwrap_or_default()
}

/// A value, its spread, and the band that it must be in, as text.
pub mod text {
    use super::super::format::significant;
    use crate::RowResult;

    /// What was measured, if it was.
    pub fn measured(row: &RowResult) -> String {
        row.measured.map_or_else(|| "-".to_owned(), significant)
    }

    /// The paper's figure as the experiment has it, if the paper gives one.
    pub fn paper(row: &RowResult) -> String {
        row.paper.map_or_else(|| "-".to_owned(), |paper| paper.to_string())
    }

    /// The least and the greatest value, if they differ.
    pub fn spread(row: &RowResult) -> Option<String> {
        let [low, high] = row.spread?;
        let (low, high) = (significant(low), significant(high));
        (low != high).then(|| format!("{low} to {high}"))
    }

    /// `-10 to -3`, `at most 1.5`, `at least 85`, or nothing.
    pub fn band(row: &RowResult) -> String {
        match row.band {
            [Some(low), Some(high)] => format!("{low} to {high}"),
            [Some(low), None] => format!("at least {low}"),
            [None, Some(high)] => format!("at most {high}"),
            [None, None] => String::new(),
        }
    }

    /// Whether the row is as it must be.
    pub fn holds(row: &RowResult) -> &'static str {
        match (row.holds, row.band) {
            (_, [None, None]) => "",
            (Some(true), _) => "yes",
            (Some(false), _) => "no",
            (None, _) => "not run",
        }
    }
}
