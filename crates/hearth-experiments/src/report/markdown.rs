//! Findings as Markdown, for documents.

use super::findings::{Findings, text};
use super::{pages, parallel, sharing, tables, variants};
use crate::ClaimResult;
use std::fmt::Write;

/// A table of the claims, then the figures of each. `command` is what made them.
pub fn markdown(findings: &Findings<'_>, command: &str) -> String {
    let mut out = format!("# {}\n\n{}\n\n", findings.experiment.title, findings.sentence());
    let _ = writeln!(out, "Made by `{command}`.\n");
    if findings.partial {
        out.push_str("This is partial: some runs were not finished.\n\n");
    }
    out.push_str("| claim | kind | | verdict |\n|---|---|---|---|\n");
    for claim in &findings.judgement.claims {
        let (id, words, verdict) = (&claim.id, escape(&claim.text), claim.verdict_text());
        let _ = writeln!(
            out,
            "| [{id}](#{}) | {} | {words} | **{verdict}** |",
            id.to_lowercase(),
            claim.kind.text()
        );
    }
    findings.judgement.claims.iter().for_each(|claim| out.push_str(&figures(claim)));
    out.push_str(&variants::markdown(findings));
    out.push_str(&pages::markdown(findings));
    out.push_str(&parallel::markdown(findings));
    out.push_str(&sharing::markdown(findings));
    out.push_str(&tables::markdown(findings));
    out
}

fn figures(claim: &ClaimResult) -> String {
    let mut out = format!("\n## {}\n\n{}: {}.\n\n", claim.id, escape(&claim.text), claim.verdict_text());
    out.push_str("| | paper | ours | spread | band | holds |\n|---|--:|--:|--:|--:|---|\n");
    for row in &claim.rows {
        let spread = text::spread(row).unwrap_or_default();
        let (paper, ours) = (text::paper(row), text::measured(row));
        let (name, band, holds) = (escape(&row.name), text::band(row), text::holds(row));
        let _ = writeln!(out, "| {name} | {paper} | {ours} | {spread} | {band} | {holds} |");
    }
    out
}

fn escape(text: &str) -> String {
    text.replace('|', "\\|")
}
