//! Comparisons, and one self-contained HTML page that shows them.
//!
//! A page needs no other file and no network, adapts to the width of the screen and to light or
//! dark, and is the same bytes for the same results.

mod bars;
mod claims;
mod clusters;
mod comparison;
mod figures;
pub mod findings;
mod grid;
mod growth;
mod isolation;
mod markdown;
mod pages;
mod parallel;
mod places;
mod sharing;
mod slices;
mod tables;
mod timeline;
pub mod variants;

use hearth_report::{Figure, Page, Source, format};
use maud::{Markup, html};

pub use comparison::{Comparison, MEASURES, PolicyRuns, RESULTS, Summary};
pub use findings::Findings;
pub use markdown::markdown;

const UNFINISHED: &str = "some runs were not finished.";
const MADE: &str = "on a simulated machine";

/// The page of comparisons, at least one: of a workload on a machine or more.
pub fn compare_page(comparisons: &[Comparison], source: &Source) -> String {
    let subjects: Vec<String> = comparisons.iter().map(on_machine).collect();
    let subject = subjects.join(", ");
    let sentences = |comparison: &Comparison| unbroken(&comparison.sentences().join(" "));
    let (summary, about, body) = match comparisons {
        [comparison] => (sentences(comparison), about(comparison), compared(comparison)),
        _ => {
            let each = || comparisons.iter().zip(&subjects);
            let about_all = html! {
                @for (comparison, subject) in each() { p { b { (subject) ": " } (sentences(comparison)) } }
            };
            let body = html! {
                @for (comparison, subject) in each() {
                    h1 { (subject) }
                    p.about { (about(comparison)) }
                    (compared(comparison))
                }
            };
            ("One workload on several machines".to_owned(), about_all, body)
        }
    };
    let page = Page {
        subject: &subject,
        heading: &subject,
        summary: &summary,
        about,
        partial: comparisons.iter().any(|comparison| comparison.partial).then_some(UNFINISHED),
        body,
        made: MADE,
        source,
    };
    page.render()
}

fn on_machine(comparison: &Comparison) -> String {
    format!("{} on {}", comparison.workload, comparison.machine)
}

fn about(comparison: &Comparison) -> Markup {
    let Comparison { machine_description, scale, seeds, .. } = comparison;
    html! { (machine_description) ". Scale " (scale) ", " (format::seeds(seeds)) "." }
}

fn compared(comparison: &Comparison) -> Markup {
    html! {
        (figures::tiles(comparison))
        (bars::changes(comparison))
        (bars::misses(comparison))
        (sharing::section(comparison))
        (places::section(comparison))
        (clusters::section(comparison, None))
        (slices::section(comparison))
        (growth::section(comparison))
        (timeline::section(comparison))
        (figures::table(comparison))
        @for plans in comparison.plans() { p { (plans) } }
    }
}

/// The page of judged experiments; at least one.
pub fn lab_page(findings: &[Findings<'_>], source: &Source) -> String {
    let sentences: Vec<String> = findings.iter().map(Findings::sentence).collect();
    let first = findings.first();
    let ids: Vec<&str> = findings.iter().map(|findings| findings.experiment.id.as_str()).collect();
    let subject = format!("claims of {}", ids.join(", "));
    let page = Page {
        subject: &subject,
        heading: &subject,
        summary: &sentences.join(" "),
        about: html! {
            @if let Some(first) = first { "Scale " (first.scale) ", " (format::seeds(first.seeds)) "." }
        },
        partial: findings.iter().any(|findings| findings.partial).then_some(UNFINISHED),
        body: html! {
            @for findings in findings {
                (claims::section(findings))
                (variants::section(findings))
                (isolation::section(findings))
                (pages::section(findings))
                (parallel::section(findings))
                (tables::section(findings))
                @for comparison in findings.comparisons() {
                    (workload(&comparison, findings.experiment.followed.as_deref()))
                }
            }
        },
        made: MADE,
        source,
    };
    page.render()
}

fn workload(comparison: &Comparison, followed: Option<&str>) -> Markup {
    html! {
        details.card {
            summary { (comparison.workload) ": " (unbroken(&comparison.best_sentence().unwrap_or_default())) }
            div {
                div.pair { (bars::execution_times(comparison)) (bars::misses(comparison)) }
                (sharing::section(comparison))
                (places::section(comparison))
                (clusters::section(comparison, followed))
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
