//! Bars: a figure by policy, whole or in parts.

use super::{Comparison, Figure, PolicyRuns, format};
use hearth_page::plot::{Axis, color, legend, number, x_axis};
use maud::{Markup, html};

/// Why references went to memory, in the order of `hearth_hardware::Cause`.
pub const CAUSES: [&str; 5] =
    ["first touch", "replaced by itself", "replaced by another task", "coherence", "after a move"];

/// The colour of a cause, by its place in [`CAUSES`]: what scheduling can change is warm, the rest is not.
pub fn cause_color(cause: usize) -> String {
    match cause {
        0 => "var(--plain)".to_owned(),
        1 => color(0),
        2 => color(1),
        3 => color(3),
        _ => color(4),
    }
}

/// Mean execution time by policy.
pub(super) fn execution_times(comparison: &Comparison) -> Markup {
    let bars = Bars {
        unit: "mean execution time of the applications, s",
        figures: of_each(comparison, |policy| policy.summary.execution_s),
        show: format::significant,
    };
    html! {
        section {
            h2 { "Execution time" }
            p.hint { "Less is better. " (compared_with(comparison)) }
            (bars.plain(comparison))
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

/// What a bar stands for.
pub struct Row<'a> {
    /// Who: a policy, or a scheduler.
    pub name: &'a str,
    /// In a sentence.
    pub description: &'a str,
    /// How much.
    pub figure: Figure,
}

/// A bar for each row, which `bar` draws; changes are against the first row.
pub fn bars(
    unit: &str,
    rows: &[Row<'_>],
    show: fn(f64) -> String,
    bar: impl Fn(usize, &Axis) -> Markup,
) -> Markup {
    let axis = Axis::from_zero(rows.iter().map(|row| row.figure.high).fold(0.0, f64::max));
    html! {
        div.bars {
            div.grid style={ "grid-row:1 / span " (rows.len()) } {
                @for &tick in &axis.ticks { i style={ "left:" (number(axis.percent(tick))) "%" } {} }
            }
            @for (index, row) in rows.iter().enumerate() {
                (row.render(index, &rows[0].figure, show, &bar(index, &axis), &axis))
            }
            (x_axis(&axis))
            div.unit { (unit) }
        }
    }
}

/// A bar in one piece, the first in another colour.
pub fn plain_bar(index: usize, figure: &Figure, axis: &Axis) -> Markup {
    html! { div.bar.other[index > 0] style={ "width:" (number(axis.percent(figure.mean))) "%" } {} }
}

/// Parts of a bar, each with its name, length and colour; those too short to be seen are left out.
pub fn parted_bar<'a>(parts: impl IntoIterator<Item = (&'a str, f64, String)>, axis: &Axis) -> Markup {
    html! {
        @for (name, length, color) in parts {
            @if axis.percent(length) > 0.05 {
                div.bar.part title={ (name) ": " (format::significant(length)) " M" }
                    style={ "width:" (number(axis.percent(length))) "%;background:" (color) } {}
            }
        }
    }
}

impl Row<'_> {
    fn render(
        &self,
        index: usize,
        base: &Figure,
        show: fn(f64) -> String,
        bar: &Markup,
        axis: &Axis,
    ) -> Markup {
        let (row, figure) = (format!("grid-row:{}", index + 1), &self.figure);
        let (low, high) = (axis.percent(figure.low), axis.percent(figure.high));
        html! {
            div.name style=(row) title=(self.description) {
                @for part in self.name.split_inclusive('+') { (part) wbr; }
            }
            div.track style=(row) title={ (self.name) ": " (format::spread(figure, show)) } {
                (bar)
                @if figure.low < figure.high {
                    i.spread style={ "left:" (number(low)) "%;width:" (number(high - low)) "%" } {}
                }
            }
            div.value style=(row) {
                b { (show(figure.mean)) }
                @if index > 0 { small { (change(figure.change_percent(base))) } }
            }
        }
    }
}

/// A change in percent, coloured: less is good.
pub fn change(percent: f64) -> Markup {
    let text = format::change(percent).replace('-', "\u{2212}");
    html! {
        @if percent < -0.5 { span.less { (text) } }
        @else if percent > 0.5 { span.more { (text) } }
        @else { (text) }
    }
}
