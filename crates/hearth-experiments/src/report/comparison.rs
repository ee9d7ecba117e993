//! The runs of one workload under several policies, side by side.

use super::{Figure, format};
use crate::Run;
use hearth_machine::list::show_list;
use hearth_sim::RunResult;
use hearth_sim::measure::{Planned, Tally};
use serde::Serialize;

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

/// The figures that are compared.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// Mean of the applications' execution times, in seconds.
    pub execution_s: Figure,
    /// References that left the CPUs' caches.
    pub misses: Figure,
    /// The same by cause, in the order of `hearth_hardware::Cause`.
    pub causes: [Figure; 5],
    /// Idle time of all CPU time, in percent.
    pub idle_percent: Figure,
    /// Switches to another task.
    pub switches: Figure,
    /// Starts on another CPU than the last.
    pub cpu_moves: Figure,
    /// Of these, in another cache domain.
    pub domain_moves: Figure,
    /// Of these, on another memory node.
    pub node_moves: Figure,
    /// Mean effective time slice, in milliseconds.
    pub slice_ms: Figure,
}

impl Summary {
    fn of(runs: &[Run]) -> Self {
        let figure = |measure: fn(&RunResult) -> f64| Figure::of(runs.iter().map(|run| measure(&run.result)));
        let count =
            |measure: fn(&Tally) -> u64| Figure::of(runs.iter().map(|run| measure(&run.result.total) as f64));
        let cause =
            |cause: usize| Figure::of(runs.iter().map(|run| run.result.total.counters.causes[cause] as f64));
        Self {
            execution_s: figure(|result| result.mean_execution_ns as f64 / 1e9),
            misses: count(|total| total.counters.misses()),
            causes: std::array::from_fn(cause),
            idle_percent: figure(|result| result.idle_share * 100.0),
            switches: count(|total| total.switches),
            cpu_moves: count(|total| total.cpu_moves),
            domain_moves: count(|total| total.domain_moves),
            node_moves: count(|total| total.node_moves),
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
    /// The policy that the others are compared with.
    pub fn base(&self) -> Option<&PolicyRuns> {
        self.policies.first()
    }

    /// Of the other policies the one with the least execution time.
    pub fn best(&self) -> Option<&PolicyRuns> {
        let time = |policy: &PolicyRuns| policy.summary.execution_s.mean;
        self.policies.iter().skip(1).min_by(|a, b| time(a).total_cmp(&time(b)))
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

    /// What came out, in a sentence.
    pub fn sentence(&self) -> String {
        let workload = &self.workload;
        let Some(base) = self.base() else { return format!("No run of {workload} was finished.") };
        let Some(best) = self.best() else {
            let misses = format::millions(base.summary.misses.mean);
            return format!("{} runs {workload} in {} with {misses} M misses.", base.name, seconds(base));
        };
        let change = best.summary.execution_s.change_percent(&base.summary.execution_s);
        let misses = more_or_fewer(best.summary.misses.change_percent(&base.summary.misses));
        let (best_s, base_s, change_text) = (seconds(best), seconds(base), format::change(change));
        if change < -0.05 {
            return format!(
                "{} runs {workload} in {best_s} against {base_s} under {} ({change_text}), with {misses}.",
                best.name, base.name
            );
        }
        format!(
            "No other policy runs {workload} faster than {}, which takes {base_s}: \
             {} comes nearest with {best_s} ({change_text}) and {misses}.",
            base.name, best.name
        )
    }
}

fn seconds(policy: &PolicyRuns) -> String {
    format!("{} s", format::significant(policy.summary.execution_s.mean))
}

fn more_or_fewer(change: f64) -> String {
    match change {
        ..-0.5 => format!("{:.0} % fewer misses", -change),
        0.5.. => format!("{change:.0} % more misses"),
        _ => "as many misses".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misses_are_told_in_words() {
        assert_eq!(more_or_fewer(-36.3), "36 % fewer misses");
        assert_eq!(more_or_fewer(0.2), "as many misses");
        assert_eq!(more_or_fewer(3.0), "3 % more misses");
    }
}
