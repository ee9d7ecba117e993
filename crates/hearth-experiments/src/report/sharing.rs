//! Parallel programs that share a machine under several schedulers: figure 13 of Chandra, Devine, Verghese,
//! Gupta and Rosenblum, "Scheduling and Page Migration for Multiprocessor Compute Servers" (ASPLOS 1994), for
//! our runs, and what each program came to.

use super::bars::{Bars, compared_with};
use super::{Comparison, Figure, Findings, PolicyRuns, format};
use crate::Run;
use crate::numa::response;
use crate::parallel::sections_change;
use hearth_sim::measure::ApplicationResult;
use maud::{Markup, html};
use std::fmt::Write;

/// Whether all programs of the workload have a parallel section.
fn is_parallel(comparison: &Comparison) -> bool {
    let of_run = |run: &Run| run.result.applications.iter().all(|application| application.parallel.is_some());
    comparison.policies.len() > 1 && comparison.policies.iter().flat_map(|policy| &policy.runs).all(of_run)
}

/// A measure of each policy's runs against the base's of the same seed.
fn against(comparison: &Comparison, measure: impl Fn(&Run, &Run) -> f64) -> Vec<Figure> {
    let base = comparison.base().map(|base| base.runs.as_slice()).unwrap_or_default();
    let of_policy = |policy: &PolicyRuns| {
        let pairs =
            policy.runs.iter().filter_map(|run| Some((run, base.iter().find(|b| b.seed == run.seed)?)));
        Figure::of(pairs.map(|(run, base)| measure(run, base)))
    };
    comparison.policies.iter().map(of_policy).collect()
}

/// What a run came to against the base's, in percent.
type Ratio = fn(&Run, &Run) -> f64;

fn sections(run: &Run, base: &Run) -> f64 {
    100.0 + sections_change(run, base).unwrap_or_default()
}

fn totals(run: &Run, base: &Run) -> f64 {
    100.0 * response(&run.result, &base.result).mean
}

/// Bars, for a page; nothing if there are other programs.
pub(super) fn section(comparison: &Comparison) -> Markup {
    if !is_parallel(comparison) {
        return html! {};
    }
    let measures: [(&str, &str, Ratio); 2] = [
        ("Parallel sections", "time in the parallel section, % of the base's", sections),
        ("Whole programs", "execution time, % of the base's", totals),
    ];
    html! {
        div.pair {
            @for (title, unit, measure) in measures {
                section {
                    h2 { (title) }
                    p.hint { "The mean of the programs' own ratios. " (compared_with(comparison)) }
                    @let bars = Bars { unit, figures: against(comparison, measure), show: format::significant };
                    (bars.plain(comparison))
                }
            }
        }
    }
}

/// The programs of each workload, a line each, as Markdown.
pub(super) fn markdown(findings: &Findings<'_>) -> String {
    let mut out = String::new();
    for comparison in findings.comparisons().iter().filter(|comparison| is_parallel(comparison)) {
        let names: Vec<&str> = comparison.policies.iter().map(|policy| policy.name.as_str()).collect();
        let _ = writeln!(out, "\n## {}\n", comparison.workload);
        let _ = writeln!(out, "Seconds in the parallel section, and in all.\n\n| | {} |", names.join(" | "));
        let _ = writeln!(out, "|---|{}", "--:|".repeat(names.len()));
        for (index, name) in comparison.applications().into_iter().enumerate() {
            let cell = |policy: &PolicyRuns| {
                let seconds = |of: fn(&ApplicationResult) -> u64| {
                    let runs = policy.runs.iter().map(|run| &run.result.applications[index]);
                    format::significant(Figure::of(runs.map(|one| of(one) as f64 / 1e9)).mean)
                };
                let inside = seconds(|one| one.parallel.unwrap_or_default().ns);
                format!("{inside} / {}", seconds(|one| one.execution_ns))
            };
            let cells: Vec<String> = comparison.policies.iter().map(cell).collect();
            let _ = writeln!(out, "| {name} | {} |", cells.join(" | "));
        }
        for (what, measure) in [("parallel sections", sections as Ratio), ("in all", totals)] {
            let cells: Vec<String> = against(comparison, measure)
                .iter()
                .map(|figure| format::spread(figure, format::significant))
                .collect();
            let _ = writeln!(out, "| *{what}, % of {}* | {} |", names[0], cells.join(" | "));
        }
    }
    out
}
