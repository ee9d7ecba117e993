//! The runs of one workload under several policies, side by side.

use super::{Figure, format};
use crate::Run;
use hearth_machine::list::show_list;
use hearth_report::bars::CAUSES;
use hearth_report::measure::{self, Measure, Moves, Parts};
use hearth_sim::RunResult;
use hearth_sim::measure::{ApplicationResult, Planned, Tally};
use serde::{Serialize, Serializer};

/// One workload on one machine under several policies. The first policy is what the others are
/// compared with.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// The machine's name.
    pub machine: String,
    /// The machine in a sentence.
    pub machine_description: String,
    /// The workload's name.
    pub workload: String,
    /// Length of the programs; 1 is the paper's size.
    pub scale: f64,
    /// The seeds that were asked for.
    pub seeds: Vec<u64>,
    /// Whether runs are missing because of an interruption or a failure.
    pub partial: bool,
    /// The policies, as given; only those with a finished run.
    pub policies: Vec<PolicyRuns>,
}

/// What was run under one policy.
#[derive(Clone, Debug, Serialize)]
pub struct PolicyRuns {
    /// The policy's name.
    pub name: String,
    /// The policy in a sentence.
    pub description: String,
    /// Means over the seeds.
    pub summary: Summary,
    /// The finished runs by seed; at least one.
    pub runs: Vec<Run>,
}

/// The figures that are compared, as [`MEASURES`] says; causes in the order of `hearth_hardware::Cause`.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs, reason = "MEASURES says what each means")]
pub struct Summary {
    pub cpu_s: Figure,
    pub last_end_s: Figure,
    pub execution_s: Figure,
    pub misses: Figure,
    pub causes: [Figure; 5],
    pub idle_percent: Figure,
    pub moves: Moves,
    pub slice_ms: Figure,
}

/// How many of [`MEASURES`] are results, which affinity can change for who waits for the programs or pays for
/// the machine; the others are what they come from.
pub const RESULTS: usize = 4;

type Of = Measure<Summary>;

const MOVES: [Of; 4] = measure::of_moves();

/// What a summary has.
pub const MEASURES: [Measure<Summary>; 10] = [
    Of::of_unit(
        "cpu_s",
        "CPU time",
        "s",
        "time that tasks of all applications ran, in sum; without applications in the background",
        |is| is.cpu_s,
    )
    .with_change(),
    Of::of_unit(
        "last_end_s",
        "last end",
        "s",
        "from the start until the last application ended; without those in the background",
        |is| is.last_end_s,
    )
    .with_change(),
    Of::of_unit(
        "execution_s",
        "mean time",
        "s",
        "execution time of the workload, as papers have it: the mean of its applications' execution times. An \
         application's time is from its start, which is 0 unless the workload is staggered, until its last task \
         ended",
        |is| is.execution_s,
    ),
    Measure {
        show: format::millions,
        ..Of::of_unit(
            "misses",
            "misses",
            "M",
            "references that left the CPUs' caches: served by memory, or by the cache of another cache domain. \
             What a monitor on the bus would count. Instruction fetches count too. JSON has single ones",
            |is| is.misses,
        )
    }
    .with_change(),
    Measure {
        show: format::tenths,
        ..Of::of_unit(
            "idle_percent",
            "idle",
            "%",
            "time that CPUs had nothing to run, of all CPUs' time until the last task ended",
            |is| is.idle_percent,
        )
    },
    MOVES[0],
    MOVES[1],
    MOVES[2],
    MOVES[3],
    Of::of_unit("slice_ms", "slice", "ms", "mean effective time slice, of those of 1 ms or more", |is| {
        is.slice_ms
    }),
];

/// Of [`MEASURES`] those that are sums.
pub const PARTS: [Parts<Summary>; 1] = [Parts {
    key: "causes",
    of: "misses",
    title: "Cache misses by cause",
    names: &CAUSES,
    figures: |is| &is.causes,
}];

impl AsRef<Moves> for Summary {
    fn as_ref(&self) -> &Moves {
        &self.moves
    }
}

