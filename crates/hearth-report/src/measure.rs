//! What is measured of a run: said once, for tables on a terminal, for pages, JSON and the docs.

use crate::bars::change;
use crate::{Figure, format};
use maud::{Markup, html};
use serde::Serializer;
use serde::ser::SerializeMap;
use std::fmt::Write;

/// A measure of what `S` sums up.
#[derive(Debug)]
pub struct Measure<S: 'static> {
    /// In JSON.
    pub key: &'static str,
    /// In headers.
    pub name: &'static str,
    /// Of the figures that are shown; empty for counts.
    pub unit: &'static str,
    /// In the docs, and for who points at a header of a page.
    pub meaning: &'static str,
    /// The figure, in the unit of its key.
    pub of: fn(&S) -> Figure,
    /// What that is multiplied with to be shown.
    pub factor: f64,
    /// A number as text.
    pub show: fn(f64) -> String,
    /// Whether the change against the first row is shown.
    pub changes: bool,
    /// In which tables it stands; those with these rows.
    pub stands: fn(&[&S]) -> bool,
}

impl<S> Clone for Measure<S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S> Copy for Measure<S> {}

impl<S> Measure<S> {
    /// A count of `meaning`, that stands in every table.
    pub const fn count(
        key: &'static str,
        name: &'static str,
        meaning: &'static str,
        of: fn(&S) -> Figure,
    ) -> Self {
        let (show, stands) = (format::count, |_: &[&S]| true);
        Self { key, name, unit: "", meaning, of, factor: 1.0, show, changes: false, stands }
    }

    /// One with a unit, to three digits.
    pub const fn of_unit(
        key: &'static str,
        name: &'static str,
        unit: &'static str,
        meaning: &'static str,
        of: fn(&S) -> Figure,
    ) -> Self {
        Self { unit, show: format::significant, ..Self::count(key, name, meaning, of) }
    }

    /// The same, and its change.
    #[must_use]
    pub const fn with_change(self) -> Self {
        Self { changes: true, ..self }
    }

    /// The same, in another unit.
    #[must_use]
    pub const fn shown_in(self, unit: &'static str, factor: f64) -> Self {
        Self { unit, factor, ..self }
    }

    /// The same, only in some tables.
    #[must_use]
    pub const fn where_it(self, stands: fn(&[&S]) -> bool) -> Self {
        Self { stands, ..self }
    }

    /// The figure as it is shown.
    pub fn figure(&self, is: &S) -> Figure {
        (self.of)(is).scaled(self.factor)
    }

    /// A header of two lines, for a terminal.
    pub fn header(&self) -> String {
        match (self.unit, self.name.split_once(' ')) {
            ("", Some((first, second))) => format!("{first}\n{second}"),
            ("", None) => format!("\n{}", self.name),
            (unit, _) => format!("{}\n{unit}", self.name),
        }
    }

    /// A header of one line.
    pub fn title(&self) -> String {
        if self.unit.is_empty() { self.name.to_owned() } else { format!("{}, {}", self.name, self.unit) }
    }
}

/// How often tasks changed, and where they went.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Moves {
    /// Switches to another task.
    pub switches: Figure,
    /// Starts on another CPU than the last.
    pub cpu: Figure,
    /// Of these, in another cache domain.
    pub domain: Figure,
    /// Of these, on another memory node.
    pub node: Figure,
}

/// The measures of [`Moves`], in its order.
pub const fn of_moves<S: AsRef<Moves>>() -> [Measure<S>; 4] {
    [
        Measure::count(
            "switches",
            "switches",
            "a CPU began to run another task than the one it ran last",
            |is: &S| is.as_ref().switches,
        ),
        Measure::count(
            "cpu_moves",
            "CPU moves",
            "a task began to run on another CPU than its last one",
            |is: &S| is.as_ref().cpu,
        ),
        Measure::count(
            "domain_moves",
            "domain moves",
            "of these: to another cache domain. Left out where it is the same in every row as CPU moves",
            |is: &S| is.as_ref().domain,
        )
        .where_it(|rows| rows.iter().any(|is| is.as_ref().domain != is.as_ref().cpu)),
        Measure::count(
            "node_moves",
            "node moves",
            "of these: to another memory node. Left out where there are none",
            |is: &S| is.as_ref().node,
        )
        .where_it(|rows| rows.iter().any(|is| is.as_ref().node.high > 0.0)),
    ]
}

/// What a measure is the sum of.
#[derive(Debug)]
pub struct Parts<S: 'static> {
    /// In JSON.
    pub key: &'static str,
    /// The sum's key.
    pub of: &'static str,
    /// What is told apart.
    pub title: &'static str,
    /// Each part's name.
    pub names: &'static [&'static str],
    /// Each part, in that order.
    pub figures: fn(&S) -> &[Figure],
}

impl<S> Parts<S> {
    /// Each part's name in CSV.
    fn keys(&self) -> impl Iterator<Item = String> {
        let words = |name: &str| name.replace(',', "").replace(' ', "_");
        self.names.iter().map(move |name| format!("{}_{}", self.key, words(name)))
    }
}

