//! A comparison as text for a terminal.

use crate::cells::{change, count, measures_of, spread};
use comfy_table::{Attribute, Cell, Table};
use hearth_command::table::table;
use hearth_experiments::report::{Comparison, PolicyRuns, RESULTS, Summary};
use hearth_report::{Figure, format};
use hearth_sim::measure::Tally;

/// What changes, what it comes from, applications if asked for, and the sentences.
pub fn text(comparison: &Comparison, verbose: bool) -> String {
    let measures = comparison.measures();
    let (results, causes) = measures.split_at(RESULTS);
    let rows: Vec<(&str, &Summary)> =
        comparison.policies.iter().map(|policy| (policy.name.as_str(), &policy.summary)).collect();
    let mut text = format!(
        "{}\n\n{}\n\nWhat it comes from\n\n{}\n",
        title(comparison),
        measures_of("policy", results, &rows),
        measures_of("policy", causes, &rows)
    );
    if verbose {
        text.push_str(&format!("\nEach application\n\n{}\n", applications(comparison)));
    }
    text.push('\n');
    comparison.sentences().iter().for_each(|sentence| text.push_str(&format!("{sentence}\n")));
    comparison.plans().iter().for_each(|plans| text.push_str(&format!("{plans}\n")));
    if comparison.partial {
        text.push_str("This is partial: some runs were not finished.\n");
    }
    text
}

fn title(comparison: &Comparison) -> String {
    let Comparison { workload, machine, scale, .. } = comparison;
    let spread = if comparison.seeds.len() > 1 { " (means, with least..greatest)" } else { "" };
    format!("{workload} on {machine}, scale {scale}, {}{spread}", format::seeds(&comparison.seeds))
}

fn applications(comparison: &Comparison) -> Table {
    let mut table = table(
        &[
            "\napplication",
            "\npolicy",
            "time\ns",
            "\nchange",
            "CPU time\ns",
            "misses\nM",
            "\nswitches",
            "CPU\nmoves",
            "slice\nms",
            "response\nms",
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
        count(&tally(|tally| tally.switches as f64)),
        count(&tally(|tally| tally.cpu_moves as f64)),
        figure(tally(|tally| tally.slices.mean_ms())),
        figure(tally(|tally| tally.wake_wait_ns as f64 / 1e6 / tally.wakeups.max(1) as f64)),
    ]
}