impl Serialize for Summary {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        measure::serialize(&MEASURES, &PARTS, self, serializer)
    }
}

impl Summary {
    pub(super) fn of(runs: &[Run]) -> Self {
        let figure = |measure: fn(&RunResult) -> f64| Figure::of(runs.iter().map(|run| measure(&run.result)));
        let count =
            |measure: fn(&Tally) -> u64| Figure::of(runs.iter().map(|run| measure(&run.result.total) as f64));
        let cause =
            |cause: usize| Figure::of(runs.iter().map(|run| run.result.total.counters.causes[cause] as f64));
        Self {
            cpu_s: figure(cpu_s),
            last_end_s: figure(last_end_s),
            execution_s: figure(|result| result.mean_execution_ns as f64 / 1e9),
            misses: count(|total| total.counters.misses()),
            causes: std::array::from_fn(cause),
            idle_percent: figure(|result| result.idle_share * 100.0),
            moves: Moves {
                switches: count(|total| total.switches),
                cpu: count(|total| total.cpu_moves),
                domain: count(|total| total.domain_moves),
                node: count(|total| total.node_moves),
            },
            slice_ms: figure(|result| result.total.slices.mean_ms()),
        }
    }
}

impl PolicyRuns {
    /// The finished runs of a policy, by seed; `None` if there are none.
    pub fn new(name: &str, description: &str, runs: Vec<Run>) -> Option<Self> {
        let summary = Summary::of(&runs);
        let (name, description) = (name.to_owned(), description.to_owned());
        (!runs.is_empty()).then_some(Self { name, description, summary, runs })
    }

    /// What the planner did in the run of the first seed, in a sentence; nothing if there was none.
    pub fn plans(&self) -> Option<String> {
        let Planned { planner, steps, taken_up, parts, targets, failures, failure, .. } =
            self.runs.first()?.result.planned.as_ref()?;
        let lists: Vec<String> = parts.iter().map(|cpus| show_list(cpus)).collect();
        let parts = match lists.len() {
            0 => "the machine undivided".to_owned(),
            count => format!("{count} parts, CPUs {}", lists.join(" | ")),
        };
        let targets = if *targets > 0 { format!("; tasks and groups: {targets}") } else { String::new() };
        let wrong = failure
            .as_ref()
            .map(|why| format!("; steps that failed: {failures}, first: {why}"))
            .unwrap_or_default();
        Some(format!(
            "{}: planner {planner}; steps: {steps}; plans taken up: {taken_up}, the last: {parts}{targets}{wrong}.",
            self.name
        ))
    }

    /// A figure of one application, found by its name, over the seeds.
    pub fn application(&self, name: &str, measure: impl Fn(&RunResult, usize) -> f64) -> Figure {
        let value = |run: &Run| {
            let index = run.result.applications.iter().position(|application| application.name == name)?;
            Some(measure(&run.result, index))
        };
        Figure::of(self.runs.iter().filter_map(value))
    }
}

impl Comparison {
    /// [`MEASURES`] as they are shown: times in ms where the base, on a machine of today, is done within a second.
    pub fn measures(&self) -> [Measure<Summary>; MEASURES.len()] {
        let is_short = self.base().is_some_and(|base| base.summary.last_end_s.mean < 1.0);
        MEASURES.map(|measure| match measure.unit {
            "s" if is_short => measure.shown_in("ms", 1e3),
            _ => measure,
        })
    }

    /// The columns of [`rows`](Self::rows).
    pub fn header() -> Vec<String> {
        let of_run = ["machine", "workload", "scale", "policy", "seed"].map(str::to_owned);
        of_run.into_iter().chain(measure::header(&MEASURES, &PARTS)).collect()
    }

    /// A row for each run: what it was, and what a summary has.
    pub fn rows(&self) -> Vec<Vec<String>> {
        let about = [self.machine.clone(), self.workload.clone(), self.scale.to_string()];
        let of_run = |name: &str, run: &Run| -> Vec<String> {
            let about = about.iter().cloned().chain([name.to_owned(), run.seed.to_string()]);
            about.chain(measure::row(&MEASURES, &PARTS, &Summary::of(std::slice::from_ref(run)))).collect()
        };
        let of_all = |of: &PolicyRuns| of.runs.iter().map(|run| of_run(&of.name, run)).collect::<Vec<_>>();
        self.policies.iter().flat_map(of_all).collect()
    }

