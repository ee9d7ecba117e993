//! The report as one HTML page that needs no other file: victims by aggressors.

use super::report::{By, Program, Report};
use crate::observe::page::table;
use hearth_report::format::significant;
use hearth_report::{Page, Source};
use maud::{Markup, html};

/// At so many percent a cell has its full colour.
const DARKEST_PERCENT: f64 = 30.0;

/// The page.
pub(super) fn page(report: &Report, verbose: bool, source: &Source) -> String {
    let victims = report.shown(verbose);
    let page = Page {
        subject: "who slows whom",
        heading: "who slows whom by sharing a cache",
        summary: &report.summary(),
        about: html! { (report.about()) "." @for note in report.notes() { " " (note) } },
        partial: report.partial.then_some("the observation was interrupted."),
        body: html! { (blame(&victims)) (counts(&victims)) },
        made: "on this machine\u{2019}s own kernel; no scheduler was loaded",
        source,
    };
    page.render()
}

/// Who is blamed anywhere, those blamed most first.
fn aggressors<'a>(victims: &[&'a Program]) -> Vec<&'a str> {
    let mut most: Vec<(&str, f64)> = Vec::new();
    for (by, how) in victims.iter().flat_map(|victim| victim.sure()) {
        match most.iter_mut().find(|(name, _)| *name == by.name) {
            Some((_, percent)) => *percent = percent.max(how.percent),
            None => most.push((&by.name, how.percent)),
        }
    }
    most.sort_by(|one, other| other.1.total_cmp(&one.1));
    most.into_iter().map(|(name, _)| name).collect()
}

fn blame(victims: &[&Program]) -> Markup {
    let aggressors = aggressors(victims);
    html! {
        section {
            h2 { "Who slows whom" }
            p.hint {
                "How much longer the program of a row takes than beside neighbours that never miss, in percent, with the \
                 standard error: because of all its neighbours, and of each that slows anybody for sure. What is \
                 not sure is grey; a dash cannot be told, or never ran beside it."
            }
            div.scroll {
                table {
                    thead { tr { th { "slowed" } th { "by all" } @for name in &aggressors { th { "by " (name) } } } }
                    tbody {
                        @for victim in victims {
                            tr {
                                th { (victim.name) }
                                (cell(victim.slowed))
                                @for name in &aggressors { (cell(by(victim, name))) }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn by(victim: &Program, name: &str) -> Option<By> {
    victim.by.iter().find(|by| by.name == name)?.slowed
}

fn cell(slowing: Option<By>) -> Markup {
    let Some(by) = slowing else { return html! { td { "\u{2013}" } } };
    let shade = (60.0 * by.percent / DARKEST_PERCENT).clamp(0.0, 60.0);
    let shade = format!("background: color-mix(in oklab, var(--bad) {shade:.0}%, transparent)");
    let value = html! { (by.rounded()) small { "±" (format!("{:.1}", by.error)) } };
    html! { @if by.sure { td style=(shade) { (value) } } @else { td.quiet { (value) } } }
}

fn counts(victims: &[&Program]) -> Markup {
    let row = |victim: &&Program| {
        vec![
            victim.name.clone(),
            format!("{:.1}", victim.cycles_percent),
            victim.samples.to_string(),
            format!("{:.2}", victim.instructions_per_cycle),
            significant(victim.misses_per_1000_instructions),
        ]
    };
    table(
        "What was counted",
        "Samples are stretches of a program\u{2019}s time of which it is known who ran beside it.",
        &["", "cycles %", "samples", "instructions per cycle", "misses per 1000 instructions"],
        victims.iter().map(row).collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::super::report::tests::{program, report, slowing};
    use super::*;

    #[test]
    fn only_who_is_sure_to_slow_anybody_has_a_column_and_names_are_escaped() {
        let mut second = program(&[("backup", slowing(1.0, 2.0)), ("<b>", slowing(9.0, 1.0))]);
        second.name = "a&b".into();
        let first = program(&[("backup", slowing(12.0, 1.0)), ("make", slowing(3.0, 2.0))]);
        let page = page(&report(vec![first, second]), false, &Source::default());
        assert!(
            page.contains("<th>by backup</th><th>by &lt;b&gt;</th>") && !page.contains("by make"),
            "{page}"
        );
        assert!(page.contains("a&amp;b") && page.contains("class=\"quiet\""), "{page}");
        assert!(page.contains("backup slows nginx most: by 12.0 % ±1.0."), "{page}");
    }
}
