//! A comparison as text for a terminal.

use super::comparison::{Comparison, SchedulerRuns, is_rate};
use super::pairs::{self, PairsOf};
use super::programs;
use super::summary::{PARTS, Summary};
use crate::cells::{change, count, measures_of, spread};
use comfy_table::{Attribute, Cell, Table};
use hearth_command::table::{number, table};
use hearth_report::format;
use hearth_report::measure::Parts;
use hearth_report::{Figure, Measure};
use std::iter;

/// A terminal has no room for these.
const ON_PAGES: [&str; 2] = ["instructions", "first_level_misses"];

/// The tables, programs if asked for, and the summary.
pub fn text(comparison: &Comparison, verbose: bool) -> String {
    let spread = if comparison.seeds.len() > 1 { " (means, with least..greatest)" } else { "" };
    let mut text = format!("{}, {}{spread}\n\n", comparison.title(), format::seeds(&comparison.seeds));
    let rows: Vec<(&str, &Summary)> =
        comparison.schedulers.iter().map(|runs| (runs.name.as_str(), &runs.summary)).collect();
    let measures: Vec<_> =
        comparison.measures().into_iter().filter(|measure| !ON_PAGES.contains(&measure.key)).collect();
    text.push_str(&format!("{}\n", measures_of("scheduler", &measures, &rows)));
    for parts in PARTS {
        text.push_str(&format!("\n{}\n\n{}\n", parts.title, table_of_parts(comparison, &parts)));
    }
    if !comparison.own_measures().is_empty() {
        text.push_str(&format!("\nWhat the command measured itself\n\n{}\n", own_measures(comparison)));
    }
    if verbose {
        text.push_str(&format!("\nEach program\n\n{}\n", each_program(comparison)));
    }
    if !comparison.pairs.is_empty() {
        let base = comparison.base().map_or("the first", |base| base.name.as_str());
        text.push_str(&format!(
            "\nAgainst {base} in the same round: ratio (95 % interval)\n\n{}\n",
            pairs_table(comparison)
        ));
    }
    text.push_str(&format!("\n{}\n", comparison.sentence()));
    for ending in &comparison.endings {
        text.push_str(&format!("\n{}: {}\n", comparison.turn_of(ending), ending.what));
    }
    if comparison.partial {
        text.push_str("This is partial: some runs were not finished.\n");
    }
    text
}

fn name(scheduler: &SchedulerRuns) -> Cell {
    Cell::new(&scheduler.name).add_attribute(Attribute::Bold)
}

