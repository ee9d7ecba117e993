//! Comparisons, and one self-contained HTML page that shows them.
//!
//! A page needs no other file and no network, adapts to the width of the screen and to light or
//! dark, and is the same bytes for the same results.

mod bars;
mod claims;
mod comparison;
mod figures;
pub mod findings;
pub mod format;
mod growth;
mod markdown;
mod page;
mod plot;
mod slices;
mod timeline;

use maud::{Markup, html};

pub use comparison::{Comparison, Figure, PolicyRuns, Summary};
pub use findings::Findings;
pub use markdown::markdown;

/// The page of a comparison.
pub fn compare_page(comparison: &Comparison) -> String {
    let Comparison { workload, machine, machine_description, scale, seeds, .. } = comparison;
    let page = page::Page {
        subject: &format!("{workload} on {machine}"),
        summary: &unbroken(&comparison.sentence()),
        about: html! { (machine_description) ". Scale " (scale) ", " (format::seeds(seeds)) "." },
        partial: comparison.partial,
        body: html! {
            (figures::tiles(comparison))
            div.pair { (bars::execution_times(comparison)) (bars::misses(comparison)) }
            (slices::section(comparison))
            (growth::section(comparison))
            (timeline::section(comparison))
            (figures::table(comparison))
        },
    };
    page.render()
}

/// The page of judged experiments; at least one.
pub fn lab_page(findings: &[Findings<'_>]) -> String {
    let sentences: Vec<String> = findings.iter().map(Findings::sentence).collect();
    let first = findings.first();
    let ids: Vec<&str> = findings.iter().map(|findings| findings.experiment.id.as_str()).collect();
    let page = page::Page {
        subject: &format!("claims of {}", ids.join(", ")),
        summary: &sentences.join(" "),
        about: html! {
            @if let Some(first) = first { "Scale " (first.scale) ", " (format::seeds(first.seeds)) "." }
        },
        partial: findings.iter().any(|findings| findings.partial),
        body: html! {
            @for findings in findings {
                (claims::section(findings))
                @for comparison in findings.comparisons() { (workload(&comparison)) }
            }
        },
    };
    page.render()
}

fn workload(comparison: &Comparison) -> Markup {
    html! {
        details.card {
            summary { (comparison.workload) ": " (unbroken(&comparison.sentence())) }
            div {
                div.pair { (bars::execution_times(comparison)) (bars::misses(comparison)) }
                (slices::section(comparison))
                (growth::section(comparison))
                (figures::table(comparison))
            }
        }
    }
}

/// Keeps numbers on the line of their units.
fn unbroken(sentence: &str) -> String {
    let units = [" s ", " % ", " %)", " M "];
    units.iter().fold(sentence.to_owned(), |text, unit| text.replace(unit, &format!("\u{a0}{}", &unit[1..])))
}
