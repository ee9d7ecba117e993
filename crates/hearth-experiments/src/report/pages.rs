//! What page policies make of recorded runs: figures 14, 15 and 16 and table 6 of the paper, for ours.

use super::grid::grid;
use super::{Figure, Findings, format};
use crate::trace_study::{Outcome, POLICIES, Study};
use hearth_report::plot::{Axis, Plot, SIDE, color, legend_in_order, level_lines, number};
use maud::{Markup, html};
use std::fmt::Write;

/// A workload with the studies of its runs, one for each seed; at least one.
struct Studied<'a> {
    workload: &'a str,
    studies: Vec<&'a Study>,
}

fn studied<'a>(findings: &Findings<'a>) -> Vec<Studied<'a>> {
    let mut workloads: Vec<Studied<'a>> = Vec::new();
    for run in &findings.judgement.runs {
        let Some(study) = &run.study else { continue };
        match workloads.iter_mut().find(|other| other.workload == run.workload) {
            Some(other) => other.studies.push(study),
            None => workloads.push(Studied { workload: &run.workload, studies: vec![study] }),
        }
    }
    workloads
}

impl Studied<'_> {
    fn figure(&self, policy: &str, measure: impl Fn(&Outcome) -> f64) -> Figure {
        Figure::of(self.studies.iter().filter_map(|study| study.outcome(policy)).map(measure))
    }
}

/// A row of table 6.
fn row(studied: &Studied<'_>, policy: &str) -> [String; 4] {
    let millions = |count: f64| format!("{:.2}", count / 1e6);
    let of = |measure: fn(&Outcome) -> f64| studied.figure(policy, measure);
    [
        format::spread(&of(|outcome| outcome.local_misses as f64), millions),
        format::spread(&of(|outcome| outcome.remote_misses as f64), millions),
        format::spread(&of(|outcome| outcome.moves as f64), format::count),
        format::spread(&of(Outcome::memory_s), format::significant),
    ]
}

const COLUMNS: [&str; 4] = ["local misses, M", "remote misses, M", "pages moved", "memory time, s"];

/// Table 6 as Markdown; nothing if no run was recorded.
pub(super) fn markdown(findings: &Findings<'_>) -> String {
    let mut out = String::new();
    for studied in studied(findings) {
        let _ = write!(out, "\n## Page policies: {}\n\n| policy |", studied.workload);
        COLUMNS.iter().for_each(|column| out.push_str(&format!(" {column} |")));
        out.push_str("\n|---|--:|--:|--:|--:|\n");
        for policy in POLICIES {
            let _ = writeln!(out, "| {policy} | {} |", row(&studied, policy).join(" | "));
        }
    }
    out
}

/// All of it for a page; nothing if no run was recorded.
pub(super) fn section(findings: &Findings<'_>) -> Markup {
    let workloads = studied(findings);
    let firsts: Vec<(&str, &Study)> =
        workloads.iter().filter_map(|studied| Some((studied.workload, *studied.studies.first()?))).collect();
    if firsts.is_empty() {
        return html! {};
    }
    html! {
        @for studied in &workloads { (table(studied)) }
        section {
            h2 { "TLB misses against cache misses" }
            p.hint {
                "The kernel can see TLB misses, and cache misses are what costs. Drawn for seed "
                (findings.seeds.first().copied().unwrap_or_default()) "."
            }
            div.many { (overlap(&firsts)) (ranks(&firsts)) @for (name, study) in &firsts { (placement(name, study)) } }
        }
    }
}

fn table(studied: &Studied<'_>) -> Markup {
    let pages = Figure::of(studied.studies.iter().map(|study| study.pages as f64));
    html! {
        section {
            h2 { "Page policies: " (studied.workload) }
            p.hint {
                "A memory for each CPU, " (format::spread(&pages, format::count)) " pages dealt over them. Local misses \
                 take 30 cycles, remote ones 150, at 33 MHz; a move takes 2 ms. The time is that of all CPUs together."
            }
            (grid("policy", COLUMNS, POLICIES.map(|policy| (policy, row(studied, policy)))))
        }
    }
}

