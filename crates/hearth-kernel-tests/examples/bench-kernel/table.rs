//! The figures as tables for a terminal.

use comfy_table::{CellAlignment, LineStyle, Table, TableStyle};

use crate::bench::Bench;
use crate::run::{Cpus, Figures};

const STYLE: TableStyle = TableStyle::new()
    .top_border(LineStyle::none().fill('─').junction('─'))
    .header_separator(LineStyle::none().fill('─').junction('─'))
    .bottom_border(LineStyle::none().fill('─').junction('─'));
const NOTHING: &str = "-";

fn of(figures: &[Figures], cpus: Cpus) -> impl Iterator<Item = &Figures> {
    figures.iter().filter(move |figures| figures.cpus == cpus)
}

fn table(header: Vec<String>) -> Table {
    let mut table = Table::new();
    table.load_style(STYLE).set_header(header);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

fn header(first: String, benches: &[Bench], more: &[&str]) -> Vec<String> {
    let benches = benches.iter().map(|bench| bench.title().to_owned());
    [first].into_iter().chain(benches).chain(more.iter().map(|&title| title.to_owned())).collect()
}

/// What every scheduler took, with ratios to the first.
pub fn costs(cpus: Cpus, benches: &[Bench], figures: &[Figures]) -> Table {
    let title = format!("{} CPUs", cpus.count());
    let mut table = table(header(title, benches, &["start", "resident"]));
    let own = of(figures, cpus).next();
    for row in of(figures, cpus) {
        let mut cells = vec![row.scheduler.clone()];
        for bench in benches {
            let base = own.and_then(|own| own.values.get(bench));
            cells.push(match (row.values.get(bench), base) {
                (Some(value), Some(base)) => format!("{} ({:.3})", bench.show(*value), value / base),
                (Some(value), None) => bench.show(*value),
                (None, _) => NOTHING.to_owned(),
            });
        }
        cells.push(row.start.map_or(NOTHING.to_owned(), |start| format!("{:.3} s", start.as_secs_f64())));
        cells.push(
            row.resident_kib.map_or(NOTHING.to_owned(), |kib| format!("{:.1} MiB", kib as f64 / 1024.0)),
        );
        table.add_row(cells);
    }
    table
}

/// How many times more an operation costs on many CPUs.
pub fn growth(few: Cpus, many: Cpus, benches: &[Bench], figures: &[Figures]) -> Table {
    let title = format!("{} against {} CPUs", many.count(), few.count());
    let mut table = table(header(title, benches, &[]));
    for row in of(figures, few) {
        let Some(other) = of(figures, many).find(|other| other.scheduler == row.scheduler) else { continue };
        let mut cells = vec![row.scheduler.clone()];
        for bench in benches {
            let ratio = other.values.get(bench).zip(row.values.get(bench));
            cells.push(ratio.map_or(NOTHING.to_owned(), |(many, few)| format!("{:.3}", many / few)));
        }
        table.add_row(cells);
    }
    table
}
