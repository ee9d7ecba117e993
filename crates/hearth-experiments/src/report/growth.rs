//! CPU time over time, by application.

use super::{Comparison, PolicyRuns};
use hearth_report::plot::{Axis, Plot, color, legend_in_order, level_lines, number};
use hearth_sim::RunResult;
use maud::{Markup, html};

/// Curves differ in more than colour, so that one on top of another lets it be seen.
const DASHES: [&str; 4] = ["none", "7 4", "2 3", "10 3 2 3"];
/// Points of a curve, at most.
const MOST_POINTS: usize = 160;

/// A chart for each policy (its first seed), all on the same axes.
pub(super) fn section(comparison: &Comparison) -> Markup {
    let results = comparison.policies.iter().filter_map(|policy| policy.runs.first()).map(|run| &run.result);
    let results: Vec<&RunResult> = results.collect();
    let longest = results.iter().map(|result| result.elapsed_ns).max().unwrap_or_default();
    let cpu_ns = |result: &&RunResult| result.applications.iter().map(|one| one.tally.cpu_ns).max();
    let most = results.iter().filter_map(cpu_ns).max().unwrap_or_default();
    let (x, y) = (Axis::between(0.0, longest as f64 / 1e9), Axis::from_zero(most as f64 / 1e9));
    let names = comparison.applications();
    html! {
        section {
            h2 { "CPU time over time" }
            p.hint {
                "CPU time that each application has had. While all run, parallel curves mean that \
                 nobody is favoured."
            }
            (legend_in_order(names.iter().copied()))
            div.many {
                @for (policy, result) in comparison.policies.iter().zip(&results) {
                    (chart(policy, result, &x, &y))
                }
            }
        }
    }
}

fn chart(policy: &PolicyRuns, result: &RunResult, x: &Axis, y: &Axis) -> Markup {
    let drawing = html! {
        (level_lines(y))
        @for (index, application) in result.applications.iter().enumerate() {
            polyline.curve style={ "stroke:" (color(index)) } stroke-dasharray=(DASHES[index % DASHES.len()])
                points=(points(result, index, x, y)) {
                title {
                    (application.name)
                    (format!(": {:.2} s of CPU time", application.tally.cpu_ns as f64 / 1e9))
                    (format!(", done at {:.2} s", (application.start_ns + application.execution_ns) as f64 / 1e9))
                }
            }
        }
    };
    let plot = Plot {
        y_title: "CPU time received, s",
        x_title: "time, s",
        x,
        y_labels: Plot::y_labels(y),
        height: 170,
        description: format!("CPU time of each application over time under {}", policy.name),
        drawing,
    };
    html! { figure { h3 { (policy.name) } (plot.render()) } }
}

fn points(result: &RunResult, application: usize, x: &Axis, y: &Axis) -> String {
    let done = &result.applications[application];
    let done_ns = done.start_ns + done.execution_ns;
    let mut curve = vec![(done.start_ns, 0)];
    let stride = result.samples.len().div_ceil(MOST_POINTS).max(1);
    for sample in result.samples.iter().step_by(stride) {
        curve.push((sample.at_ns, sample.cpu_ns.get(application).copied().unwrap_or_default()));
    }
    curve.retain(|&(at_ns, _)| (done.start_ns..done_ns).contains(&at_ns));
    curve.push((done_ns, done.tally.cpu_ns));
    let point = |&(at_ns, cpu_ns): &(u64, u64)| {
        format!("{},{}", number(x.x(at_ns as f64 / 1e9)), number(y.y(cpu_ns as f64 / 1e9)))
    };
    curve.iter().map(point).collect::<Vec<_>>().join(" ")
}
