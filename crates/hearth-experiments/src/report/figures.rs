//! The figures of a comparison: tiles for the eye, a table for reference.

use super::{Comparison, Figure, Summary, format};
use hearth_report::bars::change;
use hearth_report::measure::{Row, page_table};
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
            (tile("Moves between CPUs", &html! { (format::count(is.moves.cpu.mean)) },
                format!("against {}", format::count(was.moves.cpu.mean))))
            (tile("Idle", &html! { (format!("{:.1} %", is.idle_percent.mean)) },
                format!("against {:.1} %", was.idle_percent.mean)))
        }
    }
}

/// All figures by policy.
pub(super) fn table(comparison: &Comparison) -> Markup {
    let rows: Vec<Row<'_, Summary>> = comparison
        .policies
        .iter()
        .map(|policy| Row { name: &policy.name, description: &policy.description, is: &policy.summary })
        .collect();
    html! {
        section {
            h2 { "All figures" }
            (page_table("policy", &comparison.measures(), &rows))
        }
    }
}
