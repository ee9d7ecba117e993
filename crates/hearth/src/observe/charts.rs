//! The page's charts: HTML bars, and SVG that is stretched to the room there is.

use super::format::{range, significant};
use hearth_observe::estimate::Estimate;
use hearth_observe::report::{ProgramReport, Stretches, Transient};
use hearth_report::plot::{Axis, SIDE, color, legend};
use maud::{Markup, html};

/// No more programs than this in a chart.
const MOST: usize = 6;
/// A tick's label, without zeros that say nothing.
fn label(tick: f64) -> String {
    let text = format!("{tick:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Rows of bars over one axis.
fn bars(rows: &[(String, Markup, String)], most: f64, ticks: &[f64], unit: &str) -> Markup {
    html! {
        div.bars {
            div.grid style={ "grid-row:1 / span " (rows.len()) } {
                @for tick in ticks { i style={ "left:" (label(100.0 * tick / most)) "%" } {} }
            }
            @for (index, (name, bar, value)) in rows.iter().enumerate() {
                @let row = format!("grid-row:{}", index + 1);
                div.name style=(row) { (name) }
                div.track style=(row) { (bar) }
                div.value style=(row) { (value) }
            }
            div.axis {
                @for tick in ticks { span style={ "left:" (label(100.0 * tick / most)) "%" } { (label(*tick)) } }
            }
            div.unit { (unit) }
        }
    }
}

/// What affinity could win at most, by program.
pub(super) fn ceilings(programs: &[&ProgramReport]) -> Markup {
    let told: Vec<(&str, Estimate)> = programs
        .iter()
        .filter_map(|program| {
            let ceiling = program.counted.as_ref()?.ceiling?;
            let value = ceiling.percent.unwrap_or(0.0);
            Some((program.name.as_str(), Estimate { value, low: ceiling.low, high: ceiling.high }))
        })
        .take(MOST)
        .collect();
    if told.is_empty() {
        return html! {};
    }
    let Axis { high: most, ticks, .. } =
        Axis::from_zero(told.iter().map(|(_, share)| share.high).fold(0.0, f64::max));
    let percent = |share: f64| 100.0 * share.max(0.0) / most;
    let row = |(name, share): &(&str, Estimate)| {
        let (low, high) = (percent(share.low), percent(share.high));
        let bar = html! {
            div.bar.other style={ "width:" (label(percent(share.value))) "%" } {}
            i.spread style={ "left:" (label(low)) "%;width:" (label(high - low)) "%" } {}
        };
        ((*name).to_owned(), bar, range(share))
    };
    let rows: Vec<(String, Markup, String)> = told.iter().map(row).collect();
    html! {
        section {
            h2 { "What affinity could win at most" }
            p.hint { "Reload cost over effective slice: the time that misses take which a task would not have had, had nothing happened before. The thin line is the 95 % interval." }
            (bars(&rows, most, &ticks, "share of the program's CPU time, %"))
        }
    }
}

/// Why intervals end, by program.
pub(super) fn ends(programs: &[&ProgramReport]) -> Markup {
    let rows: Vec<(String, Markup, String)> = programs
        .iter()
        .take(MOST)
        .map(|program| {
            let bar = html! {
                @for (index, (why, percent)) in program.ends_percent.iter().enumerate() {
                    @if *percent > 0.1 {
                        div.bar.part title={ (why) ": " (format!("{percent:.1} %")) }
                            style={ "width:" (label(*percent)) "%;background:" (color(index)) } {}
                    }
                }
            };
            (program.name.clone(), bar, String::new())
        })
        .collect();
    let Some(first) = programs.first() else { return html! {} };
    let names: Vec<(String, &str)> =
        first.ends_percent.iter().enumerate().map(|(index, (why, _))| (color(index), *why)).collect();
    html! {
        section {
            h2 { "Why dispatch intervals end" }
            p.hint { "A task that blocks comes back later; one whose quantum is used up would go on." }
            (legend(names))
            (bars(&rows, 100.0, &[0.0, 25.0, 50.0, 75.0, 100.0], "dispatch intervals, %"))
        }
    }
}

struct Plot<'a> {
    title: &'a str,
    y_title: &'a str,
    x_title: &'a str,
    y_most: f64,
    y_ticks: &'a [f64],
    /// Where (0 to 1) and what.
    x_labels: Vec<(f64, String)>,
    drawing: Markup,
}

impl Plot<'_> {
    fn render(&self) -> Markup {
        let at = |tick: f64| tick / self.y_most;
        let widest = self.y_ticks.iter().map(|tick| label(*tick)).max_by_key(String::len);
        html! {
            figure {
                h3 { (self.title) }
                div.plot {
                    div.ytitle.unit { (self.y_title) }
                    div.yaxis {
                        b { (widest.unwrap_or_default()) }
                        @for tick in self.y_ticks { span style={ "bottom:" (label(100.0 * at(*tick))) "%" } { (label(*tick)) } }
                    }
                    div.area {
                        svg viewBox="0 0 1000 1000" preserveAspectRatio="none" role="img"
                            aria-label={ (self.title) ": " (self.y_title) " by " (self.x_title) } {
                            @for tick in self.y_ticks {
                                line.scale x1="0" x2="1000" y1=(label(SIDE - SIDE * at(*tick))) y2=(label(SIDE - SIDE * at(*tick))) {}
                            }
                            (self.drawing)
                        }
                    }
                    div.axis {
                        @for (at, text) in &self.x_labels { span style={ "left:" (label(100.0 * at)) "%" } { (text) } }
                    }
                    div.xtitle.unit { (self.x_title) }
                }
            }
        }
    }
}