/// A table of parts that have one unit, without those that are nothing under every scheduler.
fn table_of_parts(comparison: &Comparison, parts: &Parts<Summary>) -> Table {
    let Parts { names, figures: of, .. } = *parts;
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

/// What pairs say.
fn pairs_table(comparison: &Comparison) -> Table {
    let measures: Vec<_> = comparison.paired().collect();
    let names = measures.iter().map(|of| of.name);
    let header: Vec<&str> = ["scheduler", "pairs"].into_iter().chain(names).collect();
    let mut table = table(&header, 1);
    for row in &comparison.pairs {
        let cell = |measure: &Measure<Summary>| {
            number(row.of.get(measure.key).map_or_else(String::new, pairs::text))
        };
        let first = [Cell::new(&row.scheduler).add_attribute(Attribute::Bold), number(row.pairs.to_string())];
        table.add_row(first.into_iter().chain(measures.iter().map(cell)));
    }
    table
}

/// What the command measured itself, and what pairs say of it.
fn own_measures(comparison: &Comparison) -> Table {
    let has_pairs = !comparison.pairs.is_empty();
    let header = ["measure", "scheduler", "", if has_pairs { "ratio (95 % interval)" } else { "change" }];
    let mut table = table(&header, 2);
    for name in comparison.own_measures() {
        let base = comparison.base().and_then(|base| base.measures.get(name));
        let rows = comparison.schedulers.iter().filter_map(|runs| Some((runs, runs.measures.get(name)?)));
        let of_pairs = |row: &PairsOf| number(row.measures.get(name).map_or_else(String::new, pairs::line));
        let mut add = |scheduler: &str, figure, against| {
            let first = [Cell::new(name).add_attribute(Attribute::Bold), Cell::new(scheduler)];
            table.add_row(first.into_iter().chain([figure, against]));
        };
        for (index, (runs, figure)) in rows.enumerate() {
            let against = match comparison.pairs.iter().find(|row| row.scheduler == runs.name) {
                Some(row) => of_pairs(row),
                None => change_of(name, figure, base.filter(|_| index > 0 && !has_pairs)),
            };
            add(&runs.name, spread(figure, format::significant), against);
            let again = pairs::again(&runs.name);
            if let Some(again) = comparison.pairs.iter().find(|row| row.scheduler == again) {
                add(&again.scheduler, Cell::new(""), of_pairs(again));
            }
        }
    }
    table
}

/// A change, in colours where less is better.
fn change_of(name: &str, figure: &Figure, base: Option<&Figure>) -> Cell {
    match base {
        Some(base) if is_rate(name) => number(format::change(figure.change_percent(base))),
        base => change(figure, base),
    }
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
    use super::super::comparison::Ending;
    use super::super::comparison::tests::comparison;
    use super::super::summary::MEASURES;
    use super::*;
    use hearth_emulate::{Run, Scheduler};
    use hearth_report::measure::markdown;

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
        let names = |compared: &Comparison| compared.measures().map(|measure| measure.name);
        assert_eq!(names(&compared)[..4], ["CPU time", "kernel", "busiest CPU", "guest's clock"]);
        compared.is_timed = true;
        assert_eq!(names(&compared)[..4], ["elapsed", "CPU time", "kernel", "busiest CPU"]);
        assert!(compared.measures()[0].changes);
    }

    #[test]
    fn the_docs_tell_of_each_measure() {
        let table = markdown(&MEASURES);
        assert!(include_str!("../../../../docs/emulate.md").contains(&table), "docs/emulate.md:\n{table}");
    }

    #[test]
    fn of_what_the_command_measured_the_first_scheduler_is_compared_with_itself_too() {
        let mut compared = comparison(&[("kernel", &[(8, 1)]), ("a", &[(4, 1)])]);
        let runs: Vec<Vec<Run>> = compared.schedulers.iter().map(|of| of.runs.clone()).collect();
        compared.pairs = pairs::of(&[Scheduler::Kernel, Scheduler::KernelCache], &runs, &runs[0]);
        compared.pairs[1].scheduler = "a".into();
        let said = own_measures(&compared).to_string();
        let lines: Vec<&str> = said.lines().filter(|line| line.contains("requests_per_s")).collect();
        let ends = ["kernel", "kernel again", "a"].map(|name| lines.iter().any(|line| line.contains(name)));
        assert_eq!((lines.len(), ends), (3, [true; 3]), "{said}");
        assert!(lines[1].contains("1.000, too few") && lines[2].contains("0.500, too few"), "{said}");
        assert!(!lines[0].contains("too few"), "{said}");
    }

    #[test]
    fn who_was_ended_is_told_below() {
        let mut compared = comparison(&[("kernel", &[(8, 1)])]);
        let what = "scx did not schedule to the end of the run; it had said:\na stall".to_owned();
        compared.endings.push(Ending { scheduler: "scx".into(), seed: 2, round: 1, what });
        assert!(
            text(&compared, false)
                .ends_with("\nSeed 2: scx did not schedule to the end of the run; it had said:\na stall\n")
        );
    }

    #[test]
    fn what_is_partial_says_so() {
        let mut compared = comparison(&[("kernel", &[(8, 1)])]);
        assert!(!text(&compared, false).contains("partial"));
        compared.partial = true;
        assert!(text(&compared, false).contains("partial"));
    }
}