/// All measures by their keys, and parts behind their sums: for JSON.
///
/// # Errors
/// Those of the serializer.
pub fn serialize<S, Z: Serializer>(
    measures: &[Measure<S>],
    parts: &[Parts<S>],
    is: &S,
    serializer: Z,
) -> Result<Z::Ok, Z::Error> {
    let mut map = serializer.serialize_map(None)?;
    for measure in measures {
        map.serialize_entry(measure.key, &(measure.of)(is))?;
        for parts in parts.iter().filter(|parts| parts.of == measure.key) {
            map.serialize_entry(parts.key, (parts.figures)(is))?;
        }
    }
    map.end()
}

/// What [`row`] has, by name: each measure's key, and behind a sum its parts', as `causes_first_touch`.
pub fn header<S>(measures: &[Measure<S>], parts: &[Parts<S>]) -> Vec<String> {
    let with_parts = |measure: &Measure<S>| {
        let of_this = parts.iter().filter(|parts| parts.of == measure.key).flat_map(Parts::keys);
        std::iter::once(measure.key.to_owned()).chain(of_this).collect::<Vec<_>>()
    };
    measures.iter().flat_map(with_parts).collect()
}

/// The means of all measures and parts, for a row of CSV.
pub fn row<S>(measures: &[Measure<S>], parts: &[Parts<S>], is: &S) -> Vec<String> {
    let with_parts = |measure: &Measure<S>| {
        let of_this =
            parts.iter().filter(|parts| parts.of == measure.key).flat_map(|parts| (parts.figures)(is));
        std::iter::once((measure.of)(is)).chain(of_this.copied()).collect::<Vec<_>>()
    };
    measures.iter().flat_map(with_parts).map(|figure| figure.mean.to_string()).collect()
}

/// Those that stand in a table of these rows.
pub fn standing<S>(measures: &[Measure<S>], rows: &[&S]) -> Vec<Measure<S>> {
    measures.iter().copied().filter(|measure| (measure.stands)(rows)).collect()
}

/// A row of a page's table: who it is of, and in a sentence.
pub struct Row<'a, S> {
    /// Its name.
    pub name: &'a str,
    /// For who points at the name.
    pub description: &'a str,
    /// What the measures are of.
    pub is: &'a S,
}

/// A page's table of all measures that stand; changes are against the first row.
pub fn page_table<S>(head: &str, measures: &[Measure<S>], rows: &[Row<'_, S>]) -> Markup {
    let measures = standing(measures, &rows.iter().map(|row| row.is).collect::<Vec<_>>());
    html! {
        div.scroll { table {
            thead { tr {
                th scope="col" { (head) }
                @for measure in &measures {
                    th scope="col" title=(measure.meaning) { (measure.title()) }
                    @if measure.changes { th scope="col" { "change" } }
                }
            } }
            tbody {
                @for (index, row) in rows.iter().enumerate() {
                    tr {
                        th scope="row" title=(row.description) { (row.name) }
                        @for measure in &measures {
                            td { (cell(&measure.figure(row.is), measure.show)) }
                            @if measure.changes {
                                td { @if index > 0 {
                                    (change(measure.figure(row.is).change_percent(&measure.figure(rows[0].is))))
                                } }
                            }
                        }
                    }
                }
            }
        } }
    }
}

/// A figure with its spread, if it has one.
pub fn cell(figure: &Figure, show: fn(f64) -> String) -> Markup {
    html! {
        (show(figure.mean))
        @if figure.low < figure.high { small { (show(figure.low)) " to " (show(figure.high)) } }
    }
}

/// What the docs say of measures.
pub fn markdown<S>(measures: &[Measure<S>]) -> String {
    let mut text = String::from("| column | unit | key in JSON | meaning |\n|---|---|---|---|\n");
    for Measure { key, name, unit, meaning, .. } in measures {
        let _ = writeln!(text, "| {name} | {unit} | `{key}` | {meaning} |");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEASURES: [Measure<f64>; 2] = [
        Measure::of_unit("work_s", "work", "ms", "what is done", |is| Figure::of([*is]))
            .shown_in("ms", 1e3)
            .with_change(),
        Measure::count("node_moves", "node moves", "moves", |_| Figure::default())
            .where_it(|rows| rows.iter().any(|is| **is > 1.0)),
    ];

    #[test]
    fn a_measure_has_the_same_name_and_unit_wherever_it_stands() {
        let [work, moves] = MEASURES;
        assert_eq!((work.header(), work.title()), ("work\nms".into(), "work, ms".into()));
        assert_eq!((moves.header(), moves.title()), ("node\nmoves".into(), "node moves".into()));
        assert_eq!(work.figure(&0.5).mean, 500.0);
        assert!(markdown(&MEASURES).contains("| work | ms | `work_s` | what is done |"));
    }

    #[test]
    fn some_stand_only_where_they_tell_something() {
        let table = |values: &[f64]| {
            let row = |is| Row { name: "n", description: "", is };
            page_table("who", &MEASURES, &values.iter().map(row).collect::<Vec<_>>()).into_string()
        };
        assert!(!table(&[0.5, 1.0]).contains("node moves"));
        let both = table(&[1.0, 2.0]);
        assert!(both.contains("node moves") && both.contains("+100.0 %"), "{both}");
    }
}
