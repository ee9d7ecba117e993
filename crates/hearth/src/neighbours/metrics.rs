//! Who slows whom as metrics for Prometheus, in a file.
//!
//! Programs come and go, and each pair of names is a time series: so only what is sure is told, the strongest
//! first, and of the rest how much it is.

use super::report::{By, Program, Report};
use hearth_host::service::{Labels, Metric, Number};
use hearth_linux::exposition;
use std::collections::BTreeSet;

/// Series of each metric, at most.
const MOST_SERIES: usize = 50;

/// Labels with how much somebody is slowed.
type Slowed = (Labels, By);

/// The metrics of a report.
pub(super) fn text(report: &Report, verbose: bool) -> String {
    exposition::text(metrics(&report.shown(verbose), report.elapsed_s))
}

fn metrics(victims: &[&Program], elapsed_s: f64) -> Vec<Metric> {
    let by_each = victims.iter().flat_map(|victim| {
        let labels =
            |aggressor: &str| vec![("victim", victim.name.clone()), ("aggressor", aggressor.to_owned())];
        victim.sure().map(move |(by, how)| (labels(&by.name), how))
    });
    let by_all = victims.iter().filter_map(|victim| {
        let sure = victim.slowed.filter(|slowed| slowed.sure)?;
        Some((vec![("victim", victim.name.clone())], sure))
    });
    let (pairs, pairs_left_out) = strongest(by_each.collect());
    let (all, victims_left_out) = strongest(by_all.collect());
    let left_out = [("pairs", pairs_left_out), ("victims", victims_left_out)];
    vec![
        family(
            Metric::ratio(
                "neighbours_slowdown",
                "How much longer a program takes because of one neighbour, as a part of what it takes beside such \
                 that never miss",
                0.0,
            ),
            pairs.iter().map(|(labels, by)| (labels.clone(), by.percent)),
        ),
        family(
            Metric::ratio("neighbours_slowdown_error", "The standard error of that", 0.0),
            pairs.iter().map(|(labels, by)| (labels.clone(), by.error)),
        ),
        family(
            Metric::ratio(
                "neighbours_slowdown_by_all",
                "How much longer a program takes because of all its neighbours together",
                0.0,
            ),
            all.iter().map(|(labels, by)| (labels.clone(), by.percent)),
        ),
        Metric {
            is_counter: false,
            ..Metric::counters(
                "neighbours_left_out",
                "Slowdowns that are sure, and not told because others are greater",
                "of",
                left_out,
            )
        },
        Metric {
            is_counter: false,
            ..Metric::seconds("neighbours_observed", "How long was observed", elapsed_s)
        },
    ]
}

/// The greatest slowdowns, and how many others there are. Of those whose labels are alike one is told, for a
/// series has one value.
fn strongest(mut slowed: Vec<Slowed>) -> (Vec<Slowed>, u64) {
    slowed.sort_by(|one, other| other.1.percent.total_cmp(&one.1.percent).then_with(|| one.0.cmp(&other.0)));
    let mut seen = BTreeSet::new();
    let (mut told, mut left_out) = (Vec::new(), 0);
    for (labels, by) in slowed {
        if told.len() < MOST_SERIES && seen.insert(labels.clone()) {
            told.push((labels, by));
        } else {
            left_out += 1;
        }
    }
    (told, left_out)
}

fn family(metric: Metric, percents: impl Iterator<Item = (Labels, f64)>) -> Metric {
    let values = percents.map(|(labels, percent)| (labels, Number::Real(percent / 100.0))).collect();
    Metric { values, ..metric }
}

#[cfg(test)]
mod tests {
    use super::super::report::tests::{program, report, slowing};
    use super::*;
    use std::collections::BTreeMap;

    /// Labels and value of each series, by the metric's name.
    type Series = BTreeMap<String, Vec<(BTreeMap<String, String>, f64)>>;

    /// Reads the exposition format, and refuses what Prometheus would.
    fn parsed(text: &str) -> Series {
        let mut series = Series::new();
        let mut types = BTreeSet::new();
        let lines = text.strip_suffix("# EOF\n").expect("an end");
        for line in lines.lines() {
            if let Some(comment) = line.strip_prefix("# ") {
                let words: Vec<&str> = comment.splitn(3, ' ').collect();
                assert!(["HELP", "TYPE", "UNIT"].contains(&words[0]) && words.len() == 3, "{line}");
                if words[0] == "TYPE" {
                    assert!(types.insert(words[1].to_owned()), "twice: {line}");
                }
                continue;
            }
            let end = line.find(['{', ' ']).expect("a value");
            let (name, rest) = line.split_at(end);
            assert!(types.contains(name), "no type: {line}");
            let (labels, value) = labels(rest);
            let of_name = series.entry(name.to_owned()).or_default();
            assert!(of_name.iter().all(|(other, _)| *other != labels), "twice: {line}");
            of_name.push((labels, value.trim().parse().expect("a number")));
        }
        series
    }