/// Powers of ten of milliseconds, from `low` to `high`, on a logarithmic axis.
fn decades(low: f64, high: f64) -> Vec<(f64, String)> {
    let place = |ms: f64| (ms / low).ln() / (high / low).ln();
    (-4..=5)
        .map(|power| 10f64.powi(power))
        .filter(|ms| (low..=high).contains(ms))
        .map(|ms| (place(ms), label(ms)))
        .collect()
}

/// In intervals and slices of which length the CPU time was spent.
pub(super) fn lengths(programs: &[&ProgramReport]) -> Markup {
    html! {
        section {
            h2 { "Dispatch intervals and effective slices" }
            p.hint { "How long programs run on a CPU: in stretches of which length their CPU time was spent. An effective slice ends when another program's or process's task runs on the CPU; idle time and kernel threads do not end it." }
            (legend([(color(0), "dispatch intervals"), (color(1), "effective slices")]))
            div.many { @for program in programs.iter().take(MOST) { (length_plot(program)) } }
        }
    }
}

/// How long tasks waited after wake-ups.
pub(super) fn wakeups(programs: &[&ProgramReport]) -> Markup {
    let woken: Vec<&ProgramReport> =
        programs.iter().copied().filter(|program| program.waits.wakeups > 0).take(MOST).collect();
    if woken.is_empty() {
        return html! {};
    }
    let plot = |program: &ProgramReport| {
        let in_ms: Vec<(f64, u64)> =
            program.waits.wakeup_lengths.iter().map(|(us, count)| (us / 1e3, *count)).collect();
        by_length(&program.name, "share of the wake-ups, %", "waited, ms", &[doublings(&in_ms, |_| 1.0)])
    };
    html! {
        section {
            h2 { "Waits after wake-ups" }
            p.hint { "For how long a task that had woken up waited until it ran. Those on the right are what users notice." }
            div.many { @for program in woken { (plot(program)) } }
        }
    }
}

/// Shares by doubling of length, in milliseconds: where it begins, and percent of all weights.
fn doublings(lengths: &[(f64, u64)], weight: fn(f64) -> f64) -> Vec<(f64, f64)> {
    let mut sums: Vec<(f64, f64)> = Vec::new();
    for (start, count) in lengths {
        let doubling = 2f64.powf((start.max(5e-4) * 1e3 / 1.024).log2().floor()) * 1.024e-3;
        let weight = *count as f64 * weight(start.max(5e-4));
        match sums.last_mut() {
            Some((last, sum)) if (*last - doubling).abs() < 1e-9 => *sum += weight,
            _ => sums.push((doubling, weight)),
        }
    }
    let total: f64 = sums.iter().map(|(_, weight)| weight).sum();
    sums.into_iter().map(|(start, weight)| (start, 100.0 * weight / total.max(f64::MIN_POSITIVE))).collect()
}

