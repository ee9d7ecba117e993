//! Figures in the cells of tables: means, with the spread over the seeds.

use comfy_table::{Attribute, Cell, Color, Table};
use hearth_command::table::{number, table};
use hearth_report::measure::standing;
use hearth_report::{Figure, Measure, format};

/// The mean, and below it the spread over the seeds if there is one.
pub fn spread(figure: &Figure, show: impl Fn(f64) -> String) -> Cell {
    let mean = show(figure.mean);
    let (low, high) = (show(figure.low), show(figure.high));
    number(if low == high { mean } else { format!("{mean}\n{low}..{high}") })
}

/// A table of measures, a row for each name; changes are against the first.
pub fn measures_of<S>(head: &str, measures: &[Measure<S>], rows: &[(&str, &S)]) -> Table {
    let measures = standing(measures, &rows.iter().map(|(_, is)| *is).collect::<Vec<_>>());
    let mut header = vec![format!("\n{head}")];
    for measure in &measures {
        header.push(measure.header());
        header.extend(measure.changes.then(|| "\nchange".to_owned()));
    }
    let mut table = table(&header.iter().map(String::as_str).collect::<Vec<_>>(), 1);
    for (index, (name, is)) in rows.iter().enumerate() {
        let base = rows.first().filter(|_| index > 0);
        let mut cells = vec![Cell::new(name).add_attribute(Attribute::Bold)];
        for measure in &measures {
            let figure = measure.figure(is);
            // Counts are long enough without their spread.
            cells.push(if measure.unit.is_empty() { count(&figure) } else { spread(&figure, measure.show) });
            if measure.changes {
                cells.push(change(&figure, base.map(|(_, base)| measure.figure(base)).as_ref()));
            }
        }
        table.add_row(cells);
    }
    table
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
