//! Where plans put parallel programs: the gang matrix and processor sets over time.

use super::{Comparison, PolicyRuns};
use hearth_machine::list::show_list;
use hearth_report::plot::{Axis, Plot, color, legend_in_order, number};
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
            (legend_in_order(names.iter().copied()))
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
    let drawing = html! {
        @for stay in stays(places, result.elapsed_ns) {
            @let (left, right) = (x.x(stay.from_ns as f64 / 1e9), x.x(stay.to_ns as f64 / 1e9));
            @for (first, count) in neighbours(&stay.place.cpus) {
                @let top = (stay.place.row.unwrap_or_default() * cpus + first) as f64 * line;
                rect.run x=(number(left)) width=(number(right - left))
                    y=(number(top + 0.08 * line)) height=(number((count as f64 - 0.16) * line))
                    style={ "fill:" (color(stay.place.application)) } {
                    title { (describe(result, &stay)) }
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

/// A program in one place for a time.
#[derive(Debug, PartialEq)]
struct Stay<'a> {
    place: &'a Place,
    from_ns: u64,
    to_ns: u64,
}

/// Who stayed where, and how long; by when they came.
fn stays(places: &[Places], end_ns: u64) -> Vec<Stay<'_>> {
    let mut stays: Vec<Stay<'_>> = Vec::new();
    let ends = places.iter().skip(1).map(|next| next.at_ns).chain([end_ns]);
    for (now, to_ns) in places.iter().zip(ends) {
        for place in &now.places {
            match stays.iter_mut().find(|stay| stay.to_ns == now.at_ns && stay.place == place) {
                Some(stay) => stay.to_ns = to_ns,
                None => stays.push(Stay { place, from_ns: now.at_ns, to_ns }),
            }
        }
    }
    stays
}

/// CPUs, which are ascending, as stretches of neighbours: the first, and how many.
fn neighbours(cpus: &[usize]) -> Vec<(usize, usize)> {
    let stretches = cpus.chunk_by(|one, next| one + 1 == *next);
    stretches.map(|stretch| (stretch[0], stretch.len())).collect()
}

fn describe(result: &RunResult, stay: &Stay<'_>) -> String {
    let Stay { place, from_ns, to_ns } = stay;
    let name = result.applications.get(place.application).map_or("", |application| &application.name);
    let row = place.row.map(|row| format!(", row {row}")).unwrap_or_default();
    let (from, to) = (*from_ns as f64 / 1e9, *to_ns as f64 / 1e9);
    format!("{name}: CPUs {}{row}, from {from:.1} to {to:.1} s", show_list(&place.cpus))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_stays_where_it_is_is_drawn_once() {
        let place = |application, cpus: &[usize]| Place { application, row: None, cpus: cpus.to_vec() };
        let at = |at_ns, places| Places { at_ns, rows: 0, places };
        let places = [
            at(10, vec![place(0, &[0, 1])]),
            at(20, vec![place(0, &[0, 1]), place(1, &[2])]),
            at(30, vec![place(0, &[0])]),
        ];
        let found: Vec<(usize, u64, u64)> = stays(&places, 50)
            .iter()
            .map(|stay| (stay.place.application, stay.from_ns, stay.to_ns))
            .collect();
        assert_eq!(found, [(0, 10, 30), (1, 20, 30), (0, 30, 50)]);
    }

    #[test]
    fn cpus_are_drawn_in_stretches_of_neighbours() {
        assert_eq!(neighbours(&[0, 1, 2, 5, 7, 8]), [(0, 3), (5, 1), (7, 2)]);
        assert_eq!(neighbours(&[]), []);
    }
}
