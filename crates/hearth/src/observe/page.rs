//! The report as one HTML page that needs no other file.

use super::charts;
use super::format::{ceiling, count, range, significant};
use super::text::{behind, host, shown};
use hearth_observe::Report;
use hearth_observe::report::{ProgramReport, Reload};
use hearth_report::{Page, Source};
use maud::{Markup, html};

/// The page.
pub fn page(report: &Report, verbose: bool, source: &Source) -> String {
    let programs = shown(report, verbose);
    let page = Page {
        subject: &report.target,
        heading: &format!("observed: {}", report.target),
        summary: &report.summary,
        about: html! { (about(report)) },
        partial: report.partial.then_some("the observation was interrupted."),
        body: html! {
            @for note in &report.notes { p.partial { (note) } }
            @if let Some(host) = host(report) { p.about { "Meanwhile " (host) "." } }
            @if let Some(first) = programs.first() { (tiles(report, first)) }
            div.pair { (charts::ceilings(&programs)) (charts::ends(&programs)) }
            (charts::transients(&programs))
            (charts::lengths(&programs))
            (charts::wakeups(&programs))
            (intervals(&programs))
            (waits(&programs))
            (counters(&programs))
            (reloads(&programs))
        },
        made: "on this machine's own kernel; no scheduler was loaded",
        source,
    };
    page.render()
}

fn about(report: &Report) -> String {
    let time = &report.cpu_time;
    format!(
        "{:.1} s on {} CPUs, {} switches a second. CPU time: {:.0} % observed, {:.0} % other processes, {:.0} % kernel threads, {:.0} % idle. Ranges are 95 % intervals.",
        report.elapsed_s,
        report.cpus,
        count(report.switches_per_s),
        time.watched,
        time.others,
        time.kernel,
        time.idle
    )
}

fn tiles(report: &Report, first: &ProgramReport) -> Markup {
    let tile = |name: &str, value: String, below: String| {
        html! { div.tile { dt { (name) } dd { (value) small { (below) } } } }
    };
    let counted = first.counted.as_ref();
    let overhead = &report.overhead;
    html! {
        p.about { b { (first.name) } ":" }
        dl.tiles {
            (tile("Ceiling", counted.map_or("-".to_owned(), |counted| ceiling(counted.ceiling.as_ref())),
                "% of CPU time, by misses".to_owned()))
            (tile("Ceiling", counted.and_then(|counted| counted.ceiling_by_cycles_percent).map_or("-".to_owned(), |share| range(&share)),
                "% of CPU time, by cycles".to_owned()))
            (tile("Dispatch interval", format!("{} ms", significant(first.intervals.median_ms)),
                format!("median; mean {} ms", significant(first.intervals.mean_ms))))
            (tile("Effective slice", format!("{} ms", significant(first.slices.median_ms)),
                format!("median; mean {} ms", significant(first.slices.mean_ms))))
            (tile("Observing took", overhead.percent.map_or("-".to_owned(), |percent| format!("{} %", significant(percent))),
                format!("of busy CPU time; counters read in {:.0} % of intervals", report.counted_percent)))
        }
    }
}

/// A table that scrolls where it is wider than the screen.
pub fn table(title: &str, hint: &str, header: &[&str], rows: Vec<Vec<String>>) -> Markup {
    html! {
        section {
            h2 { (title) }
            p.hint { (hint) }
            div.scroll {
                table {
                    thead { tr { @for name in header { th { (name) } } } }
                    tbody {
                        @for row in &rows {
                            tr {
                                @for (index, cell) in row.iter().enumerate() {
                                    @if index == 0 { th { (cell) } } @else { td { (cell) } }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn intervals(programs: &[&ProgramReport]) -> Markup {
    let row = |program: &&ProgramReport| {
        let moves = &program.moves;
        let counts = [moves.starts, moves.same, moves.others, moves.cpu, moves.domain, moves.node];
        let mut row = vec![
            program.name.clone(),
            significant(program.cpu_s),
            format!("{:.1}", program.share_percent),
            count(program.intervals.count as f64),
            count(program.slices.count as f64),
        ];
        row.extend(counts.iter().map(|moves| count(*moves as f64)));
        row
    };
    table(
        "Intervals and moves",
        "How many dispatch intervals and effective slices there were, and the intervals by what happened before each: \
         on the same CPU nothing else or others ran, or the task moved.",
        &[
            "program",
            "CPU s",
            "share %",
            "intervals",
            "slices",
            "starts",
            "nothing else",
            "others ran",
            "CPU moves",
            "domain moves",
            "node moves",
        ],
        programs.iter().map(row).collect(),
    )
}

fn waits(programs: &[&ProgramReport]) -> Markup {
    let row = |program: &&ProgramReport| {
        let waits = &program.waits;
        vec![
            program.name.clone(),
            format!("{:.1}", waits.percent),
            count(waits.wakeups as f64),
            significant(waits.wakeup_median_us),
            significant(waits.wakeup_p99_us),
            count(waits.taken_off as f64),
            behind(program),
        ]
    };
    table(
        "Waits for a CPU",
        "After a wake-up, or after a task was taken off a CPU though it could have gone on. Behind whom: who had the \
         CPU meanwhile, and for what part of the waiting.",
        &["program", "waited %", "wake-ups", "median µs", "99 % µs", "taken off", "behind whom"],
        programs.iter().map(row).collect(),
    )
}

fn counters(programs: &[&ProgramReport]) -> Markup {
    let row = |program: &&ProgramReport| {
        let counted = program.counted.as_ref()?;
        Some(vec![
            program.name.clone(),
            significant(counted.instructions_millions),
            format!("{:.2}", counted.cycles_per_instruction),
            significant(counted.misses_millions),
            significant(counted.misses_per_ki),
            super::text::steady(counted),
            super::text::miss_cost(counted),
            ceiling(counted.ceiling.as_ref()),
            counted.ceiling_by_cycles_percent.map_or("-".to_owned(), |share| range(&share)),
        ])
    };
    let rows: Vec<Vec<String>> = programs.iter().filter_map(row).collect();
    if rows.is_empty() {
        return html! {};
    }
    table(
        "Counters",
        "The steady state is what later parts of intervals do. The ceiling is reload cost over effective slice.",
        &[
            "program",
            "instr. M",
            "cycles each",
            "misses M",
            "per 1000 instr.",
            "steady",
            "ns a miss",
            "ceiling %",
            "by cycles %",
        ],
        rows,
    )
}

fn reloads(programs: &[&ProgramReport]) -> Markup {
    let row = |name: &str, reload: &Reload| {
        vec![
            format!("{name}, {}", reload.after),
            count(reload.intervals as f64),
            super::text::signed(&reload.misses),
            reload.us.map_or("-".to_owned(), |us| super::text::signed(&us)),
        ]
    };
    let each = |program: &&ProgramReport| {
        let reloads = program.counted.iter().flat_map(|counted| &counted.reloads);
        reloads.map(|reload| row(&program.name, reload)).collect::<Vec<_>>()
    };
    let rows: Vec<Vec<String>> = programs.iter().flat_map(each).collect();
    if rows.is_empty() {
        return html! {};
    }
    table(
        "Reload transient",
        "What the first part of an interval has beyond the steady state, less what intervals have that nothing disturbed.",
        &["after", "intervals", "misses", "µs"],
        rows,
    )
}
