//! The page of a comparison.

use super::comparison::{Comparison, SchedulerRuns};
use super::summary::{SERVED, Summary};
use super::{pairs, programs};
use hearth_report::Page;
use hearth_report::bars::{CAUSES, Row, bars, cause_color, change, parted_bar, plain_bar};
use hearth_report::measure::{self, cell};
use hearth_report::plot::{color, legend};
use hearth_report::{Figure, Source, format};
use maud::{Markup, html};

/// The page as text.
pub fn page(comparison: &Comparison, source: &Source) -> String {
    let title = comparison.title();
    let page = Page {
        subject: &title,
        heading: &title,
        summary: &comparison.sentence(),
        about: html! { (comparison.machine_description) ". " (format::seeds(&comparison.seeds)) "." },
        partial: comparison.partial.then_some("some runs were not finished."),
        body: html! {
            div.pair {
                @if comparison.is_timed {
                    (whole(comparison, "Time", "from the command's start to its end, on the guest's clock, ms", |is| is.guest_ms))
                }
                (whole(comparison, "CPU time", "a cycle for each instruction and the stalls, all tasks, ms", |is| is.cpu_ms))
                @if !comparison.is_timed { (whole(comparison, "Busiest CPU", "CPU time of the CPU that had most of it, ms", |is| is.busiest_ms)) }
            }
            div.pair { (causes(comparison)) (served(comparison)) }
            (figures(comparison))
            (own_measures(comparison))
            (pairs_of(comparison))
            (each_program(comparison))
            (endings(comparison))
        },
        made: "on an emulated machine",
        source,
    };
    page.render()
}

/// Schedulers that have no figures, and why.
fn endings(comparison: &Comparison) -> Markup {
    html! {
        @if !comparison.endings.is_empty() {
            section {
                h2 { "Without figures" }
                @for ending in &comparison.endings {
                    p { (comparison.turn_of(ending)) ":" }
                    pre { (ending.what) }
                }
            }
        }
    }
}

fn rows(comparison: &Comparison, of: impl Fn(&Summary) -> Figure) -> Vec<Row<'_>> {
    let row = |runs: &SchedulerRuns| of(&runs.summary);
    let schedulers = comparison.schedulers.iter();
    schedulers
        .map(|runs| Row { name: &runs.name, description: &runs.description, figure: row(runs) })
        .collect()
}

fn hint(comparison: &Comparison) -> Markup {
    let base = comparison.base().map_or("", |base| base.name.as_str());
    html! {
        p.hint {
            "Less is better. Changes are against " (base) "."
            @if comparison.seeds.len() > 1 { " Means; the thin line is the spread over the seeds." }
        }
    }
}

/// A figure by scheduler, in one piece.
fn whole(comparison: &Comparison, title: &str, unit: &str, of: fn(&Summary) -> Figure) -> Markup {
    let rows = rows(comparison, of);
    html! {
        section {
            h2 { (title) }
            (hint(comparison))
            (bars(unit, &rows, format::significant, |index, axis| plain_bar(index, &rows[index].figure, axis)))
        }
    }
}

