//! Claims as text for a terminal.

use comfy_table::{Attribute, Cell, CellAlignment, Color, ColumnConstraint, ContentArrangement, Row, Table};
use hearth_command::table::{number, table};
use hearth_experiments::report::findings::text as shown;
use hearth_experiments::report::variants::Variants;
use hearth_experiments::report::{self, Findings};
use hearth_experiments::{ClaimResult, Experiment, RowResult, Verdict};
use hearth_report::format;

/// So many claims have a line each, so that a paper fits on a screen of 25 lines.
const MOST_LINES: usize = 16;

/// A line for each claim, and how many hold; or the figures of each if they are asked for.
pub fn text(findings: &Findings<'_>, verbose: bool) -> String {
    let mut text = title(findings);
    if verbose {
        text.push_str(&format!("\n{}\n{}\n", claims(findings), variants(findings)));
    } else {
        text.push_str(&format!("{}\n", summary(findings)));
    }
    text.push_str(&format!("{}\n", if verbose { findings.sentence() } else { findings.counts() + "." }));
    if findings.partial {
        text.push_str("This is partial: some runs were not finished.\n");
    }
    if !verbose {
        text.push_str(&format!(
            "{}Every figure: -v, --json, or --report FILE for a page.\n",
            left_out(findings)
        ));
    }
    text
}

fn title(findings: &Findings<'_>) -> String {
    let Experiment { id, title, paper, machine, .. } = findings.experiment;
    let (scale, seeds) = (findings.scale, format::seeds(findings.seeds));
    format!("{id}: {title} ({paper}) on {machine}, scale {scale}, {seeds}\n")
}

fn left_out(findings: &Findings<'_>) -> String {
    match findings.judgement.claims.len().saturating_sub(MOST_LINES) {
        0 => String::new(),
        more => format!("{more} more claims are not shown. "),
    }
}

/// A line for each claim: the figure that it fails by, or its first.
fn summary(findings: &Findings<'_>) -> Table {
    let mut table = table(&["", "verdict", "claim", "its main figure"], 4);
    table.set_content_arrangement(ContentArrangement::Dynamic);
    for claim in findings.judgement.claims.iter().take(MOST_LINES) {
        let figure = main_figure(claim).unwrap_or_default();
        let mut row =
            Row::from(vec![bold(&claim.id), verdict(claim), Cell::new(&claim.text), Cell::new(figure)]);
        row.max_height(1);
        table.add_row(row);
    }
    table.set_constraints([ColumnConstraint::ContentWidth; 2]);
    table
}

/// `-11.7 (paper -36.3): matrix+matrix, misses, light`.
fn main_figure(claim: &ClaimResult) -> Option<String> {
    let judged = || claim.rows.iter().filter(|row| row.band != [None, None]);
    let row = judged().find(|row| row.holds != Some(true)).or_else(|| judged().next())?;
    let paper = row.paper.map(|_| format!(" (paper {})", shown::paper(row))).unwrap_or_default();
    Some(format!("{}{paper}: {}", shown::measured(row), row.name))
}

fn claims(findings: &Findings<'_>) -> Table {
    let mut table = table(&["", "claim", "paper", "ours", "spread", "band", "holds"], 2);
    table.set_content_arrangement(ContentArrangement::Dynamic);
    for claim in &findings.judgement.claims {
        table.add_row(claim_row(claim));
        claim.rows.iter().for_each(|row| {
            table.add_row(figure_row(row));
        });
    }
    table
}

/// Verdicts under variants, between empty lines; nothing but one of these if there are none.
fn variants(findings: &Findings<'_>) -> String {
    let Some(Variants { columns, rows }) = report::variants::table(findings) else { return String::new() };
    let headings: Vec<&str> = [""].into_iter().chain(columns).collect();
    let mut table = table(&headings, headings.len());
    table.set_content_arrangement(ContentArrangement::Dynamic);
    for (claim, verdicts) in rows {
        table.add_row([claim].into_iter().chain(verdicts));
    }
    format!("\nUnder other answers to what the paper leaves open:\n\n{table}\n")
}

fn bold(text: &str) -> Cell {
    Cell::new(text).add_attribute(Attribute::Bold)
}

fn verdict(claim: &ClaimResult) -> Cell {
    let color = match claim.verdict {
        Verdict::Holds => Color::Green,
        Verdict::DoesNotHold => Color::Red,
        Verdict::NotRun => Color::Yellow,
    };
    bold(claim.verdict_text()).fg(color)
}

fn claim_row(claim: &ClaimResult) -> Vec<Cell> {
    let words = format!("{} ({})", claim.text, claim.kind.text());
    let empty = || Cell::new("");
    let verdict = verdict(claim).set_alignment(CellAlignment::Right);
    vec![bold(&claim.id), bold(&words), empty(), empty(), empty(), empty(), verdict]
}

fn figure_row(row: &RowResult) -> Vec<Cell> {
    let holds = number(shown::holds(row).to_owned());
    vec![
        Cell::new(""),
        Cell::new(&row.name),
        number(shown::paper(row)),
        number(shown::measured(row)),
        number(shown::spread(row).unwrap_or_default()),
        number(shown::band(row)),
        if row.holds == Some(false) { holds.fg(Color::Red) } else { holds },
    ]
}
