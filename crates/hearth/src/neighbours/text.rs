//! The report as text.

use super::Wanted;
use super::report::{By, Program, Report, SMALL_PERCENT};
use hearth_command::table::{number, table};
use hearth_report::format::significant;
use std::fmt::Write;

/// Everything, for people.
pub(super) fn text(report: &Report, wanted: &Wanted, verbose: bool) -> String {
    let mut text = format!("Who slows whom: {}\n\n", report.about());
    let shown = report.shown(verbose || !matches!(wanted, Wanted::All));
    if shown.is_empty() {
        let _ = writeln!(
            text,
            "Nothing was counted of {}: it slept, or who ran beside it could not be told. Longer (--for 1m) tells \
             more.",
            wanted.describe()
        );
    } else {
        let _ = writeln!(text, "{}\n", table_of(&shown));
    }
    let hidden = report.programs.len() - shown.len();
    if hidden > 0 {
        let _ = writeln!(
            text,
            "{hidden} with less than {SMALL_PERCENT} % of all cycles each are left out (--verbose shows them)"
        );
    }
    report.notes().iter().for_each(|note| text.extend([note, "\n"]));
    text + &report.summary() + "\n"
}

fn table_of(programs: &[&Program]) -> comfy_table::Table {
    let header =
        ["who", "by whom (± standard error)", "slowed", "cycles %", "samples", "instr./cycle", "misses/1000"];
    let mut table = table(&header, 2);
    for program in programs {
        table.add_row([
            program.name.clone().into(),
            program.by_whom().into(),
            number(program.slowed.map_or_else(|| "-".to_owned(), |by: By| by.to_string())),
            number(format!("{:.1}", program.cycles_percent)),
            number(program.samples.to_string()),
            number(format!("{:.2}", program.instructions_per_cycle)),
            number(significant(program.misses_per_1000_instructions)),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::super::report::tests::{program, report, slowing};
    use super::*;

    #[test]
    fn only_what_is_sure_is_blamed() {
        let shown = |report: &Report| text(report, &Wanted::All, false);
        let all =
            shown(&report(vec![program(&[("backup", slowing(12.0, 1.0)), ("make", slowing(3.0, 2.0))])]));
        assert!(all.contains("backup 12.0 % ±1.0") && !all.contains("make"), "{all}");
        assert!(all.ends_with("backup slows nginx most: by 12.0 % ±1.0.\n"), "{all}");
        let unsure = shown(&report(vec![program(&[("make", slowing(3.0, 2.0))])]));
        assert!(unsure.contains("nobody for sure") && unsure.contains("--for 1m"), "{unsure}");
        let alone = shown(&report(vec![program(&[])]));
        assert!(alone.contains("no neighbour missed"), "{alone}");
        let nothing = text(&report(Vec::new()), &Wanted::Program("nginx".into()), false);
        assert!(nothing.contains("Nothing was counted of nginx"), "{nothing}");
    }
}