/// Misses by scheduler, in parts that add up.
fn in_parts(
    comparison: &Comparison,
    title: &str,
    names: &[&'static str],
    paint: fn(usize) -> String,
    of: fn(&Summary) -> &[Figure],
) -> Markup {
    let rows = rows(comparison, |is| is.misses.scaled(1e-6));
    html! {
        section {
            h2 { (title) }
            (hint(comparison))
            (legend(names.iter().enumerate().map(|(index, name)| (paint(index), *name))))
            (bars("references that left the CPUs' caches, millions", &rows, format::significant, |index, axis| {
                let parts = of(&comparison.schedulers[index].summary).iter().zip(names).enumerate();
                parted_bar(parts.map(|(part, (figure, name))| (*name, figure.mean / 1e6, paint(part))), axis)
            }))
        }
    }
}

fn causes(comparison: &Comparison) -> Markup {
    in_parts(comparison, "Misses by cause", &CAUSES, cause_color, |is| &is.causes)
}

/// Where misses of all the CPU's caches are served begins behind the CPU's own two levels.
const BEYOND: usize = 2;

fn served(comparison: &Comparison) -> Markup {
    in_parts(comparison, "Misses by who served them", &SERVED[BEYOND..], color, |is| &is.served[BEYOND..])
}

fn figures(comparison: &Comparison) -> Markup {
    let rows: Vec<measure::Row<'_, Summary>> = comparison
        .schedulers
        .iter()
        .map(|runs| measure::Row { name: &runs.name, description: &runs.description, is: &runs.summary })
        .collect();
    html! {
        section {
            h2 { "All figures" }
            (measure::page_table("scheduler", &comparison.measures(), &rows))
        }
    }
}

/// What the command measured itself.
fn own_measures(comparison: &Comparison) -> Markup {
    let names = comparison.own_measures();
    html! {
        @if !names.is_empty() {
            section {
                h2 { "What the command measured itself" }
                div.scroll { table {
                    thead { tr {
                        th scope="col" { "measure" }
                        @for runs in &comparison.schedulers { th scope="col" { (runs.name) } }
                    } }
                    tbody { @for name in names { tr {
                        th scope="row" { (name) }
                        @for runs in &comparison.schedulers {
                            td { @if let Some(figure) = runs.measures.get(name) { (cell(figure, format::significant)) } }
                        }
                    } } }
                } }
            }
        }
    }
}

/// What pairs of the same round say.
fn pairs_of(comparison: &Comparison) -> Markup {
    let names: Vec<(&str, &str)> = comparison
        .paired()
        .map(|measure| (measure.key, measure.name))
        .chain(comparison.own_measures().into_iter().map(|name| (name, name)))
        .collect();
    html! {
        @if !comparison.pairs.is_empty() {
            section {
                h2 { "Pairs of the same round" }
                p.hint { "Ratio to the first scheduler, its 95 % interval, and whether they differ." }
                div.scroll { table {
                    thead { tr {
                        th scope="col" { "scheduler" }
                        th scope="col" { "pairs" }
                        @for (_, name) in &names { th scope="col" { (name) } }
                    } }
                    tbody { @for row in &comparison.pairs { tr {
                        th scope="row" { (row.scheduler) }
                        td { (row.pairs) }
                        @for (key, _) in &names {
                            td { @if let Some(difference) = row.of.get(key).or_else(|| row.measures.get(*key)) { (pairs::line(difference)) } }
                        }
                    } } }
                } }
            }
        }
    }
}

fn each_program(comparison: &Comparison) -> Markup {
    let names =
        ["program", "scheduler", "CPU time, ms", "change", "kernel, %", "misses, M", "switches", "CPU moves"];
    html! {
        section {
            h2 { "Each program" }
            div.scroll { table {
                thead { tr { @for name in names { th scope="col" { (name) } } } }
                tbody {
                    @for (program, rows) in programs::programs(comparison) {
                        @for (index, (runs, row)) in comparison.schedulers.iter().zip(&rows).enumerate() {
                            tr {
                                th scope="row" { @if index == 0 { (program) } }
                                td { (runs.name) }
                                td { (cell(&row.cpu_ms, format::significant)) }
                                td { @if index > 0 { (change(row.cpu_ms.change_percent(&rows[0].cpu_ms))) } }
                                td { (format::significant(row.kernel_percent.mean)) }
                                td { (cell(&row.misses, format::millions)) }
                                td { (format::count(row.switches.mean)) }
                                td { (format::count(row.cpu_moves.mean)) }
                            }
                        }
                    }
                }
            } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::comparison::tests::comparison;
    use super::*;

    #[test]
    fn the_page_has_every_scheduler_and_program() {
        let compared = comparison(&[("kernel", &[(8, 1), (18, 3)]), ("hearth:light", &[(8, 1), (8, 1)])]);
        let text = page(&compared, &Source::default());
        for word in ["sort f on m", "hearth:light", "first touch", "memory, other node", "(kernel threads)"] {
            assert!(text.contains(word), "{word}");
        }
    }

    #[test]
    fn names_are_text_and_never_markup() {
        let mut hostile = comparison(&[("kernel", &[(8, 1)])]);
        hostile.command = "sort <script>".into();
        hostile.schedulers[0].runs[0].region.tasks[1].comm = "<b>".into();
        let text = page(&hostile, &Source::default());
        assert!(!text.contains("sort <script>") && !text.contains("<b><"), "{text}");
    }
}
