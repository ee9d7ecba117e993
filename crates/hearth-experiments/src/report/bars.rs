//! Bars: a figure by policy, whole or in parts.

use super::{Comparison, Figure, MEASURES, PolicyRuns, Summary, format};
use crate::Run;
use hearth_report::Measure;
use hearth_report::bars::{CAUSES, Row, bars, cause_color, parted_bar, plain_bar};
use hearth_report::plot::{Axis, legend};
use maud::{Markup, html};

/// How much policies change what is compared, against the first, seed by seed; nothing if there is one alone.
pub(super) fn changes(comparison: &Comparison) -> Markup {
    let Some((base, others)) = comparison.policies.split_first().filter(|(_, others)| !others.is_empty())
    else {
        return html! {};
    };
    let value = |of: &Measure<Summary>, run: &Run| (of.of)(&Summary::of(std::slice::from_ref(run))).mean;
    let change = |of: &Measure<Summary>, policy: &PolicyRuns| {
        let pair = |run: &Run| {
            let of_base = base.runs.iter().find(|other| other.seed == run.seed)?;
            let before = value(of, of_base);
            (before > 0.0).then(|| 100.0 * (value(of, run) / before - 1.0))
        };
        Figure::of(policy.runs.iter().filter_map(pair))
    };
    let rows = |of: &Measure<Summary>| -> Vec<Row<'_>> {
        let row = |policy| change(of, policy);
        let each = others.iter();
        each.map(|policy| Row { name: &policy.name, description: &policy.description, figure: row(policy) })
            .collect()
    };
    let spread = match comparison.seeds.len() {
        1 => "One seed: how much of it is chance is not known.",
        _ => "Means of the changes seed by seed; the thin line is from the least to the greatest.",
    };
    html! {
        section {
            h2 { "Changes against " (base.name) }
            p.hint { "Less is better. " (spread) }
            div.many {
                @for of in MEASURES.iter().filter(|of| of.changes) {
                    figure { h3 { (of.name) } (hearth_report::bars::changes(&rows(of))) }
                }
            }
            dl.policies {
                @for policy in &comparison.policies { dt { (policy.name) } dd { (policy.description) } }
            }
        }
    }
}

/// Mean execution time by policy.
pub(super) fn execution_times(comparison: &Comparison) -> Markup {
    plain_section("Execution time", "mean execution time of the applications, s", comparison, |is| {
        is.execution_s
    })
}

fn plain_section(
    heading: &str,
    unit: &'static str,
    comparison: &Comparison,
    of: fn(&Summary) -> Figure,
) -> Markup {
    let figures = of_each(comparison, |policy| of(&policy.summary));
    html! {
        section {
            h2 { (heading) }
            p.hint { "Less is better. " (compared_with(comparison)) }
            (Bars { unit, figures, show: format::significant }.plain(comparison))
        }
    }
}

/// Misses by policy and cause.
pub(super) fn misses(comparison: &Comparison) -> Markup {
    let bars = Bars {
        unit: "references that left the CPUs' caches, millions",
        figures: of_each(comparison, |policy| policy.summary.misses.scaled(1e-6)),
        show: format::significant,
    };
    html! {
        section {
            h2 { "Cache misses by cause" }
            p.hint { "Less is better. " (compared_with(comparison)) }
            (legend(CAUSES.iter().enumerate().map(|(cause, name)| (cause_color(cause), *name))))
            (bars.render(comparison, |policy, axis| {
                let part = |(cause, figure): (usize, &Figure)| {
                    (CAUSES[cause], figure.mean / 1e6, cause_color(cause))
                };
                parted_bar(policy.summary.causes.iter().enumerate().map(part), axis)
            }))
        }
    }
}

pub(super) fn compared_with(comparison: &Comparison) -> String {
    let base = comparison.base().map_or("", |base| base.name.as_str());
    let spread =
        if comparison.seeds.len() > 1 { " Means; the thin line is the spread over the seeds." } else { "" };
    format!("Changes are against {base}.{spread}")
}

/// A figure of each policy.
pub(super) fn of_each(comparison: &Comparison, figure: impl Fn(&PolicyRuns) -> Figure) -> Vec<Figure> {
    comparison.policies.iter().map(figure).collect()
}

/// A bar for each policy.
pub(super) struct Bars {
    pub(super) unit: &'static str,
    /// Lengths, policy by policy.
    pub(super) figures: Vec<Figure>,
    pub(super) show: fn(f64) -> String,
}

impl Bars {
    /// Bars in one piece, the first in another colour.
    pub(super) fn plain(&self, comparison: &Comparison) -> Markup {
        self.rows(comparison, |index, axis| plain_bar(index, &self.figures[index], axis))
    }

    /// A row for each policy, in which `bar` draws.
    pub(super) fn render(
        &self,
        comparison: &Comparison,
        bar: impl Fn(&PolicyRuns, &Axis) -> Markup,
    ) -> Markup {
        self.rows(comparison, |index, axis| bar(&comparison.policies[index], axis))
    }

    fn rows(&self, comparison: &Comparison, bar: impl Fn(usize, &Axis) -> Markup) -> Markup {
        let rows: Vec<Row<'_>> = comparison
            .policies
            .iter()
            .zip(&self.figures)
            .map(|(policy, &figure)| Row { name: &policy.name, description: &policy.description, figure })
            .collect();
        bars(self.unit, &rows, self.show, bar)
    }
}