    /// The labels at the beginning of a text, and what follows them.
    fn labels(text: &str) -> (BTreeMap<String, String>, &str) {
        let mut labels = BTreeMap::new();
        let Some(mut rest) = text.strip_prefix('{') else { return (labels, text) };
        loop {
            let (key, quoted) = rest.split_once("=\"").expect("a label");
            let mut value = String::new();
            let mut characters = quoted.char_indices();
            let end = loop {
                match characters.next().expect("a closing quote") {
                    (at, '"') => break at,
                    (_, '\\') => value.push(match characters.next().expect("an escape").1 {
                        'n' => '\n',
                        other => other,
                    }),
                    (_, other) => value.push(other),
                }
            };
            assert_eq!(labels.insert(key.to_owned(), value), None, "{text}");
            match quoted[end + 1..].split_at(1) {
                (",", more) => rest = more,
                ("}", more) => return (labels, more),
                _ => panic!("{text}"),
            }
        }
    }

    fn named(name: &str, by: &[(&str, Option<hearth_policy::isolation::blame::Slowing>)]) -> Program {
        Program { name: name.into(), ..program(by) }
    }

    #[test]
    fn what_is_sure_is_read_as_it_was_found() {
        let odd = "a\"b\\c{d=1},e";
        let found = report(vec![
            named(odd, &[("backup", slowing(12.0, 1.0)), ("make", slowing(3.0, 2.0)), ("alike", None)]),
            named("nginx", &[("make", slowing(4.0, 1.0))]),
        ]);
        let series = parsed(&text(&found, false));
        let pair = |victim: &str, aggressor: &str| {
            [("victim", victim), ("aggressor", aggressor)]
                .map(|(key, value)| (key.into(), value.into()))
                .into()
        };
        let slowdowns = &series["hearth_neighbours_slowdown_ratios"];
        assert_eq!(*slowdowns, [(pair(odd, "backup"), 0.12), (pair("nginx", "make"), 0.04)]);
        assert_eq!(series["hearth_neighbours_slowdown_error_ratios"][0], (pair(odd, "backup"), 0.01));
        assert_eq!(series["hearth_neighbours_slowdown_by_all_ratios"].len(), 2);
        assert_eq!(series["hearth_neighbours_observed_seconds"][0].1, 10.0);
        assert!(series["hearth_neighbours_left_out"].iter().all(|(_, count)| *count == 0.0));
    }

    #[test]
    fn the_strongest_are_told_and_the_others_counted() {
        let names: Vec<String> = (0..MOST_SERIES + 7).map(|index| format!("p{index}")).collect();
        let by: Vec<_> = names
            .iter()
            .enumerate()
            .map(|(at, name)| (name.as_str(), slowing(10.0 + at as f64, 1.0)))
            .collect();
        let series = parsed(&text(&report(vec![program(&by)]), false));
        let slowdowns = &series["hearth_neighbours_slowdown_ratios"];
        assert_eq!(slowdowns.len(), MOST_SERIES);
        assert_eq!(slowdowns[0].0["aggressor"], format!("p{}", MOST_SERIES + 6));
        assert!(slowdowns.iter().all(|(_, ratio)| *ratio >= 0.17));
        let left_out = &series["hearth_neighbours_left_out"];
        assert_eq!(left_out.iter().map(|(_, count)| *count).collect::<Vec<_>>(), [7.0, 0.0]);
    }

    #[test]
    fn names_that_look_alike_are_one_series() {
        let by = [("(unknown)", slowing(12.0, 1.0)), ("(unknown)", slowing(30.0, 1.0))];
        let series = parsed(&text(&report(vec![program(&by)]), false));
        let slowdowns = &series["hearth_neighbours_slowdown_ratios"];
        assert_eq!(slowdowns.iter().map(|(_, ratio)| *ratio).collect::<Vec<_>>(), [0.3]);
    }

    #[test]
    fn nothing_found_is_a_file_without_slowdowns() {
        let series = parsed(&text(&report(Vec::new()), false));
        assert!(!series.contains_key("hearth_neighbours_slowdown_ratios"));
        assert_eq!(series["hearth_neighbours_observed_seconds"].len(), 1);
    }
}
