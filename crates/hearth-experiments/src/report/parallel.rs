//! Parallel programs by themselves in each setting: figures 8 to 12 of Chandra, Devine, Verghese, Gupta and
//! Rosenblum, "Scheduling and Page Migration for Multiprocessor Compute Servers" (ASPLOS 1994), for our runs.

use super::bars::{Bars, compared_with, of_each};
use super::clusters::parts;
use super::grid::grid;
use super::{Comparison, Figure, Findings, PolicyRuns, format};
use crate::parallel::{cpu_ns, parallel};
use crate::{Experiment, Run};
use hearth_report::plot::{color, legend};
use hearth_sim::measure::Parallel;
use maud::{Markup, html};
use std::fmt::Write;

/// The setting that others are compared with: all CPUs, alone.
const ALONE: &str = "s16";

/// The runs of each program, a setting in the place of a policy; [`ALONE`] first.
fn programs(findings: &Findings<'_>) -> Vec<Comparison> {
    let Experiment { programs, settings, machine, .. } = findings.experiment;
    let in_setting = |program: &str, setting: &crate::Setting| {
        let wanted = |run: &&Run| run.workload == program && run.setting.as_ref() == Some(setting);
        let runs = findings.judgement.runs.iter().filter(wanted).cloned().collect();
        PolicyRuns::new(&setting.name, &setting.description, runs)
    };
    let comparison = |program: &String| Comparison {
        machine: machine.clone(),
        machine_description: String::new(),
        workload: program.clone(),
        scale: findings.scale,
        seeds: findings.seeds.to_vec(),
        partial: findings.partial,
        policies: {
            let mut all: Vec<PolicyRuns> =
                settings.iter().filter_map(|setting| in_setting(program, setting)).collect();
            all.sort_by_key(|setting| setting.name != ALONE);
            all
        },
    };
    let compares = |comparison: &Comparison| comparison.base().is_some_and(|base| base.name == ALONE);
    programs.iter().map(comparison).filter(compares).collect()
}

fn figure(setting: &PolicyRuns, measure: impl Fn(&Run) -> Option<f64>) -> Figure {
    Figure::of(setting.runs.iter().filter_map(measure))
}

fn of_section(setting: &PolicyRuns, measure: impl Fn(Parallel) -> u64, unit: f64) -> Figure {
    figure(setting, |run| Some(measure(parallel(run)?) as f64 / unit))
}

/// In seconds, of all CPUs together.
fn cpu_time(setting: &PolicyRuns) -> Figure {
    figure(setting, |run| Some(cpu_ns(run)? / 1e9))
}

fn misses(setting: &PolicyRuns) -> Figure {
    of_section(setting, |parallel| parallel.counters.misses(), 1e6)
}

fn remote(setting: &PolicyRuns) -> Figure {
    of_section(setting, |parallel| parallel.counters.remote_misses(), 1e6)
}

const COLUMNS: [&str; 7] = [
    "time, s",
    "CPU time, % of s16",
    "misses, M",
    "% of s16",
    "local, M",
    "remote, M",
    "of these from a cache, M",
];

/// What a setting came to, column by column.
fn row(setting: &PolicyRuns, alone: &PolicyRuns) -> [String; 7] {
    let percent =
        |of: fn(&PolicyRuns) -> Figure| format!("{:.0}", 100.0 + of(setting).change_percent(&of(alone)));
    let (all, remote) = (misses(setting), remote(setting));
    let cache = of_section(setting, |parallel| parallel.counters.cache_to_cache, 1e6);
    [
        format::spread(&of_section(setting, |parallel| parallel.ns, 1e9), format::significant),
        percent(cpu_time),
        format::spread(&all, format::significant),
        percent(misses),
        format::significant(all.mean - remote.mean),
        format::significant(remote.mean),
        format::significant(cache.mean),
    ]
}

/// A table for each program as Markdown.
pub(super) fn markdown(findings: &Findings<'_>) -> String {
    let mut out = String::new();
    for program in programs(findings) {
        let Some(alone) = program.base() else { continue };
        let _ =
            writeln!(out, "\n## {}, parallel section\n\n| | | {} |", program.workload, COLUMNS.join(" | "));
        let _ = writeln!(out, "|---|---|{}", "--:|".repeat(COLUMNS.len()));
        for setting in &program.policies {
            let (name, what) = (&setting.name, &setting.description);
            let _ = writeln!(out, "| {name} | {what} | {} |", row(setting, alone).join(" | "));
        }
    }
    out
}

/// All of it for a page.
pub(super) fn section(findings: &Findings<'_>) -> Markup {
    html! {
        @for program in programs(findings) {
            details.card {
                summary { (program.workload) ": the parallel section in each setting" }
                div {
                    div.pair { (cpu_times(&program)) (all_misses(&program)) }
                    @if let Some(alone) = program.base() { (table(&program, alone)) }
                }
            }
        }
    }
}

fn cpu_times(program: &Comparison) -> Markup {
    let bars = Bars { unit: "CPU time, s", figures: of_each(program, cpu_time), show: format::significant };
    html! {
        section {
            h2 { "CPU time" }
            p.hint { "The section's time on all CPUs that the program has. " (compared_with(program)) }
            (bars.plain(program))
        }
    }
}

fn all_misses(program: &Comparison) -> Markup {
    let bars =
        Bars { unit: "misses, millions", figures: of_each(program, misses), show: format::significant };
    html! {
        section {
            h2 { "Local and remote misses" }
            p.hint { "Served by memory or a cache of the own cluster, or of another. " (compared_with(program)) }
            (legend([(color(2), "local"), (color(1), "remote")]))
            (bars.render(program, |setting, axis| {
                let remote = remote(setting).mean;
                let local = misses(setting).mean - remote;
                parts(axis, [("local", local, color(2)), ("remote", remote, color(1))], "M")
            }))
        }
    }
}

fn table(program: &Comparison, alone: &PolicyRuns) -> Markup {
    let cells = |setting| row(setting, alone).into_iter().chain([setting.description.clone()]);
    let rows = program.policies.iter().map(|setting| (&setting.name, cells(setting)));
    grid("setting", COLUMNS.into_iter().chain([""]), rows)
}