    /// The policy that the others are compared with.
    pub fn base(&self) -> Option<&PolicyRuns> {
        self.policies.first()
    }

    /// The policies that are compared with the base.
    fn others(&self) -> impl Iterator<Item = &PolicyRuns> {
        self.policies.iter().skip(1)
    }

    /// Of the other policies the one with the least CPU time.
    pub fn best(&self) -> Option<&PolicyRuns> {
        let cpu_s = |policy: &PolicyRuns| policy.summary.cpu_s.mean;
        self.others().min_by(|a, b| cpu_s(a).total_cmp(&cpu_s(b)))
    }

    /// The names of the applications.
    pub fn applications(&self) -> Vec<&str> {
        let first = self.base().and_then(|policy| policy.runs.first());
        let applications = first.map(|run| run.result.applications.as_slice()).unwrap_or_default();
        applications.iter().map(|application| application.name.as_str()).collect()
    }

    /// What planners did, a sentence for each policy that has one.
    pub fn plans(&self) -> Vec<String> {
        self.policies.iter().filter_map(PolicyRuns::plans).collect()
    }

    /// What each policy changes against the base, a sentence for each; of one policy alone, its figures.
    pub fn sentences(&self) -> Vec<String> {
        let Some(base) = self.base() else {
            return vec![format!("No run of {} was finished.", self.workload)];
        };
        if self.policies.len() == 1 {
            return vec![base.figures()];
        }
        self.others().map(|policy| Changes::new(policy, base).sentence(&self.seeds)).collect()
    }

    /// The sentence of the best policy.
    pub fn best_sentence(&self) -> Option<String> {
        let (base, best) = self.base().zip(self.best())?;
        Some(Changes::new(best, base).sentence(&self.seeds))
    }
}

impl PolicyRuns {
    fn figures(&self) -> String {
        let Summary { cpu_s, last_end_s, misses, .. } = &self.summary;
        format!(
            "{}: {} s of CPU time, last application done after {} s, {} M misses.",
            self.name,
            format::significant(cpu_s.mean),
            format::significant(last_end_s.mean),
            format::millions(misses.mean)
        )
    }
}

fn cpu_s(run: &RunResult) -> f64 {
    run.awaited().map(|(_, application)| application.tally.cpu_ns as f64 / 1e9).sum()
}

fn last_end_s(run: &RunResult) -> f64 {
    let end_ns = |application: &ApplicationResult| application.start_ns + application.execution_ns;
    run.awaited().map(|(_, application)| end_ns(application) as f64 / 1e9).fold(0.0, f64::max)
}

/// Smaller changes are shown as none.
const SHOWN_PERCENT: f64 = 0.05;

/// What affinity can change: a figure under a policy and under the base.
struct Change {
    /// The figure in the list of those within or beyond the spread.
    name: &'static str,
    /// `17.4 % less CPU time`.
    words: String,
    /// Whether some seed of one has a value among those of the other.
    is_within_spread: bool,
}

impl Change {
    fn new(name: &'static str, is: &Figure, base: &Figure, words: fn(f64) -> String) -> Self {
        let is_within_spread = is.low <= base.high && base.low <= is.high;
        Self { name, words: words(is.change_percent(base)), is_within_spread }
    }
}

/// What a policy changes against another one.
struct Changes<'a> {
    policy: &'a str,
    base: &'a str,
    changes: [Change; 3],
}

