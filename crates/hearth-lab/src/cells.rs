//! Figures in the cells of tables: means, with the spread over the seeds.

use comfy_table::{Cell, Color};
use hearth_command::table::number;
use hearth_report::{Figure, format};

/// The mean, and below it the spread over the seeds if there is one.
pub fn spread(figure: &Figure, show: impl Fn(f64) -> String) -> Cell {
    let mean = show(figure.mean);
    let (low, high) = (show(figure.low), show(figure.high));
    number(if low == high { mean } else { format!("{mean}\n{low}..{high}") })
}

/// A count without its spread.
pub fn count(figure: &Figure) -> Cell {
    number(format::count(figure.mean))
}

/// A change against the base: green where it is less, as less time and fewer misses are better.
pub fn change(figure: &Figure, base: Option<&Figure>) -> Cell {
    let Some(base) = base else { return number(String::new()) };
    let percent = figure.change_percent(base);
    let cell = number(format::change(percent));
    match percent {
        ..-0.5 => cell.fg(Color::Green),
        0.5.. => cell.fg(Color::Red),
        _ => cell,
    }
}
