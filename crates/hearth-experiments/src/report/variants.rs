//! Verdicts under other answers to what a paper leaves open.

use super::findings::Findings;
use super::grid::grid;
use maud::{Markup, html};
use std::fmt::Write;

/// A table: the claims, their verdicts, and those under each variant.
pub struct Variants<'a> {
    /// Headings, one for each column of verdicts.
    pub columns: Vec<&'a str>,
    /// A claim's name and its verdicts.
    pub rows: Vec<(&'a str, Vec<&'static str>)>,
}

/// The table of what was found; nothing if no variants were asked for.
pub fn table<'a>(findings: &'a Findings<'_>) -> Option<Variants<'a>> {
    let claims = &findings.judgement.claims;
    let first = claims.first().filter(|claim| !claim.variants.is_empty())?;
    let names = first.variants.iter().map(|variant| variant.name.as_str());
    let row = |claim: &'a crate::ClaimResult| {
        let under = claim.variants.iter().map(|variant| variant.verdict.text());
        (claim.id.as_str(), [claim.verdict.text()].into_iter().chain(under).collect())
    };
    Some(Variants {
        columns: ["as it is"].into_iter().chain(names).collect(),
        rows: claims.iter().map(row).collect(),
    })
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
                (grid("", columns, rows))
            }
        }
    }
}