/// A curve of values at 1, 2, ... 100 %.
fn curve(index: usize, values: &[f64], x: &Axis, y: &Axis, title: &str) -> Markup {
    let point = |(place, value): (usize, &f64)| {
        format!("{},{}", number(x.x((place + 1) as f64)), number(y.y(*value)))
    };
    let points: Vec<String> = values.iter().enumerate().map(point).collect();
    // Curves differ in more than colour.
    let dash = if index.is_multiple_of(2) { "none" } else { "7 4" };
    html! {
        polyline.curve style={ "stroke:" (color(index)) } stroke-dasharray=(dash) points=(points.join(" ")) {
            title { (title) }
        }
    }
}

fn percent_plot(
    y_title: &str,
    x_title: &str,
    description: String,
    drawing: &dyn Fn(&Axis, &Axis) -> Markup,
) -> Markup {
    let (x, y) = (Axis::from_zero(100.0), Axis::from_zero(100.0));
    let drawing = html! { (level_lines(&y)) (drawing(&x, &y)) };
    Plot { y_title, x_title, x: &x, y_labels: Plot::y_labels(&y), height: 220, description, drawing }.render()
}

/// Figure 14.
fn overlap(firsts: &[(&str, &Study)]) -> Markup {
    let drawing = |x: &Axis, y: &Axis| {
        html! {
            @for (index, (name, study)) in firsts.iter().enumerate() { (curve(index, &study.overlap, x, y, name)) }
        }
    };
    html! {
        figure {
            h3 { "Hot pages by TLB misses that are hot by cache misses" }
            (legend_in_order(firsts.iter().map(|(name, _)| *name)))
            (percent_plot(
                "of these, hot by cache misses too, %",
                "hottest pages by TLB misses, %",
                "Overlap of hot pages by TLB misses and by cache misses".to_owned(),
                &drawing,
            ))
        }
    }
}

/// Figure 15.
fn ranks(firsts: &[(&str, &Study)]) -> Markup {
    let shares: Vec<Vec<f64>> = firsts.iter().map(|(_, study)| shares(&study.ranks.histogram)).collect();
    let ranks = shares.iter().map(Vec::len).max().unwrap_or_default();
    let x = Axis::between(0.5, ranks as f64 + 0.5);
    let y = Axis::from_zero(100.0);
    let width = 0.8 / firsts.len().max(1) as f64;
    let drawing = html! {
        (level_lines(&y))
        @for (index, (shares, (name, _))) in shares.iter().zip(firsts).enumerate() {
            @for (rank, share) in shares.iter().enumerate().filter(|(_, share)| **share > 0.0) {
                @let left = rank as f64 + 0.6 + width * index as f64;
                rect x=(number(x.x(left))) width=(number(width / ranks as f64 * SIDE)) y=(number(y.y(*share)))
                    height=(number(y.x(*share))) style={ "fill:" (color(index)) } {
                    title { (name) (format!(": rank {} for {share:.1} % of hot pages", rank + 1)) }
                }
            }
        }
    };
    let plot = Plot {
        y_title: "hot pages (over 500 cache misses), by second, %",
        x_title: "rank by TLB misses of the CPU with most cache misses",
        x: &x,
        y_labels: Plot::y_labels(&y),
        height: 220,
        description: "How the CPU with most cache misses to a page ranks by TLB misses".to_owned(),
        drawing,
    };
    html! {
        figure {
            h3 { "Is it the same CPU?" }
            (legend_in_order(firsts.iter().map(|(name, _)| *name)))
            (plot.render())
        }
    }
}

/// In percent.
fn shares(histogram: &[u64]) -> Vec<f64> {
    let all = histogram.iter().sum::<u64>().max(1) as f64;
    histogram.iter().map(|count| 100.0 * *count as f64 / all).collect()
}

/// Figure 16.
fn placement(name: &str, study: &Study) -> Markup {
    let names = ["by cache misses", "by TLB misses"];
    let drawing = |x: &Axis, y: &Axis| {
        html! {
            (curve(0, &study.placement.by_cache, x, y, names[0]))
            (curve(1, &study.placement.by_tlb, x, y, names[1]))
        }
    };
    html! {
        figure {
            h3 { (name) ": each page where most of its misses are" }
            (legend_in_order(names))
            (percent_plot(
                "local of all cache misses, %",
                "pages so placed, those with most cache misses first, %",
                format!("Local misses of {name} with pages placed after the fact"),
                &drawing,
            ))
        }
    }
}
