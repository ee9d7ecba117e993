//! Machines of several memory nodes: figures 2 to 7 of Chandra, Devine, Verghese, Gupta and Rosenblum,
//! "Scheduling and Page Migration for Multiprocessor Compute Servers" (ASPLOS 1994), for our runs.

use super::bars::{Bars, compared_with, of_each};
use super::{Comparison, Figure, PolicyRuns, format};
use crate::numa::{copies, local_share, program};
use crate::policies::Names;
use hearth_report::plot::{Axis, Plot, color, legend, level_lines, number};
use hearth_sim::RunResult;
use hearth_sim::measure::{ApplicationResult, Sample, Tally};
use maud::{Markup, html};
use std::collections::BTreeSet;

/// Nothing on a machine of one node.
pub(super) fn section(comparison: &Comparison, followed: Option<&str>) -> Markup {
    let remote = |policy: &PolicyRuns| policy.runs[0].result.total.counters.remote_misses() > 0;
    if !comparison.policies.iter().any(remote) {
        return html! {};
    }
    html! {
        div.pair { (local_and_remote(comparison)) (load(comparison)) }
        (cpu_times(comparison))
        @if let Some(program) = followed { (pages(comparison, program)) }
    }
}

/// A bar of two parts.
pub(super) fn parts(axis: &Axis, parts: [(&str, f64, String); 2], unit: &str) -> Markup {
    html! {
        @for (name, value, color) in parts {
            div.bar.part title={ (name) ": " (format::significant(value)) " " (unit) }
                style={ "width:" (number(axis.percent(value))) "%;background:" (color) } {}
        }
    }
}

fn local_and_remote(comparison: &Comparison) -> Markup {
    let millions = |policy: &PolicyRuns, count: fn(&Tally) -> u64| {
        Figure::of(policy.runs.iter().map(|run| count(&run.result.total) as f64 / 1e6))
    };
    let all = |policy: &PolicyRuns| millions(policy, |total| total.counters.misses());
    let remote = |policy: &PolicyRuns| millions(policy, |total| total.counters.remote_misses()).mean;
    let bars =
        Bars { unit: "misses, millions", figures: of_each(comparison, all), show: format::significant };
    html! {
        section {
            h2 { "Local and remote misses" }
            p.hint {
                "Served by memory or a cache of the own node, or of another. Pages that move are misses too: "
                "the kernel reads and writes them. " (compared_with(comparison))
            }
            (legend([(color(2), "local"), (color(1), "remote")]))
            (bars.render(comparison, |policy, axis| {
                let remote = remote(policy);
                let local = all(policy).mean - remote;
                parts(axis, [("local", local, color(2)), ("remote", remote, color(1))], "M")
            }))
        }
    }
}

/// The programs of a workload, each once.
fn programs(comparison: &Comparison) -> Vec<&str> {
    let mut programs: Vec<&str> = Vec::new();
    for name in comparison.applications() {
        let program = program(name);
        if !programs.contains(&program) {
            programs.push(program);
        }
    }
    programs
}

fn cpu_times(comparison: &Comparison) -> Markup {
    html! {
        section {
            h2 { "CPU time by program" }
            p.hint {
                "Mean of a program's copies. The kernel's part has page faults, switches, ticks, and the moves "
                "of pages. " (compared_with(comparison))
            }
            (legend([(color(0), "program"), (color(4), "kernel")]))
            div.pair {
                @for program in programs(comparison) {
                    figure { h3 { (program) } (cpu_time(comparison, program)) }
                }
            }
        }
    }
}

fn cpu_time(comparison: &Comparison, program: &str) -> Markup {
    let seconds = |policy: &PolicyRuns, ns: fn(&Tally) -> f64| {
        let mean = |run: &crate::Run| {
            let times: Vec<f64> =
                copies(&run.result.applications, program).map(|(_, one)| ns(&one.tally)).collect();
            times.iter().sum::<f64>() / times.len().max(1) as f64 / 1e9
        };
        Figure::of(policy.runs.iter().map(mean))
    };
    let all = |policy: &PolicyRuns| seconds(policy, |tally| tally.cpu_ns as f64);
    let system = |policy: &PolicyRuns| seconds(policy, |tally| tally.counters.system_ps as f64 / 1e3).mean;
    let bars = Bars { unit: "CPU time, s", figures: of_each(comparison, all), show: format::significant };
    bars.render(comparison, |policy, axis| {
        let system = system(policy);
        let user = all(policy).mean - system;
        parts(axis, [("program", user, color(0)), ("kernel", system, color(4))], "s")
    })
}

/// Applications that have begun and not ended, as corners of a curve.
fn active(applications: &[ApplicationResult]) -> Vec<(u64, usize)> {
    let mut changes: Vec<(u64, bool)> = Vec::new();
    for application in applications {
        changes.push((application.start_ns, true));
        changes.push((application.start_ns + application.execution_ns, false));
    }
    changes.sort_unstable();
    let mut curve = vec![(0, 0)];
    let mut now: usize = 0;
    for (at_ns, begins) in changes {
        curve.push((at_ns, now));
        now = if begins { now + 1 } else { now.saturating_sub(1) };
        curve.push((at_ns, now));
    }
    curve
}

fn moves_pages(policy: &PolicyRuns) -> bool {
    Names::from(policy.name.as_str()).pages.is_some()
}

/// A policy's colour: that of what schedules, with or without page migration.
fn policy_color(comparison: &Comparison, policy: &PolicyRuns) -> String {
    let names: Vec<&str> = comparison.policies.iter().map(|policy| policy.name.as_str()).collect();
    color(schedulers_before(&names, &policy.name))
}

