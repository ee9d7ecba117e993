//! A comparison as text for a terminal.

use crate::cells::{change, count, spread};
use comfy_table::{Attribute, Cell, Table};
use hearth_command::table::{number, table};
use hearth_experiments::report::{Comparison, PolicyRuns, Summary};
use hearth_report::{Figure, format};
use hearth_sim::measure::Tally;
use std::iter;

/// What changes, what it comes from, applications if asked for, and the sentences.
pub fn text(comparison: &Comparison, verbose: bool) -> String {
    let (results, causes) = (results(comparison), causes(comparison));
    let mut text = format!(
        "{}\n\n{}\n\nWhat it comes from\n\n{}\n",
        title(comparison),
        table_of(&results, comparison),
        table_of(&causes, comparison)
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

/// A column of a table of policies: its header, and its cell from a policy's figures and the base's.
type Column = (&'static str, fn(&Summary, Option<&Summary>) -> Cell);

/// What affinity can change for who waits for the programs, or pays for the machine.
fn results(comparison: &Comparison) -> Vec<Column> {
    // A base that takes seconds, or a machine of today, where all is over in milliseconds.
    let is_short = comparison.base().is_some_and(|base| base.summary.last_end_s.mean < 1.0);
    let [cpu_time, last_end, mean_time]: [Column; 3] = if is_short {
        [
            ("CPU time\nms", |is, _| milliseconds(&is.cpu_s)),
            ("last end\nms", |is, _| milliseconds(&is.last_end_s)),
            ("mean time\nms", |is, _| milliseconds(&is.execution_s)),
        ]
    } else {
        [
            ("CPU time\ns", |is, _| spread(&is.cpu_s, format::significant)),
            ("last end\ns", |is, _| spread(&is.last_end_s, format::significant)),
            ("mean time\ns", |is, _| spread(&is.execution_s, format::significant)),
        ]
    };
    vec![
        cpu_time,
        ("\nchange", |is, base| change(&is.cpu_s, base.map(|base| &base.cpu_s))),
        last_end,
        ("\nchange", |is, base| change(&is.last_end_s, base.map(|base| &base.last_end_s))),
        ("misses\nM", |is, _| spread(&is.misses, format::millions)),
        ("\nchange", |is, base| change(&is.misses, base.map(|base| &base.misses))),
        mean_time,
    ]
}

fn milliseconds(figure: &Figure) -> Cell {
    spread(figure, |seconds| format::significant(seconds * 1e3))
}

/// What the scheduler did; without columns for moves that the machine cannot have.
fn causes(comparison: &Comparison) -> Vec<Column> {
    let any =
        |differs: fn(&Summary) -> bool| comparison.policies.iter().any(|policy| differs(&policy.summary));
    let mut columns: Vec<Column> = vec![
        ("idle\n%", |is, _| number(format!("{:.1}", is.idle_percent.mean))),
        ("\nswitches", |is, _| count(&is.switches)),
        ("CPU\nmoves", |is, _| count(&is.cpu_moves)),
    ];
    if any(|summary| summary.domain_moves != summary.cpu_moves) {
        columns.push(("domain\nmoves", |is, _| count(&is.domain_moves)));
    }
    if any(|summary| summary.node_moves.high > 0.0) {
        columns.push(("node\nmoves", |is, _| count(&is.node_moves)));
    }
    columns.push(("slice\nms", |is, _| spread(&is.slice_ms, format::significant)));
    columns
}

fn table_of(columns: &[Column], comparison: &Comparison) -> Table {
    let header: Vec<&str> = iter::once("\npolicy").chain(columns.iter().map(|column| column.0)).collect();
    let mut table = table(&header, 1);
    for (index, policy) in comparison.policies.iter().enumerate() {
        let base = comparison.base().filter(|_| index > 0).map(|base| &base.summary);
        let name = Cell::new(&policy.name).add_attribute(Attribute::Bold);
        table.add_row(iter::once(name).chain(columns.iter().map(|column| column.1(&policy.summary, base))));
    }
    table
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
