//! A comparison as text for a terminal.

use super::comparison::{Comparison, SERVED, SchedulerRuns, Summary};
use super::programs;
use crate::cells::{change, count, spread};
use comfy_table::{Attribute, Cell, Table};
use hearth_command::table::{number, table};
use hearth_report::bars::CAUSES;
use hearth_report::{Figure, format};
use std::iter;

/// The tables, programs if asked for, and the summary.
pub fn text(comparison: &Comparison, verbose: bool) -> String {
    let spread = if comparison.seeds.len() > 1 { " (means, with least..greatest)" } else { "" };
    let mut text = format!("{}, {}{spread}\n\n", comparison.title(), format::seeds(&comparison.seeds));
    text.push_str(&format!("{}\n", costs(comparison)));
    let figures = |title: &str, names: &[&str], of: fn(&Summary) -> &[Figure]| {
        format!("\n{title}\n\n{}\n", parts(comparison, names, of))
    };
    text.push_str(&figures("Misses of the first level by who served them, M", &SERVED, |is| &is.served));
    text.push_str(&figures("Misses of all the CPUs' caches by cause, M", &CAUSES, |is| &is.causes));
    if verbose {
        text.push_str(&format!("\nEach program\n\n{}\n", each_program(comparison)));
    }
    text.push_str(&format!("\n{}\n", comparison.sentence()));
    if comparison.partial {
        text.push_str("This is partial: some runs were not finished.\n");
    }
    text
}

