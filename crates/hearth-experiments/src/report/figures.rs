//! The figures of a comparison: tiles for the eye, a table for reference.

use super::{Comparison, Figure, Summary, format};
use hearth_report::bars::change;
use maud::{Markup, html};

/// The best policy's key figures against the first.
pub(super) fn tiles(comparison: &Comparison) -> Markup {
    let Some((base, best)) = comparison.base().zip(comparison.best()) else { return html! {} };
    let (was, is) = (&base.summary, &best.summary);
    let tile = |name: &str, value: &Markup, below: String| {
        html! {
            div.tile { dt { (name) } dd { (value) small { (below) } } }
        }
    };
    let from_to = |figure: fn(&Summary) -> Figure, unit: &str| {
        format!(
            "{} against {} {unit}",
            format::significant(figure(is).mean),
            format::significant(figure(was).mean)
        )
    };
    html! {
        p.about { b { (best.name) } " against " b { (base.name) } ":" }
        dl.tiles {
            (tile("CPU time", &change(is.cpu_s.change_percent(&was.cpu_s)), from_to(|summary| summary.cpu_s, "s")))
            (tile("Last end", &change(is.last_end_s.change_percent(&was.last_end_s)),
                from_to(|summary| summary.last_end_s, "s")))
            (tile("Cache misses", &change(is.misses.change_percent(&was.misses)),
                format!("{} against {} M", format::millions(is.misses.mean), format::millions(was.misses.mean))))
            (tile("Effective slice", &html! { (format::significant(is.slice_ms.mean)) " ms" },
                format!("against {} ms", format::significant(was.slice_ms.mean))))
            (tile("Moves between CPUs", &html! { (format::count(is.cpu_moves.mean)) },
                format!("against {}", format::count(was.cpu_moves.mean))))
            (tile("Idle", &html! { (format!("{:.1} %", is.idle_percent.mean)) },
                format!("against {:.1} %", was.idle_percent.mean)))
        }
    }
}

/// A column: its header, and its cell from a policy's figures and the base's.
type Column = (&'static str, fn(&Summary, Option<&Summary>) -> Markup);

/// The columns; without those for moves that the machine cannot have.
fn columns(comparison: &Comparison) -> Vec<Column> {
    let any =
        |differs: fn(&Summary) -> bool| comparison.policies.iter().any(|policy| differs(&policy.summary));
    let mut columns: Vec<Column> = vec![
        ("CPU time, s", |is, _| cell(&is.cpu_s, format::significant)),
        ("change", |is, base| against(&is.cpu_s, base.map(|base| &base.cpu_s))),
        ("last end, s", |is, _| cell(&is.last_end_s, format::significant)),
        ("change", |is, base| against(&is.last_end_s, base.map(|base| &base.last_end_s))),
        ("misses, M", |is, _| cell(&is.misses, format::millions)),
        ("change", |is, base| against(&is.misses, base.map(|base| &base.misses))),
        ("mean time, s", |is, _| cell(&is.execution_s, format::significant)),
        ("idle, %", |is, _| cell(&is.idle_percent, |percent| format!("{percent:.1}"))),
        ("switches", |is, _| cell(&is.switches, format::count)),
        ("CPU moves", |is, _| cell(&is.cpu_moves, format::count)),
    ];
    if any(|summary| summary.domain_moves != summary.cpu_moves) {
        columns.push(("domain moves", |is, _| cell(&is.domain_moves, format::count)));
    }
    if any(|summary| summary.node_moves.high > 0.0) {
        columns.push(("node moves", |is, _| cell(&is.node_moves, format::count)));
    }
    columns.push(("slice, ms", |is, _| cell(&is.slice_ms, format::significant)));
    columns
}

/// All figures by policy.
pub(super) fn table(comparison: &Comparison) -> Markup {
    let columns = columns(comparison);
    html! {
        section {
            h2 { "All figures" }
            div.scroll {
                table {
                    thead { tr {
                        th scope="col" { "policy" }
                        @for (name, _) in &columns { th scope="col" { (name) } }
                    } }
                    tbody {
                        @for (index, policy) in comparison.policies.iter().enumerate() {
                            @let base = comparison.base().filter(|_| index > 0).map(|base| &base.summary);
                            tr {
                                th scope="row" title=(policy.description) { (policy.name) }
                                @for (_, cell) in &columns { td { (cell(&policy.summary, base)) } }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn against(figure: &Figure, base: Option<&Figure>) -> Markup {
    html! { @if let Some(base) = base { (change(figure.change_percent(base))) } }
}

fn cell(figure: &Figure, show: fn(f64) -> String) -> Markup {
    html! {
        (show(figure.mean))
        @if figure.low < figure.high { small { (show(figure.low)) " to " (show(figure.high)) } }
    }
}
