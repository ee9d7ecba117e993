//! Comparisons, and one self-contained HTML page that shows them.
//!
//! A page needs no other file and no network, adapts to the width of the screen and to light or
//! dark, and is the same bytes for the same results.

mod bars;
mod comparison;
mod figures;
pub mod format;
mod growth;
mod page;
mod plot;
mod slices;
mod timeline;

use maud::html;

pub use comparison::{Comparison, Figure, PolicyRuns, Summary};

/// The page of a comparison.
pub fn compare_page(comparison: &Comparison) -> String {
    let Comparison { workload, machine, machine_description, scale, seeds, .. } = comparison;
    let seeds = match seeds.as_slice() {
        [first, .., last] => format!("seeds {first} to {last}"),
        seeds => format!("seed {}", seeds.first().copied().unwrap_or_default()),
    };
    let page = page::Page {
        subject: &format!("{workload} on {machine}"),
        summary: &unbroken(&comparison.sentence()),
        about: html! { (machine_description) ". Scale " (scale) ", " (seeds) "." },
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

/// Keeps numbers on the line of their units.
fn unbroken(sentence: &str) -> String {
    let units = [" s ", " % ", " %)", " M "];
    units.iter().fold(sentence.to_owned(), |text, unit| text.replace(unit, &format!("\u{a0}{}", &unit[1..])))
}
