//! Axes around a drawing.
//!
//! The drawing is SVG in a square of 1000 by 1000 that is stretched to the room there is, so that
//! it fits a phone and a wide screen; labels are HTML beside it and keep their size.

use crate::format;
use maud::{Markup, html};

/// Length of the sides of the square that is drawn in.
pub const SIDE: f64 = 1000.0;

/// A stretch of numbers, with round ones marked.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// Where it begins.
    pub low: f64,
    /// Where it ends.
    pub high: f64,
    /// The round numbers between.
    pub ticks: Vec<f64>,
}

impl Axis {
    /// From 0 to a round number at or above `most`.
    pub fn from_zero(most: f64) -> Self {
        let step = step(if most > 0.0 { most } else { 1.0 });
        let steps = (most / step - 1e-9).ceil().max(1.0) as u32;
        let ticks: Vec<f64> = (0..=steps).map(|tick| f64::from(tick) * step).collect();
        Self { low: 0.0, high: f64::from(steps) * step, ticks }
    }

    /// From `low` to `high`, whatever they are.
    pub fn between(low: f64, high: f64) -> Self {
        let step = step((high - low).max(f64::MIN_POSITIVE));
        let first = (low / step - 1e-9).ceil() as i64;
        let last = (high / step + 1e-9).floor() as i64;
        Self { low, high, ticks: (first..=last).map(|tick| tick as f64 * step).collect() }
    }

    /// Where a value stands, from 0 to 1.
    pub fn share(&self, value: f64) -> f64 {
        if self.high > self.low { (value - self.low) / (self.high - self.low) } else { 0.0 }
    }

    /// Where a value stands, from 0 to 100.
    pub fn percent(&self, value: f64) -> f64 {
        (self.share(value) * 100.0).clamp(0.0, 100.0)
    }

    /// Where a value stands in the drawing, from the left.
    pub fn x(&self, value: f64) -> f64 {
        self.share(value) * SIDE
    }

    /// Where a value stands in the drawing, from the top.
    pub fn y(&self, value: f64) -> f64 {
        SIDE - self.share(value) * SIDE
    }

    /// The label of a tick.
    pub fn label(&self, tick: f64) -> String {
        let step = self.ticks.get(1).map_or(1.0, |second| second - self.ticks[0]);
        let digits = (-step.log10() - 1e-9).ceil().clamp(0.0, 6.0) as usize;
        // Steps of 2.5 need one digit more than steps of 2.
        let digits =
            if ((step * 10f64.powi(digits as i32)).fract() - 0.5).abs() < 1e-6 { digits + 1 } else { digits };
        if digits == 0 { format::signed_count(tick) } else { format!("{tick:.digits$}") }
    }
}

/// The distance between ticks for about four of them.
fn step(length: f64) -> f64 {
    let rough = length / 4.0;
    let decade = 10f64.powf(rough.log10().floor());
    let factor = match rough / decade {
        ..1.001 => 1.0,
        ..2.001 => 2.0,
        ..2.501 => 2.5,
        ..5.001 => 5.0,
        _ => 10.0,
    };
    factor * decade
}

/// A drawing with its axes.
pub struct Plot<'a> {
    /// What goes up, with its unit.
    pub y_title: &'a str,
    /// What goes right, with its unit.
    pub x_title: &'a str,
    /// What is marked below.
    pub x: &'a Axis,
    /// Labels on the left: where (from 0 at the bottom to 1), and what.
    pub y_labels: Vec<(f64, String)>,
    /// Height in pixels.
    pub height: usize,
    /// What it shows, for those who cannot see it.
    pub description: String,
    /// SVG.
    pub drawing: Markup,
}

impl Plot<'_> {
    /// The labels of a numeric axis.
    pub fn y_labels(axis: &Axis) -> Vec<(f64, String)> {
        axis.ticks.iter().map(|&tick| (axis.share(tick), axis.label(tick))).collect()
    }

    /// The figure as HTML.
    pub fn render(&self) -> Markup {
        let widest =
            self.y_labels.iter().map(|label| label.1.as_str()).max_by_key(|text| text.chars().count());
        html! {
            div.plot {
                div.ytitle.unit { (self.y_title) }
                div.yaxis {
                    b { (widest.unwrap_or_default()) }
                    @for (share, text) in &self.y_labels {
                        span style={ "bottom:" (number(share * 100.0)) "%" } { (text) }
                    }
                }
                div.area style={ "height:" (self.height) "px" } {
                    svg viewBox="0 0 1000 1000" preserveAspectRatio="none" role="img" aria-label=(self.description) {
                        (self.drawing)
                    }
                }
                (x_axis(self.x))
                div.xtitle.unit { (self.x_title) }
            }
        }
    }
}

/// The numbers below a chart.
pub fn x_axis(axis: &Axis) -> Markup {
    html! {
        div.axis {
            @for &tick in &axis.ticks {
                span style={ "left:" (number(axis.percent(tick))) "%" } { (axis.label(tick)) }
            }
        }
    }
}

/// Horizontal lines at the ticks.
pub fn level_lines(axis: &Axis) -> Markup {
    html! {
        @for &tick in &axis.ticks {
            line.scale x1="0" x2="1000" y1=(number(axis.y(tick))) y2=(number(axis.y(tick))) {}
        }
    }
}

/// Colours with what they mean.
pub fn legend<'a>(entries: impl IntoIterator<Item = (String, &'a str)>) -> Markup {
    html! {
        ul.legend {
            @for (color, text) in entries {
                li { i style={ "background:" (color) } {} (text) }
            }
        }
    }
}

/// Things in the order of their colours, with their names.
pub fn legend_in_order<'a>(names: impl IntoIterator<Item = &'a str>) -> Markup {
    legend(names.into_iter().enumerate().map(|(index, name)| (color(index), name)))
}

/// The colour of the thing with this index; they repeat after eight.
pub fn color(index: usize) -> String {
    format!("var(--color-{})", index % 8)
}

/// A coordinate, short.
pub fn number(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_ends_at_a_round_number() {
        let axis = Axis::from_zero(4.6);
        assert_eq!((axis.high, axis.ticks.len()), (6.0, 4));
        assert_eq!(Axis::from_zero(100.0).ticks, [0.0, 25.0, 50.0, 75.0, 100.0]);
        assert_eq!(Axis::from_zero(0.0).low, 0.0);
    }

    #[test]
    fn labels_have_the_digits_that_their_step_needs() {
        let axis = Axis::from_zero(1.0);
        let labels: Vec<String> = axis.ticks.iter().map(|&tick| axis.label(tick)).collect();
        assert_eq!(labels, ["0.00", "0.25", "0.50", "0.75", "1.00"]);
        let axis = Axis::from_zero(8000.0);
        assert_eq!(axis.label(axis.high), "8 000");
    }

    #[test]
    fn values_are_placed_from_the_left_and_from_the_bottom() {
        let axis = Axis::between(10.0, 20.0);
        assert_eq!((axis.x(15.0), axis.y(20.0), axis.percent(30.0)), (500.0, 0.0, 100.0));
    }

    #[test]
    fn coordinates_are_short() {
        assert_eq!(number(12.0), "12");
        assert_eq!(number(0.5), "0.5");
        assert_eq!(number(100.0), "100");
    }
}
