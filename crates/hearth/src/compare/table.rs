//! A comparison as text for a terminal.

use crate::table::{number, table};
use comfy_table::{Attribute, Cell, Color, Table};
use hearth_lab::report::{Comparison, Figure, PolicyRuns, format};
use hearth_sim::measure::Tally;

/// The table, applications if asked for, and the summary.
pub fn text(comparison: &Comparison, verbose: bool) -> String {
    let mut text = format!("{}\n\n{}\n", title(comparison), policies(comparison));
    if verbose {
        text.push_str(&format!("\nEach application\n\n{}\n", applications(comparison)));
    }
    text.push_str(&format!("\n{}\n", comparison.sentence()));
    if comparison.partial {
        text.push_str("This is partial: some runs were not finished.\n");
    }
    text
}

fn title(comparison: &Comparison) -> String {
    let Comparison { workload, machine, scale, .. } = comparison;
    let spread = if comparison.seeds.len() > 1 { " (medians, with least..greatest)" } else { "" };
    format!("{workload} on {machine}, scale {scale}, {}{spread}", format::seeds(&comparison.seeds))
}

fn policies(comparison: &Comparison) -> Table {
    let mut table = table(
        &[
            "policy",
            "time s",
            "change",
            "misses M",
            "change",
            "idle %",
            "switches",
            "CPU moves",
            "domain moves",
            "node moves",
            "slice ms",
        ],
        1,
    );
    for (index, policy) in comparison.policies.iter().enumerate() {
        let base = comparison.base().filter(|_| index > 0);
        table.add_row(policy_row(policy, base));
    }
    table
}

fn policy_row(policy: &PolicyRuns, base: Option<&PolicyRuns>) -> Vec<Cell> {
    let summary = &policy.summary;
    let base = base.map(|base| &base.summary);
    let count = |figure: &Figure| number(format::count(figure.median));
    vec![
        Cell::new(&policy.name).add_attribute(Attribute::Bold),
        spread(&summary.execution_s, format::significant),
        change(&summary.execution_s, base.map(|base| &base.execution_s)),
        spread(&summary.misses, format::millions),
        change(&summary.misses, base.map(|base| &base.misses)),
        number(format!("{:.1}", summary.idle_percent.median)),
        count(&summary.switches),
        count(&summary.cpu_moves),
        count(&summary.domain_moves),
        count(&summary.node_moves),
        spread(&summary.slice_ms, format::significant),
    ]
}

fn applications(comparison: &Comparison) -> Table {
    let mut table = table(
        &[
            "application",
            "policy",
            "time s",
            "change",
            "CPU time s",
            "misses M",
            "switches",
            "CPU moves",
            "slice ms",
            "response ms",
        ],
        2,
    );
    for application in comparison.applications() {
        for (index, policy) in comparison.policies.iter().enumerate() {
            let base = comparison.base().filter(|_| index > 0);
            table.add_row(application_row(application, policy, base));
        }
    }
    table
}

fn application_row(name: &str, policy: &PolicyRuns, base: Option<&PolicyRuns>) -> Vec<Cell> {
    let time = |policy: &PolicyRuns| {
        policy.application(name, |result, index| result.applications[index].execution_ns as f64 / 1e9)
    };
    let tally = |measure: fn(&Tally) -> f64| {
        policy.application(name, |result, index| measure(&result.applications[index].tally))
    };
    let figure = |figure: Figure| spread(&figure, format::significant);
    vec![
        Cell::new(name).add_attribute(Attribute::Bold),
        Cell::new(&policy.name),
        figure(time(policy)),
        change(&time(policy), base.map(time).as_ref()),
        figure(tally(|tally| tally.cpu_ns as f64 / 1e9)),
        spread(&tally(|tally| tally.counters.misses() as f64), format::millions),
        number(format::count(tally(|tally| tally.switches as f64).median)),
        number(format::count(tally(|tally| tally.cpu_moves as f64).median)),
        figure(tally(|tally| tally.slices.mean_ms())),
        figure(tally(|tally| tally.wake_wait_ns as f64 / 1e6 / tally.wakeups.max(1) as f64)),
    ]
}

/// The median, and below it the spread over the seeds if there is one.
fn spread(figure: &Figure, show: impl Fn(f64) -> String) -> Cell {
    let median = show(figure.median);
    let (low, high) = (show(figure.low), show(figure.high));
    number(if low == high { median } else { format!("{median}\n{low}..{high}") })
}

/// A change against the base: green where it is less, as less time and fewer misses are better.
fn change(figure: &Figure, base: Option<&Figure>) -> Cell {
    let Some(base) = base else { return number(String::new()) };
    let percent = figure.change_percent(base);
    let cell = number(format::change(percent));
    match percent {
        ..-0.5 => cell.fg(Color::Green),
        0.5.. => cell.fg(Color::Red),
        _ => cell,
    }
}