impl<'a> Changes<'a> {
    fn new(policy: &'a PolicyRuns, base: &'a PolicyRuns) -> Self {
        let (is, was) = (&policy.summary, &base.summary);
        let changes = [
            Change::new("CPU time", &is.cpu_s, &was.cpu_s, |percent| {
                less_or_more(percent, ["less CPU time", "more CPU time", "as much CPU time"])
            }),
            Change::new("the last end", &is.last_end_s, &was.last_end_s, |percent| {
                let words = ["earlier", "later", "at the same time"];
                format!("last application done {}", less_or_more(percent, words))
            }),
            Change::new("misses", &is.misses, &was.misses, |percent| {
                less_or_more(percent, ["fewer misses", "more misses", "as many misses"])
            }),
        ];
        Self { policy: &policy.name, base: &base.name, changes }
    }

    fn sentence(&self, seeds: &[u64]) -> String {
        let words: Vec<&str> = self.changes.iter().map(|change| change.words.as_str()).collect();
        format!("{} against {}: {}; {}.", self.policy, self.base, words.join(", "), self.spread(seeds))
    }

    fn spread(&self, seeds: &[u64]) -> String {
        if seeds.len() < 2 {
            return "one seed, so the spread is not known".to_owned();
        }
        let seeds = format::seeds(seeds);
        let names = |within: bool| {
            let changes = self.changes.iter().filter(|change| change.is_within_spread == within);
            changes.map(|change| change.name).collect::<Vec<_>>().join(" and ")
        };
        let (beyond, within) = (names(false), names(true));
        match (beyond.as_str(), within.as_str()) {
            (_, "") => format!("all beyond the spread of {seeds}"),
            ("", _) => format!("all within the spread of {seeds}"),
            _ => format!("{beyond} beyond the spread of {seeds}, {within} within it"),
        }
    }
}

/// A change in percent before the word for less or for more, or the words for none.
fn less_or_more(percent: f64, [less, more, same]: [&str; 3]) -> String {
    match percent {
        _ if percent.abs() < SHOWN_PERCENT => same.to_owned(),
        ..0.0 => format!("{:.1} % {less}", -percent),
        _ => format!("{percent:.1} % {more}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(name: &str, cpu_s: [f64; 2], last_end_s: [f64; 2], misses: [f64; 2]) -> PolicyRuns {
        let [cpu_s, last_end_s, misses] = [cpu_s, last_end_s, misses].map(Figure::of);
        let summary = Summary { cpu_s, last_end_s, misses, ..Summary::of(&[]) };
        PolicyRuns { name: name.to_owned(), description: String::new(), summary, runs: Vec::new() }
    }

    fn spread(policy: &PolicyRuns, base: &PolicyRuns) -> String {
        Changes::new(policy, base).sentence(&[1, 2])
    }

    #[test]
    fn a_change_is_beyond_the_spread_where_no_seed_of_one_lies_among_the_other_s() {
        let base = policy("plain", [2.0, 2.2], [1.0, 1.2], [8e6, 8e6]);
        let better = policy("fair", [1.0, 1.1], [0.8, 0.9], [4e6, 5e6]);
        assert_eq!(
            spread(&better, &base),
            "fair against plain: 50.0 % less CPU time, last application done 22.7 % earlier, 43.8 % fewer misses; \
             all beyond the spread of seeds 1 to 2."
        );
        let mixed = policy("both", [1.0, 1.1], [1.1, 1.3], [8e6, 8e6]);
        assert_eq!(
            spread(&mixed, &base),
            "both against plain: 50.0 % less CPU time, last application done 9.1 % later, as many misses; \
             CPU time beyond the spread of seeds 1 to 2, the last end and misses within it."
        );
        assert!(spread(&base, &base).ends_with("all within the spread of seeds 1 to 2."));
    }

    #[test]
    fn the_docs_tell_of_each_measure() {
        let table = measure::markdown(&MEASURES);
        assert!(include_str!("../../../../docs/measures.md").contains(&table), "docs/measures.md:\n{table}");
    }

    #[test]
    fn of_one_seed_the_spread_is_not_known() {
        let base = policy("plain", [2.0, 2.0], [1.0, 1.0], [8e6, 8e6]);
        let sentence = Changes::new(&base, &base).sentence(&[1]);
        assert!(sentence.ends_with("as many misses; one seed, so the spread is not known."), "{sentence}");
    }
}
