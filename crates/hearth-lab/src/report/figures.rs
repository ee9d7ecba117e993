//! The figures of a comparison: tiles for the eye, a table for reference.

use super::bars::change;
use super::{Comparison, Figure, PolicyRuns, format};
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
    let from_to = |figure: fn(&super::Summary) -> Figure, unit: &str| {
        format!(
            "{} against {} {unit}",
            format::significant(figure(is).median),
            format::significant(figure(was).median)
        )
    };
    html! {
        p.about { b { (best.name) } " against " b { (base.name) } ":" }
        dl.tiles {
            (tile("Execution time", &change(is.execution_s.change_percent(&was.execution_s)),
                from_to(|summary| summary.execution_s, "s")))
            (tile("Cache misses", &change(is.misses.change_percent(&was.misses)),
                format!("{} against {} M", format::millions(is.misses.median), format::millions(was.misses.median))))
            (tile("Effective slice", &html! { (format::significant(is.slice_ms.median)) " ms" },
                format!("against {} ms", format::significant(was.slice_ms.median))))
            (tile("Moves between CPUs", &html! { (format::count(is.cpu_moves.median)) },
                format!("against {}", format::count(was.cpu_moves.median))))
            (tile("Idle", &html! { (format!("{:.1} %", is.idle_percent.median)) },
                format!("against {:.1} %", was.idle_percent.median)))
        }
    }
}

/// All figures by policy.
pub(super) fn table(comparison: &Comparison) -> Markup {
    html! {
        section {
            h2 { "All figures" }
            div.scroll {
                table {
                    thead { tr {
                        th scope="col" { "policy" }
                        @for name in ["time, s", "change", "misses, M", "change", "idle, %", "switches", "CPU moves",
                            "domain moves", "node moves", "slice, ms"] { th scope="col" { (name) } }
                    } }
                    tbody {
                        @for (index, policy) in comparison.policies.iter().enumerate() {
                            (row(policy, comparison.base().filter(|_| index > 0)))
                        }
                    }
                }
            }
        }
    }
}

fn row(policy: &PolicyRuns, base: Option<&PolicyRuns>) -> Markup {
    let summary = &policy.summary;
    let against = |figure: fn(&super::Summary) -> Figure| {
        html! {
            td { @if let Some(base) = base { (change(figure(summary).change_percent(&figure(&base.summary)))) } }
        }
    };
    html! {
        tr {
            td title=(policy.description) { b { (policy.name) } }
            (cell(&summary.execution_s, format::significant))
            (against(|summary| summary.execution_s))
            (cell(&summary.misses, format::millions))
            (against(|summary| summary.misses))
            (cell(&summary.idle_percent, |percent| format!("{percent:.1}")))
            (cell(&summary.switches, format::count))
            (cell(&summary.cpu_moves, format::count))
            (cell(&summary.domain_moves, format::count))
            (cell(&summary.node_moves, format::count))
            (cell(&summary.slice_ms, format::significant))
        }
    }
}

fn cell(figure: &Figure, show: impl Fn(f64) -> String) -> Markup {
    html! {
        td {
            (show(figure.median))
            @if figure.low < figure.high { small { (show(figure.low)) " to " (show(figure.high)) } }
        }
    }
}