/// A column: its header, and its cell from a scheduler's figures and the base's.
type Column = (&'static str, fn(&Summary, Option<&Summary>) -> Cell);

/// The columns; without those for moves that the machine cannot have.
fn columns(comparison: &Comparison) -> Vec<Column> {
    let any = |differs: fn(&Summary) -> bool| comparison.schedulers.iter().any(|runs| differs(&runs.summary));
    let mut columns: Vec<Column> = Vec::new();
    if comparison.is_timed {
        columns.push(("elapsed\nms", |is, _| spread(&is.guest_ms, format::significant)));
        columns.push(("\nchange", |is, base| change(&is.guest_ms, base.map(|base| &base.guest_ms))));
    }
    let costs: [Column; 6] = [
        ("CPU time\nms", |is, _| spread(&is.cpu_ms, format::significant)),
        ("\nchange", |is, base| change(&is.cpu_ms, base.map(|base| &base.cpu_ms))),
        ("kernel\n%", |is, _| number(format!("{:.1}", is.kernel_percent.mean))),
        ("busiest\nCPU ms", |is, _| spread(&is.busiest_ms, format::significant)),
        ("misses\nM", |is, _| spread(&is.misses, format::millions)),
        ("\nchange", |is, base| change(&is.misses, base.map(|base| &base.misses))),
    ];
    columns.extend(costs);
    if !comparison.is_timed {
        columns.push(("guest's\nms", |is, _| spread(&is.guest_ms, format::significant)));
    }
    columns.push(("\nswitches", |is, _| count(&is.switches)));
    columns.push(("CPU\nmoves", |is, _| count(&is.cpu_moves)));
    if any(|summary| summary.domain_moves != summary.cpu_moves) {
        columns.push(("domain\nmoves", |is, _| count(&is.domain_moves)));
    }
    if any(|summary| summary.node_moves.high > 0.0) {
        columns.push(("node\nmoves", |is, _| count(&is.node_moves)));
    }
    columns
}

fn costs(comparison: &Comparison) -> Table {
    let columns = columns(comparison);
    let header: Vec<&str> = iter::once("\nscheduler").chain(columns.iter().map(|column| column.0)).collect();
    let mut table = table(&header, 1);
    for (index, scheduler) in comparison.schedulers.iter().enumerate() {
        let base = comparison.base().filter(|_| index > 0).map(|base| &base.summary);
        let cells = columns.iter().map(|column| column.1(&scheduler.summary, base));
        table.add_row(iter::once(name(scheduler)).chain(cells));
    }
    table
}

fn name(scheduler: &SchedulerRuns) -> Cell {
    Cell::new(&scheduler.name).add_attribute(Attribute::Bold)
}

/// A table of parts that have one unit, without those that are nothing under every scheduler.
fn parts(comparison: &Comparison, names: &[&str], of: fn(&Summary) -> &[Figure]) -> Table {
    let is_there =
        |part: &usize| comparison.schedulers.iter().any(|runs| of(&runs.summary)[*part].high > 0.0);
    let there: Vec<usize> = (0..names.len()).filter(is_there).collect();
    let broken: Vec<String> = there.iter().map(|&part| names[part].replacen(", ", ",\n", 1)).collect();
    let header: Vec<&str> = iter::once("scheduler").chain(broken.iter().map(String::as_str)).collect();
    let mut table = table(&header, 1);
    for scheduler in &comparison.schedulers {
        let figures = of(&scheduler.summary);
        let cells = there.iter().map(|&part| spread(&figures[part], format::millions));
        table.add_row(iter::once(name(scheduler)).chain(cells));
    }
    table
}

fn each_program(comparison: &Comparison) -> Table {
    let header = [
        "\nprogram",
        "\nscheduler",
        "CPU time\nms",
        "\nchange",
        "kernel\n%",
        "misses\nM",
        "\nchange",
        "\nswitches",
        "CPU\nmoves",
    ];
    let mut table = table(&header, 2);
    for (program, rows) in programs::programs(comparison) {
        for (index, (scheduler, row)) in comparison.schedulers.iter().zip(&rows).enumerate() {
            let base = rows.first().filter(|_| index > 0);
            table.add_row([
                Cell::new(&program).add_attribute(Attribute::Bold),
                Cell::new(&scheduler.name),
                spread(&row.cpu_ms, format::significant),
                change(&row.cpu_ms, base.map(|base| &base.cpu_ms)),
                number(format!("{:.1}", row.kernel_percent.mean)),
                spread(&row.misses, format::millions),
                change(&row.misses, base.map(|base| &base.misses)),
                count(&row.switches),
                count(&row.cpu_moves),
            ]);
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::super::comparison::tests::comparison;
    use super::*;

    #[test]
    fn all_figures_are_there_and_programs_if_asked_for() {
        let compared = comparison(&[("kernel", &[(8, 1), (18, 3)]), ("hearth:light", &[(8, 1), (8, 1)])]);
        let short = text(&compared, false);
        for word in
            ["sort f on m, seeds 1 to 2", "10.0..20.0", "-33.3 %", "first touch", "other node", "3.00"]
        {
            assert!(short.contains(word), "{word}:\n{short}");
        }
        assert!(!short.contains("second level"), "nothing was served there");
        assert!(!short.contains("(kernel threads)") && text(&compared, true).contains("(kernel threads)"));
        assert!(short.trim_end().ends_with('.'));
    }

    #[test]
    fn time_stands_first_where_the_guests_clock_tells_it() {
        let mut compared = comparison(&[("kernel", &[(8, 1)])]);
        let heads =
            |compared: &Comparison| columns(compared).iter().map(|column| column.0).collect::<Vec<_>>();
        assert!(heads(&compared).contains(&"guest's\nms") && !heads(&compared).contains(&"elapsed\nms"));
        compared.is_timed = true;
        assert_eq!(heads(&compared)[..3], ["elapsed\nms", "\nchange", "CPU time\nms"]);
        assert!(!heads(&compared).contains(&"guest's\nms"));
    }

    #[test]
    fn what_is_partial_says_so() {
        let mut compared = comparison(&[("kernel", &[(8, 1)])]);
        assert!(!text(&compared, false).contains("partial"));
        compared.partial = true;
        assert!(text(&compared, false).contains("partial"));
    }
}
