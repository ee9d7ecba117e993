//! What ran where: tasks on CPUs over a stretch of time.

use super::{Comparison, PolicyRuns, format};
use hearth_report::plot::{Axis, Plot, color, legend_in_order, number};
use hearth_sim::RunResult;
use hearth_sim::measure::Stretch;
use maud::{Markup, html};

/// The stretch of time that is shown.
const WINDOW_NS: u64 = 2_000_000_000;
/// The stretch is shortened until it holds no more than this, over all policies.
const MOST_STRETCHES: usize = 6000;
/// Tasks of an application are told apart by shades, which repeat.
const SHADES: usize = 4;

/// A chart for each policy, one of which is chosen; nothing if no timeline was kept.
pub(super) fn section(comparison: &Comparison) -> Markup {
    let kept: Vec<(&PolicyRuns, &RunResult)> = comparison
        .policies
        .iter()
        .filter_map(|policy| {
            let run = policy.runs.iter().find(|run| !run.result.timeline.is_empty())?;
            Some((policy, &run.result))
        })
        .collect();
    if kept.is_empty() {
        return html! {};
    }
    let (from_ns, to_ns) = window(&kept);
    let x = Axis::between(from_ns as f64 / 1e9, to_ns as f64 / 1e9);
    let names = comparison.applications();
    html! {
        section {
            div.head {
                h2 { "What ran where" }
                label.script.unit {
                    "Policy " select data-shows="runs" {
                        @for (index, (policy, _)) in kept.iter().enumerate() { option value=(index) { (policy.name) } }
                    }
                }
            }
            p.hint {
                "Each block is a task that ran on a CPU without another in between; shades tell the tasks of an \
                 application apart, gaps are idle time. " (format::significant((x.high - x.low) * 1e3)) " ms from the middle of the run"
                ", seed " (comparison.seeds.first().copied().unwrap_or_default()) "."
            }
            (legend_in_order(names.iter().copied()))
            @for (index, (policy, result)) in kept.iter().enumerate() {
                figure data-run=(index) {
                    h3 { (policy.name) }
                    div.scroll { (chart(policy, result, &x, from_ns, to_ns)) }
                }
            }
        }
    }
}

/// The middle of the shortest run; shorter if there is too much in it.
fn window(kept: &[(&PolicyRuns, &RunResult)]) -> (u64, u64) {
    let shortest = kept.iter().map(|(_, result)| result.elapsed_ns).min().unwrap_or_default();
    let middle = |length: u64| ((shortest - length) / 2, (shortest + length) / 2);
    let within = |(from, to): (u64, u64)| -> usize {
        let inside = |result: &RunResult| result.timeline.iter().filter(|s| overlaps(s, from, to)).count();
        kept.iter().map(|(_, result)| inside(result)).sum()
    };
    let mut length = WINDOW_NS.min(shortest);
    while within(middle(length)) > MOST_STRETCHES && length > 1_000_000 {
        length /= 2;
    }
    middle(length)
}

fn overlaps(stretch: &Stretch, from_ns: u64, to_ns: u64) -> bool {
    stretch.start_ns < to_ns && stretch.end_ns > from_ns
}

fn chart(policy: &PolicyRuns, result: &RunResult, x: &Axis, from_ns: u64, to_ns: u64) -> Markup {
    let shades = shades(result);
    let row = 1.0 / result.cpus.max(1) as f64;
    let shown = result.timeline.iter().filter(|stretch| overlaps(stretch, from_ns, to_ns));
    let drawing = html! {
        @for stretch in shown {
            @if let Some(task) = result.tasks.get(stretch.task) {
                @let left = x.x(stretch.start_ns.max(from_ns) as f64 / 1e9);
                @let right = x.x(stretch.end_ns.min(to_ns) as f64 / 1e9);
                rect.run x=(number(left)) width=(number(right - left))
                    y=(number((stretch.cpu as f64 + 0.08) * row * 1000.0)) height=(number(row * 840.0))
                    style={ "fill:" (shade(task.application, shades[stretch.task])) } {
                    title { (describe(result, stretch)) }
                }
            }
        }
    };
    let label = |cpu: usize| (1.0 - (cpu as f64 + 0.5) * row, format!("CPU {cpu}"));
    let every = result.cpus.div_ceil(32).max(1);
    let plot = Plot {
        y_title: "",
        x_title: "time, s",
        x,
        y_labels: (0..result.cpus).step_by(every).map(label).collect(),
        height: (result.cpus * 34).clamp(60, 640),
        description: format!("Tasks on CPUs over time under {}", policy.name),
        drawing,
    };
    plot.render()
}

fn describe(result: &RunResult, stretch: &Stretch) -> String {
    let task = &result.tasks[stretch.task];
    let application = result.applications.get(task.application).map_or("", |application| &application.name);
    let name = format::task(application, &task.name);
    let (start, end) = (stretch.start_ns as f64 / 1e6, stretch.end_ns as f64 / 1e6);
    format!("{name} on CPU {}: {:.1} ms, from {start:.1} to {end:.1} ms", stretch.cpu, end - start)
}

/// For each task its number among the tasks of its application.
fn shades(result: &RunResult) -> Vec<usize> {
    let mut next = vec![0; result.applications.len()];
    let number = |task: &hearth_sim::measure::TaskInfo| {
        let Some(next) = next.get_mut(task.application) else { return 0 };
        *next += 1;
        *next - 1
    };
    result.tasks.iter().map(number).collect()
}

fn shade(application: usize, number: usize) -> String {
    let base = color(application);
    match number % SHADES {
        0 => base,
        1 => format!("color-mix(in oklab,{base} 72%,white)"),
        2 => format!("color-mix(in oklab,{base} 76%,black)"),
        _ => format!("color-mix(in oklab,{base} 46%,white)"),
    }
}
