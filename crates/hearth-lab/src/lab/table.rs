//! Claims as text for a terminal.

use comfy_table::{Attribute, Cell, CellAlignment, Color, ContentArrangement, Table};
use hearth_command::table::{number, table};
use hearth_experiments::report::findings::text as shown;
use hearth_experiments::report::variants::Variants;
use hearth_experiments::report::{self, Findings};
use hearth_experiments::{ClaimResult, RowResult, Verdict};
use hearth_report::format;

/// The figures of every claim, and how many claims hold.
pub fn text(findings: &Findings<'_>) -> String {
    let (experiment, seeds) = (findings.experiment, format::seeds(findings.seeds));
    let mut text = format!(
        "{}: {} ({}) on {}, scale {}, {seeds}\n\n{}\n{}\n{}\n",
        experiment.id,
        experiment.title,
        experiment.paper,
        experiment.machine,
        findings.scale,
        claims(findings),
        variants(findings),
        findings.sentence(),
    );
    if findings.partial {
        text.push_str("This is partial: some runs were not finished.\n");
    }
    text
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

fn claim_row(claim: &ClaimResult) -> Vec<Cell> {
    let bold = |text: &str| Cell::new(text).add_attribute(Attribute::Bold);
    let color = match claim.verdict {
        Verdict::Holds => Color::Green,
        Verdict::DoesNotHold => Color::Red,
        Verdict::NotRun => Color::Yellow,
    };
    let verdict = bold(claim.verdict_text()).fg(color).set_alignment(CellAlignment::Right);
    let words = format!("{} ({})", claim.text, claim.kind.text());
    let empty = || Cell::new("");
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
