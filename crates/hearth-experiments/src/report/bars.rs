//! Bars: a figure by policy, whole or in parts.

use super::{Comparison, Figure, PolicyRuns, Summary, format};
use hearth_report::bars::{CAUSES, Row, bars, cause_color, parted_bar, plain_bar};
use hearth_report::plot::{Axis, legend};
use maud::{Markup, html};

/// CPU time by policy.
pub(super) fn cpu_times(comparison: &Comparison) -> Markup {
    plain_section("CPU time", "CPU time of all applications, s", comparison, |is| is.cpu_s)
}

/// The end of the last application by policy.
pub(super) fn last_ends(comparison: &Comparison) -> Markup {
    let unit = "from the start to the end of the last application, s";
    plain_section("End of the last application", unit, comparison, |is| is.last_end_s)
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