fn length_plot(program: &ProgramReport) -> Markup {
    // What time a stretch of a bin took: its middle.
    let by_time = |stretches: &Stretches| doublings(&stretches.lengths, |start| start * 1.125);
    let series = [by_time(&program.intervals), by_time(&program.slices)];
    by_length(&program.name, "share of the CPU time, %", "length, ms", &series)
}

/// Bars by doubling of a length, side by side for each series.
fn by_length(title: &str, y_title: &str, x_title: &str, series: &[Vec<(f64, f64)>]) -> Markup {
    let all = || series.iter().flatten();
    let low = all().map(|(start, _)| *start).fold(1.0, f64::min);
    let high = 2.0 * all().map(|(start, _)| *start).fold(low, f64::max);
    let Axis { high: most, ticks, .. } = Axis::from_zero(all().map(|(_, share)| *share).fold(0.0, f64::max));
    let x = |ms: f64| SIDE * (ms / low).ln() / (high / low).ln();
    let width = x(2.0 * low);
    let part = width / series.len() as f64;
    let bar = |start: f64, share: f64, index: usize| {
        html! {
            rect x=(label(x(start) + index as f64 * part + 0.05 * width)) width=(label(part - 0.08 * width))
                y=(label(SIDE - SIDE * share / most)) height=(label(SIDE * share / most)) fill=(color(index)) {
                title { (format!("{share:.1} % in {} to {} ms", significant(start), significant(2.0 * start))) }
            }
        }
    };
    let drawing = html! {
        @for (index, series) in series.iter().enumerate() {
            @for (start, share) in series { (bar(*start, *share, index)) }
        }
    };
    let plot = Plot {
        title,
        y_title,
        x_title,
        y_most: most,
        y_ticks: &ticks,
        x_labels: decades(low, high),
        drawing,
    };
    plot.render()
}

/// Misses beyond the steady state, by time into the interval.
pub(super) fn transients(programs: &[&ProgramReport]) -> Markup {
    let told: Vec<(&str, &[Transient])> = programs
        .iter()
        .filter_map(|program| Some((program.name.as_str(), program.counted.as_ref()?.transient.as_slice())))
        .filter(|(_, curves)| curves.iter().any(|curve| curve.points.len() > 1))
        .take(MOST)
        .collect();
    if told.is_empty() {
        return html! {};
    }
    let mut kinds: Vec<&str> =
        told.iter().flat_map(|(_, curves)| curves.iter().map(|curve| curve.after)).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let names: Vec<(String, &str)> =
        kinds.iter().enumerate().map(|(index, kind)| (color(index), *kind)).collect();
    html! {
        section {
            h2 { "Reload transient" }
            p.hint { "Misses that an interval has had beyond the steady state, by time since it began. The curve rises while data is loaded again, and is level once it is loaded. Means of samples; each point is of ten or more." }
            (legend(names))
            div.many { @for (name, curves) in &told { (transient_plot(name, curves, &kinds)) } }
        }
    }
}

fn transient_plot(name: &str, curves: &[Transient], kinds: &[&str]) -> Markup {
    let points = || curves.iter().flat_map(|curve| &curve.points);
    let low = points().map(|point| point.0).fold(f64::MAX, f64::min).max(1e-4);
    let high = points().map(|point| point.0).fold(low * 2.0, f64::max);
    let Axis { high: most, ticks, .. } = Axis::from_zero(points().map(|point| point.1).fold(0.0, f64::max));
    let place = |ms: f64, misses: f64| {
        let x = SIDE * (ms.max(low) / low).ln() / (high / low).ln();
        format!("{},{}", label(x), label(SIDE - SIDE * misses.max(0.0) / most))
    };
    let drawing = html! {
        @for curve in curves {
            @let index = kinds.iter().position(|kind| *kind == curve.after).unwrap_or(0);
            @let line: Vec<String> = curve.points.iter().map(|point| place(point.0, point.1)).collect();
            polyline.curve points=(line.join(" ")) style={ "stroke:" (color(index)) } {}
        }
    };
    let plot = Plot {
        title: name,
        y_title: "misses beyond the steady state",
        x_title: "time into the interval, ms",
        y_most: most,
        y_ticks: &ticks,
        x_labels: decades(low, high),
        drawing,
    };
    plot.render()
}
