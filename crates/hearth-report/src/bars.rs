//! Bars: a figure for each of those compared, whole or in parts.

use crate::plot::{Axis, color, number, x_axis};
use crate::{Figure, format};
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
    chart(unit, "bars", rows, &axis, |index, row| {
        let against = html! {
            @if index > 0 { small { (change(row.figure.change_percent(&rows[0].figure))) } }
        };
        row.render(index, show, &bar(index, &axis), &against, &axis)
    })
}

/// How much each row differs, in percent: from none to the left or to the right, with the spread.
pub fn changes(rows: &[Row<'_>]) -> Markup {
    // A change by next to nothing looks so.
    let (low, high) = rows
        .iter()
        .fold((-1f64, 1f64), |(low, high), row| (low.min(row.figure.low), high.max(row.figure.high)));
    let room = 0.05 * (high - low);
    let axis = Axis::between(low - room, high + room);
    let zero = axis.percent(0.0);
    let bar = |row: &Row<'_>| {
        let end = axis.percent(row.figure.mean);
        let colour = if row.figure.mean <= 0.0 { "var(--good)" } else { "var(--bad)" };
        html! {
            div.change style={
                "left:" (number(zero.min(end))) "%;width:" (number((end - zero).abs())) "%;background:" (colour)
            } {}
        }
    };
    chart("change, %", "bars changes", rows, &axis, |index, row| {
        row.render(index, format::change, &bar(row), &html! {}, &axis)
    })
}

/// Rows over a grid, with their axis.
fn chart<'a>(
    unit: &str,
    class: &str,
    rows: &'a [Row<'a>],
    axis: &Axis,
    render: impl Fn(usize, &'a Row<'a>) -> Markup,
) -> Markup {
    let is_zero = |tick: f64| axis.low < 0.0 && tick == 0.0;
    html! {
        div class=(class) {
            div.grid style={ "grid-row:1 / span " (rows.len()) } {
                @for &tick in &axis.ticks { i.zero[is_zero(tick)] style={ "left:" (number(axis.percent(tick))) "%" } {} }
            }
            @for (index, row) in rows.iter().enumerate() { (render(index, row)) }
            (x_axis(axis))
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
    /// The row of this index: its name, its bar, and its figure with something below.
    fn render(
        &self,
        index: usize,
        show: fn(f64) -> String,
        bar: &Markup,
        below: &Markup,
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
                (below)
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
