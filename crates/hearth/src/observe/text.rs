//! The report as text.

use super::format::{ceiling, range, significant};
use hearth_command::table::{number, table};
use hearth_observe::Report;
use hearth_observe::estimate::{Baseline, Estimate};
use hearth_observe::report::{Behind, Counted, ProgramReport, SMALL_SHARE};
use std::fmt::Write;

/// Everything, for people.
pub fn report(report: &Report, verbose: bool) -> String {
    let shown = shown(report, verbose);
    let mut text = String::new();
    let _ = writeln!(text, "{}\n", about(report));
    if !shown.is_empty() {
        let _ = writeln!(text, "{}\n", intervals(&shown));
        let _ = writeln!(text, "{}\n", moves(&shown));
        let _ = writeln!(text, "{}\n", waits(&shown));
        if shown.iter().any(|program| program.counted.is_some()) {
            let _ = writeln!(text, "{}\n", counted(&shown));
            let reloads = reloads(&shown);
            if !reloads.is_empty() {
                let _ = writeln!(text, "{reloads}\n");
            }
        }
    }
    let hidden = report.programs.len() - shown.len();
    if hidden > 0 {
        let _ = writeln!(
            text,
            "{hidden} programs with less than {} % each are left out (--verbose shows them)",
            100.0 * SMALL_SHARE
        );
    }
    for note in &report.notes {
        let _ = writeln!(text, "note: {note}");
    }
    if let Some(host) = host(report) {
        let _ = writeln!(text, "Meanwhile {host}.");
    }
    let _ = writeln!(text, "{}", overhead(report));
    let _ = writeln!(text, "{}", report.summary);
    text
}

/// Who makes whom wait, and no more: for people who asked who slows whom, where that cannot be told.
pub fn waiting(report: &Report, verbose: bool) -> String {
    let shown = shown(report, verbose);
    let mut text = format!("{}\n\n", about(report));
    if shown.is_empty() {
        text += "Nothing that was asked for ran. Longer (--for 1m) tells more.\n";
    } else {
        let _ = writeln!(text, "{}\n", waits(&shown));
    }
    let host = host(report).map(|host| format!("Meanwhile {host}.\n")).unwrap_or_default();
    text + &host + &overhead(report) + "\n"
}

/// Programs with enough CPU time to be shown.
pub(super) fn shown(report: &Report, verbose: bool) -> Vec<&ProgramReport> {
    let large = |program: &&ProgramReport| verbose || program.share_percent >= 100.0 * SMALL_SHARE;
    report.programs.iter().filter(large).collect()
}

fn about(report: &Report) -> String {
    let time = &report.cpu_time;
    format!(
        "{}: {:.1} s on {} CPUs, {:.0} switches a second; CPU time {:.0} % observed, {:.0} % others, {:.0} % kernel, {:.0} % idle",
        report.target,
        report.elapsed_s,
        report.cpus,
        report.switches_per_s,
        time.watched,
        time.others,
        time.kernel,
        time.idle
    )
}

/// What the host lacked, as far as its kernel says.
pub(super) fn host(report: &Report) -> Option<String> {
    let stolen = report.stolen_percent.map(|part| format!("a hypervisor took {part:.1} % of the CPUs' time"));
    let pressure = report
        .pressure_percent
        .map(|part| format!("some task of the host waited for a CPU in {part:.0} % of the time (PSI)"));
    let said: Vec<String> = [stolen, pressure].into_iter().flatten().collect();
    (!said.is_empty()).then(|| said.join("; "))
}

/// Who had the CPU for a tenth of the waiting or more, and how often it preempted.
pub(super) fn behind(program: &ProgramReport) -> String {
    const MOST: usize = 3;
    let told = |behind: &&Behind| behind.percent >= 10.0;
    let said = |behind: &Behind| {
        let preempted = match behind.preempted {
            0 => String::new(),
            count => format!(", preempted {count}"),
        };
        let itself = if behind.program == program.name { "itself" } else { &behind.program };
        format!("{itself} {:.0} %{preempted}", behind.percent)
    };
    let said: Vec<String> = program.waits.behind.iter().filter(told).take(MOST).map(said).collect();
    if said.is_empty() { "-".to_owned() } else { said.join("; ") }
}

fn waits(programs: &[&ProgramReport]) -> String {
    let header = ["program", "behind whom", "waited %", "wake-ups", "median µs", "99 % µs", "taken off"];
    let mut table = table(&header, 2);
    for program in programs {
        let waits = &program.waits;
        table.add_row([
            program.name.clone().into(),
            behind(program).into(),
            number(format!("{:.1}", waits.percent)),
            number(waits.wakeups.to_string()),
            number(significant(waits.wakeup_median_us)),
            number(significant(waits.wakeup_p99_us)),
            number(waits.taken_off.to_string()),
        ]);
    }
    format!("Waits for a CPU: after wake-ups, and after a task was taken off one\n{table}")
}

