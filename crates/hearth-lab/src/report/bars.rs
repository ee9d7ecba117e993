//! Bars: a figure by policy, whole or in parts.

use super::{Comparison, Figure, PolicyRuns, format};
use hearth_page::plot::{Axis, color, legend, number, x_axis};
use maud::{Markup, html};

/// Why references went to memory, in the order of `hearth_hardware::Cause`.
pub(super) const CAUSES: [&str; 5] =
    ["first touch", "replaced by itself", "replaced by another task", "coherence", "after a move"];

/// The colour of a cause: what scheduling can change is warm, the rest is not.
fn cause_color(cause: usize) -> String {
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
        figures: of_each(comparison, |policy| scaled(&policy.summary.misses, 1e-6)),
        show: format::significant,
    };
    html! {
        section {
            h2 { "Cache misses by cause" }
            p.hint { "Less is better. " (compared_with(comparison)) }
            (legend(CAUSES.iter().enumerate().map(|(cause, name)| (cause_color(cause), *name))))
            (bars.render(comparison, |policy, axis| html! {
                @for (cause, figure) in policy.summary.causes.iter().enumerate() {
                    @let millions = figure.mean / 1e6;
                    @if axis.percent(millions) > 0.05 {
                        div.bar.part title={ (CAUSES[cause]) ": " (format::significant(millions)) " M" }
                            style={ "width:" (number(axis.percent(millions))) "%;background:" (cause_color(cause)) } {}
                    }
                }
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

fn scaled(figure: &Figure, factor: f64) -> Figure {
    Figure { mean: figure.mean * factor, low: figure.low * factor, high: figure.high * factor }
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
        self.rows(comparison, |index, axis| {
            let width = number(axis.percent(self.figures[index].mean));
            html! { div.bar.other[index > 0] style={ "width:" (width) "%" } {} }
        })
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
        let figures = &self.figures;
        let axis = Axis::from_zero(figures.iter().map(|figure| figure.high).fold(0.0, f64::max));
        html! {
            div.bars {
                div.grid style={ "grid-row:1 / span " (figures.len()) } {
                    @for &tick in &axis.ticks { i style={ "left:" (number(axis.percent(tick))) "%" } {} }
                }
                @for (index, (policy, figure)) in comparison.policies.iter().zip(figures).enumerate() {
                    (self.row(index, policy, figure, &figures[0], &bar(index, &axis), &axis))
                }
                (x_axis(&axis))
                div.unit { (self.unit) }
            }
        }
    }

    fn row(
        &self,
        index: usize,
        policy: &PolicyRuns,
        figure: &Figure,
        base: &Figure,
        bar: &Markup,
        axis: &Axis,
    ) -> Markup {
        let row = format!("grid-row:{}", index + 1);
        let (low, high) = (axis.percent(figure.low), axis.percent(figure.high));
        html! {
            div.name style=(row) title=(policy.description) {
                @for part in policy.name.split_inclusive('+') { (part) wbr; }
            }
            div.track style=(row) title={ (policy.name) ": " (format::spread(figure, self.show)) } {
                (bar)
                @if figure.low < figure.high {
                    i.spread style={ "left:" (number(low)) "%;width:" (number(high - low)) "%" } {}
                }
            }
            div.value style=(row) {
                b { ((self.show)(figure.mean)) }
                @if index > 0 { small { (change(figure.change_percent(base))) } }
            }
        }
    }
}

/// A change in percent, coloured: less is good.
pub(super) fn change(percent: f64) -> Markup {
    let text = format::change(percent).replace('-', "\u{2212}");
    html! {
        @if percent < -0.5 { span.less { (text) } }
        @else if percent > 0.5 { span.more { (text) } }
        @else { (text) }
    }
}
