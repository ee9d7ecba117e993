//! Verdicts under other answers to what a paper leaves open.

use super::findings::Findings;
use maud::{Markup, html};
use std::fmt::Write;

/// A table: the claims, their verdicts, and those under each variant. Nothing if no variants were asked for.
pub struct Variants<'a> {
    /// Headings, one for each column of verdicts.
    pub columns: Vec<&'a str>,
    /// A claim's name and its verdicts.
    pub rows: Vec<(&'a str, Vec<&'static str>)>,
}

/// The table of what was found.
pub fn table<'a>(findings: &'a Findings<'_>) -> Option<Variants<'a>> {
    let judgement = findings.judgement;
    if judgement.variants.is_empty() {
        return None;
    }
    let names = judgement.variants.iter().map(|variant| variant.name.as_str());
    let row = |(at, claim): (usize, &'a crate::ClaimResult)| {
        let under = judgement.variants.iter().map(|variant| variant.verdicts[at].text());
        (claim.id.as_str(), [claim.verdict.text()].into_iter().chain(under).collect())
    };
    let rows = judgement.claims.iter().enumerate().map(row).collect();
    Some(Variants { columns: ["as it is"].into_iter().chain(names).collect(), rows })
}

/// The same for documents.
pub(super) fn markdown(findings: &Findings<'_>) -> String {
    let Some(Variants { columns, rows }) = table(findings) else { return String::new() };
    let mut out = "\n## What the paper leaves open\n\nVerdicts under other answers. Where one differs, the claim is fragile.\n\n".to_owned();
    let _ = writeln!(out, "| | {} |", columns.join(" | "));
    let _ = writeln!(out, "|---|{}", "---|".repeat(columns.len()));
    for (claim, verdicts) in rows {
        let _ = writeln!(out, "| {claim} | {} |", verdicts.join(" | "));
    }
    out
}

/// The same for a page.
pub(super) fn section(findings: &Findings<'_>) -> Markup {
    html! {
        @if let Some(Variants { columns, rows }) = table(findings) {
            section {
                h2 { "What the paper leaves open" }
                p.hint { "Verdicts under other answers. Where one differs, the claim is fragile." }
                div.scroll {
                    table {
                        thead {
                            tr {
                                th scope="col" {}
                                @for column in columns { th scope="col" { (column) } }
                            }
                        }
                        tbody {
                            @for (claim, verdicts) in rows {
                                tr {
                                    th scope="row" { (claim) }
                                    @for verdict in verdicts { td { (verdict) } }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}
