//! Where plans put parallel programs: the gang matrix and processor sets over time.

use super::{Comparison, PolicyRuns};
use hearth_machine::list::show_list;
use hearth_page::plot::{Axis, Plot, color, legend, number};
use hearth_sim::RunResult;
use hearth_sim::measure::{Place, Places};
use maud::{Markup, html};

/// A chart for each policy that has gangs or sets (its first seed), all with one axis of time.
pub(super) fn section(comparison: &Comparison) -> Markup {
    let first = |policy| -> Option<(&PolicyRuns, &RunResult, &[Places])> {
        let policy: &PolicyRuns = policy;
        let result = &policy.runs.first()?.result;
        let places = result.planned.as_ref()?.places.as_slice();
        (!places.is_empty()).then_some((policy, result, places))
    };
    let shown: Vec<_> = comparison.policies.iter().filter_map(first).collect();
    if shown.is_empty() {
        return html! {};
    }
    let longest = shown.iter().map(|(_, result, _)| result.elapsed_ns).max().unwrap_or_default();
    let x = Axis::between(0.0, longest as f64 / 1e9);
    let names = comparison.applications();
    html! {
        section #places {
            h2 { "Gangs and sets over time" }
            p.hint {
                "The CPUs that each parallel program has. Rows of time take turns: in each, the gangs in it run, \
                 and others only fill holes. A set is its program's always."
            }
            (legend(names.iter().enumerate().map(|(index, name)| (color(index), *name))))
            @for (policy, result, places) in shown {
                figure { h3 { (policy.name) } div.scroll { (chart(policy, result, places, &x)) } }
            }
        }
    }
}

fn chart(policy: &PolicyRuns, result: &RunResult, places: &[Places], x: &Axis) -> Markup {
    let cpus = result.cpus.max(1);
    let rows = places.iter().map(|places| places.rows).max().unwrap_or_default().max(1);
    let line = 1000.0 / (cpus * rows) as f64;
    let ends = places.iter().skip(1).map(|next| next.at_ns).chain([result.elapsed_ns]);
    let spans: Vec<(&Places, f64, f64)> = places
        .iter()
        .zip(ends)
        .map(|(now, end_ns)| (now, x.x(now.at_ns as f64 / 1e9), x.x(end_ns as f64 / 1e9)))
        .collect();
    let drawing = html! {
        @for (now, left, right) in &spans {
            @for place in &now.places {
                @for (first, count) in neighbours(&place.cpus) {
                    @let top = (place.row.unwrap_or_default() * cpus + first) as f64 * line;
                    rect.run x=(number(*left)) width=(number(right - left))
                        y=(number(top + 0.08 * line)) height=(number((count as f64 - 0.16) * line))
                        style={ "fill:" (color(place.application)) } {
                        title { (describe(result, place, now.at_ns)) }
                    }
                }
            }
        }
    };
    let label = |row: usize| {
        let name = if rows == 1 { "CPU 0".to_owned() } else { format!("row {row}") };
        (1.0 - row as f64 / rows as f64 - line / 2000.0, name)
    };
    let plot = Plot {
        y_title: "",
        x_title: "time, s",
        x,
        y_labels: (0..rows).map(label).collect(),
        height: (rows * cpus * 6).clamp(90, 640),
        description: format!("CPUs of parallel programs over time under {}", policy.name),
        drawing,
    };
    plot.render()
}

/// CPUs, which are ascending, as stretches of neighbours: the first, and how many.
fn neighbours(cpus: &[usize]) -> Vec<(usize, usize)> {
    let stretches = cpus.chunk_by(|one, next| one + 1 == *next);
    stretches.map(|stretch| (stretch[0], stretch.len())).collect()
}

fn describe(result: &RunResult, place: &Place, at_ns: u64) -> String {
    let name = result.applications.get(place.application).map_or("", |application| &application.name);
    let row = place.row.map(|row| format!(", row {row}")).unwrap_or_default();
    format!("{name}: CPUs {}{row}, from {:.1} s", show_list(&place.cpus), at_ns as f64 / 1e9)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_are_drawn_in_stretches_of_neighbours() {
        assert_eq!(neighbours(&[0, 1, 2, 5, 7, 8]), [(0, 3), (5, 1), (7, 2)]);
        assert_eq!(neighbours(&[]), []);
    }
}
