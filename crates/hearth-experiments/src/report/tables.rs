//! A paper's tables beside ours: the baseline and a policy, workload by workload.

use super::grid::grid;
use super::{Figure, Findings, PolicyRuns, format};
use crate::data;
use crate::table::{Quantity, Table, TableRow};
use maud::{Markup, html};
use std::fmt::Write;

/// What oprofile's counts are divided by in the data-affinity paper.
const COUNTS_A_SAMPLE: f64 = 3000.0;
const COLUMNS: [&str; 6] = ["paper", "new", "change, %", "ours", "new", "change, %"];

/// The cells of a row; nothing if it was not run.
fn row(findings: &Findings<'_>, table: &Table, row: &TableRow) -> Option<[String; 6]> {
    let runs = |policy: &str| {
        let wanted = |run: &&crate::Run| run.workload == row.workload && run.policy == policy;
        let runs = findings.judgement.runs.iter().filter(wanted).cloned().collect();
        let policy = PolicyRuns::new(policy, "", runs)?;
        let value = |run: &crate::Run| match table.of {
            Quantity::Time => Some(run.result.mean_execution_ns as f64 / 1e9),
            Quantity::L2Misses => Some(data::l2_misses(run, row.application.as_deref())? / COUNTS_A_SAMPLE),
            Quantity::OwnL2Misses => {
                Some(data::own_l2_misses(run, row.application.as_deref())? / COUNTS_A_SAMPLE)
            }
            Quantity::L3Misses => Some(data::l3_misses(run, row.application.as_deref())? / COUNTS_A_SAMPLE),
        };
        Some(Figure::of(policy.runs.iter().filter_map(value)))
    };
    let (base, new) = (runs(&findings.experiment.baseline)?, runs(&table.policy)?);
    let [paper_base, paper_new] = row.paper;
    let change = |from: f64, to: f64| format!("{:.0}", 100.0 * (to / from - 1.0));
    Some([
        paper_base.to_string(),
        paper_new.to_string(),
        change(paper_base, paper_new),
        format::spread(&base, format::significant),
        format::spread(&new, format::significant),
        change(base.mean, new.mean),
    ])
}

fn name(row: &TableRow) -> &str {
    row.application.as_deref().unwrap_or(&row.workload)
}

/// All of them as Markdown.
pub(super) fn markdown(findings: &Findings<'_>) -> String {
    let mut out = String::new();
    for table in &findings.experiment.tables {
        let _ = writeln!(out, "\n## {}\n\n| | {} |", table.title, COLUMNS.join(" | "));
        let _ = writeln!(out, "|---|{}", "--:|".repeat(COLUMNS.len()));
        for line in &table.rows {
            if let Some(cells) = row(findings, table, line) {
                let _ = writeln!(out, "| {} | {} |", name(line), cells.join(" | "));
            }
        }
    }
    out
}

/// All of them for a page.
pub(super) fn section(findings: &Findings<'_>) -> Markup {
    html! {
        @for table in &findings.experiment.tables {
            details.card {
                summary { (table.title) }
                @let lines = table.rows.iter().filter_map(|line| Some((name(line), row(findings, table, line)?)));
                (grid("", COLUMNS, lines))
            }
        }
    }
}