/// How many others schedule, each a policy and a planner, that come before that of `name`.
fn schedulers_before(names: &[&str], name: &str) -> usize {
    fn scheduler(name: &str) -> Names<'_> {
        Names { pages: None, ..Names::from(name) }
    }
    let others = names.iter().map(|other| scheduler(other)).take_while(|other| *other != scheduler(name));
    others.collect::<BTreeSet<_>>().len()
}

fn load(comparison: &Comparison) -> Markup {
    let first = |policy: &PolicyRuns| active(&policy.runs[0].result.applications);
    let curves: Vec<Vec<(u64, usize)>> = comparison.policies.iter().map(first).collect();
    let points = curves.iter().flatten();
    let longest = points.clone().map(|&(at_ns, _)| at_ns).max().unwrap_or_default();
    let most = points.map(|&(_, jobs)| jobs).max().unwrap_or_default();
    let (x, y) = (Axis::between(0.0, longest as f64 / 1e9), Axis::from_zero(most as f64));
    let drawing = html! {
        (level_lines(&y))
        @for (policy, curve) in comparison.policies.iter().zip(&curves) {
            polyline.curve style={ "stroke:" (policy_color(comparison, policy)) }
                stroke-dasharray=(if moves_pages(policy) { "none" } else { "5 4" })
                points=(corners(curve, &x, &y)) {
                title { (policy.name) ": done at " (format!("{:.1} s", curve_end_s(curve))) }
            }
        }
    };
    let plot = Plot {
        y_title: "active jobs",
        x_title: "time, s",
        x: &x,
        y_labels: Plot::y_labels(&y),
        height: 260,
        description: "Number of active jobs over time by policy".into(),
        drawing,
    };
    let plain = comparison.policies.iter().filter(|policy| !moves_pages(policy));
    html! {
        section {
            h2 { "Load profile" }
            p.hint { "Jobs that have begun and not ended. Dashed without page migration, solid with it." }
            (legend(plain.map(|policy| (policy_color(comparison, policy), policy.name.as_str()))))
            (plot.render())
        }
    }
}

fn curve_end_s(curve: &[(u64, usize)]) -> f64 {
    curve.last().map_or(0.0, |&(at_ns, _)| at_ns as f64 / 1e9)
}

fn corners(curve: &[(u64, usize)], x: &Axis, y: &Axis) -> String {
    let corner = |&(at_ns, jobs): &(u64, usize)| {
        format!("{},{}", number(x.x(at_ns as f64 / 1e9)), number(y.y(jobs as f64)))
    };
    curve.iter().map(corner).collect::<Vec<_>>().join(" ")
}

/// The first copy of a program, under each policy: how many of its pages are where it runs.
fn pages(comparison: &Comparison, program: &str) -> Markup {
    let results = comparison.policies.iter().map(|policy| (policy, &policy.runs[0].result));
    let followed: Vec<_> = results
        .filter_map(|(policy, result)| Some((policy, result, copies(&result.applications, program).next()?)))
        .collect();
    let longest = followed.iter().map(|(_, _, (_, one))| one.execution_ns).max().unwrap_or_default();
    let (x, y) = (Axis::between(0.0, longest as f64 / 1e9), Axis::from_zero(100.0));
    html! {
        section {
            h2 { "Pages of " (program) " on its node" }
            p.hint {
                "The share of the first copy's pages in memory of the node where it runs. Marks below the curve "
                "are switches to another node."
            }
            div.many {
                @for (policy, result, (index, one)) in &followed {
                    figure {
                        h3 { (policy.name) " \u{b7} " (one.node_switches_ns.len()) " switches" }
                        (followed_plot(policy, result, *index, &x, &y))
                    }
                }
            }
        }
    }
}

fn followed_plot(policy: &PolicyRuns, result: &RunResult, index: usize, x: &Axis, y: &Axis) -> Markup {
    let one = &result.applications[index];
    let since_s = |at_ns: u64| at_ns.saturating_sub(one.start_ns) as f64 / 1e9;
    let inside = one.start_ns..one.start_ns + one.execution_ns;
    let point = |sample: &Sample| {
        let share = local_share(sample, index)?;
        let place = (x.x(since_s(sample.at_ns)), y.y(share * 100.0));
        inside.contains(&sample.at_ns).then(|| format!("{},{}", number(place.0), number(place.1)))
    };
    let points: Vec<String> = result.samples.iter().filter_map(point).collect();
    let drawing = html! {
        (level_lines(y))
        polyline.curve style={ "stroke:" (color(2)) } points=(points.join(" ")) {}
        @for &switch_ns in &one.node_switches_ns {
            @let at = number(x.x(since_s(switch_ns)));
            line.mark stroke-dasharray="none" x1=(at) x2=(at) y1="930" y2="1000" {}
        }
    };
    let plot = Plot {
        y_title: "pages on the own node, %",
        x_title: "time since its start, s",
        x,
        y_labels: Plot::y_labels(y),
        height: 150,
        description: format!("Share of local pages over time under {}", policy.name),
        drawing,
    };
    plot.render()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_schedules_alike_has_one_colour() {
        let names = ["light", "light+dash", "fair", "fair+masks", "fair+dash+masks", "light+masks"];
        assert_eq!(names.map(|name| schedulers_before(&names, name)), [0, 0, 1, 2, 2, 3]);
    }

    #[test]
    fn active_jobs_are_counted_from_their_start_to_their_end() {
        let job = |start_ns, execution_ns| ApplicationResult {
            name: "job".into(),
            start_ns,
            execution_ns,
            node_switches_ns: Vec::new(),
            tally: Tally::default(),
            parallel: None,
            is_background: false,
        };
        let corners = [(0, 0), (0, 0), (0, 1), (4, 1), (4, 2), (7, 2), (7, 1), (10, 1), (10, 0)];
        assert_eq!(active(&[job(0, 10), job(4, 3)]), corners);
    }
}