fn overhead(report: &Report) -> String {
    let overhead = &report.overhead;
    let Some(percent) = overhead.percent else {
        return "Observing: the kernel did not say what it cost.".to_owned();
    };
    let mut text = format!(
        "Observing took {} % of the busy CPU time, {:.0} ns a switch",
        significant(percent),
        overhead.ns_per_switch.unwrap_or_default()
    );
    if let Some(read_ns) = overhead.read_ns {
        let _ = write!(
            text,
            "; counters were read in {:.0} % of the intervals, {read_ns:.0} ns each time",
            report.counted_percent
        );
    }
    text + "."
}

fn intervals(programs: &[&ProgramReport]) -> String {
    let header = [
        "program",
        "CPU s",
        "share %",
        "intervals",
        "mean ms",
        "median",
        "quantum %",
        "preempted",
        "yield",
        "block",
        "exit",
        "slices",
        "mean ms",
        "median",
    ];
    let mut table = table(&header, 1);
    for program in programs {
        let mut row = vec![
            program.name.clone().into(),
            number(significant(program.cpu_s)),
            number(format!("{:.1}", program.share_percent)),
            number(program.intervals.count.to_string()),
            number(significant(program.intervals.mean_ms)),
            number(significant(program.intervals.median_ms)),
        ];
        row.extend(program.ends_percent.iter().map(|(_, percent)| number(format!("{percent:.0}"))));
        row.push(number(program.slices.count.to_string()));
        row.push(number(significant(program.slices.mean_ms)));
        row.push(number(significant(program.slices.median_ms)));
        table.add_row(row);
    }
    format!("Dispatch intervals, why they end, and effective time slices\n{table}")
}

fn moves(programs: &[&ProgramReport]) -> String {
    let header =
        ["program", "starts", "nothing else ran", "others ran", "CPU moves", "domain moves", "node moves"];
    let mut table = table(&header, 1);
    for program in programs {
        let moves = &program.moves;
        let counts = [moves.starts, moves.same, moves.others, moves.cpu, moves.domain, moves.node];
        let row = counts.iter().map(|count| number(count.to_string()));
        table.add_row(std::iter::once(program.name.clone().into()).chain(row));
    }
    format!("Intervals by what happened before\n{table}")
}

fn counted(programs: &[&ProgramReport]) -> String {
    let header = [
        "program",
        "instructions M",
        "cycles each",
        "misses M",
        "per 1000 instr.",
        "steady",
        "ns a miss",
        "ceiling %",
        "by cycles %",
    ];
    let mut table = table(&header, 1);
    for program in programs {
        let Some(counted) = &program.counted else { continue };
        table.add_row([
            program.name.clone().into(),
            number(significant(counted.instructions_millions)),
            number(format!("{:.2}", counted.cycles_per_instruction)),
            number(significant(counted.misses_millions)),
            number(significant(counted.misses_per_ki)),
            number(steady(counted)),
            number(miss_cost(counted)),
            number(ceiling(counted.ceiling.as_ref())),
            number(counted.ceiling_by_cycles_percent.map_or("-".to_owned(), |share| range(&share))),
        ]);
    }
    format!("Counters, and the share of CPU time that affinity could win at most\n{table}")
}

pub(super) fn steady(counted: &Counted) -> String {
    match (counted.steady_misses_per_ki, counted.baseline) {
        (Some(rate), Some(Baseline::FromMs(from))) if from < 1.0 => {
            format!("{} (from {from:.2} ms)", significant(rate.value))
        }
        (Some(rate), Some(Baseline::Undisturbed)) => format!("{} (undisturbed)", significant(rate.value)),
        (Some(rate), _) => significant(rate.value),
        _ => "not seen".to_owned(),
    }
}

pub(super) fn miss_cost(counted: &Counted) -> String {
    match counted.miss_ns {
        Some(cost) if cost.own => significant(cost.ns.value),
        Some(cost) => format!("{} (all)", significant(cost.ns.value)),
        None => "-".to_owned(),
    }
}

fn reloads(programs: &[&ProgramReport]) -> String {
    let mut table = table(&["program", "before", "intervals", "misses (95 %)", "µs (95 %)"], 2);
    let mut rows = 0;
    for program in programs {
        for reload in program.counted.iter().flat_map(|counted| &counted.reloads) {
            rows += 1;
            table.add_row([
                program.name.clone().into(),
                reload.after.into(),
                number(reload.intervals.to_string()),
                number(signed(&reload.misses)),
                number(reload.us.map_or("-".to_owned(), |us| signed(&us))),
            ]);
        }
    }
    if rows == 0 { String::new() } else { format!("Reload transient of an interval\n{table}") }
}

pub(super) fn signed(estimate: &Estimate) -> String {
    format!(
        "{} ({} to {})",
        significant(estimate.value),
        significant(estimate.low),
        significant(estimate.high)
    )
}
