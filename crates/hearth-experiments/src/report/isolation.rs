//! Figures 3 to 6 of Fedorova, Seltzer and Smith, "Improving Performance Isolation on Chip Multiprocessors via an
//! Operating System Scheduler" (PACT 2007), for our runs.

use super::Findings;
use super::format::significant;
use crate::isolation::Figures;
use hearth_report::plot::{Axis, color, legend, number, x_axis};
use maud::{Markup, html};

/// Figure 4 has a dotted line here, in percent: no principal varies by more with cache-fair shares.
const LITTLE_PERCENT: f64 = 4.0;

/// Bars of two kinds, side by side for each program.
struct Chart<'a> {
    heading: &'a str,
    hint: &'a str,
    unit: &'a str,
    /// What the two kinds are.
    kinds: [&'a str; 2],
    /// Where a line is drawn.
    mark: Option<f64>,
    programs: Vec<Bars>,
}

/// The bars of a program, from where to where, and what is written beside them.
struct Bars {
    program: String,
    bars: [[f64; 2]; 2],
    values: [String; 2],
}

impl Bars {
    /// Two that begin at 0.
    fn from_zero(program: &str, ends: [f64; 2]) -> Self {
        let values = ends.map(significant);
        Self { program: program.to_owned(), bars: ends.map(|end| [0.0, end]), values }
    }
}

/// All of it for a page.
pub(super) fn section(findings: &Findings<'_>) -> Markup {
    html! { @for figures in &findings.judgement.figures { (of_group(figures)) } }
}

fn of_group(figures: &Figures) -> Markup {
    html! {
        section {
            h2 { "Performance isolation: " (figures.group) }
            p.hint {
                "The figures of the paper, for our runs. Programs that miss seldom are beside the principal in \
                 its fast schedule, such as miss often in its slow one."
            }
            div.pair {
                @if !figures.miss_rates.is_empty() { (miss_rates(figures)) }
                @if !figures.principals.is_empty() {
                    (variability(figures)) (times(figures)) (throughput(figures))
                }
            }
        }
    }
}

fn miss_rates(figures: &Figures) -> Markup {
    let bars = |rates: &crate::isolation::MissRates| {
        Bars::from_zero(&rates.program, [rates.estimated, rates.actual])
    };
    let chart = Chart {
        heading: "Figure 3: fair miss rates",
        hint: "As estimated of runs beside others, and with the cache parted equally.",
        unit: "misses for a thousand cycles",
        kinds: ["estimated", "actual"],
        mark: None,
        programs: figures.miss_rates.iter().map(bars).collect(),
    };
    chart.render()
}

fn variability(figures: &Figures) -> Markup {
    let principals = figures.principals.iter();
    let chart = Chart {
        heading: "Figure 4: variability",
        hint: "How much longer a principal takes in its slow schedule than in its fast one. The dashed line is at \
               4 %.",
        unit: "longer in the slow schedule, %",
        kinds: figures.kinds(),
        mark: Some(LITTLE_PERCENT),
        programs: principals.map(|one| Bars::from_zero(&one.name, one.variability)).collect(),
    };
    chart.render()
}

fn times(figures: &Figures) -> Markup {
    let bars = |one: &crate::isolation::Principal| Bars {
        program: one.name.clone(),
        bars: one.times,
        values: one.times.map(|[fast, slow]| format!("{fast:.2} to {slow:.2}")),
    };
    let chart = Chart {
        heading: "Figure 5: completion times",
        hint: "From the fast schedule to the slow one, in parts of the time in the fast one without cache-fair \
               shares. Principals with most instructions for each cycle are first.",
        unit: "completion time",
        kinds: figures.kinds(),
        mark: None,
        programs: figures.principals.iter().map(bars).collect(),
    };
    chart.render()
}

fn throughput(figures: &Figures) -> Markup {
    let bars = |one: &crate::isolation::Principal| Bars::from_zero(&one.name, [1.0, one.throughput]);
    let chart = Chart {
        heading: "Figure 6: aggregate instructions for each cycle",
        hint: "Of all programs in the slow schedule, in parts of those without cache-fair shares.",
        unit: "aggregate instructions for each cycle",
        kinds: figures.kinds(),
        mark: None,
        programs: figures.principals.iter().map(bars).collect(),
    };
    chart.render()
}

impl Figures {
    fn kinds(&self) -> [&str; 2] {
        self.policies.each_ref().map(String::as_str)
    }
}

impl Chart<'_> {
    fn render(&self) -> Markup {
        let axis = self.axis();
        html! {
            figure {
                h3 { (self.heading) }
                p.hint { (self.hint) }
                (legend(self.kinds.into_iter().enumerate().map(|(kind, name)| (color(kind), name))))
                div.bars role="img" aria-label=(self.description()) {
                    div.grid style={ "grid-row:1 / span " (2 * self.programs.len()) } {
                        @for &tick in &axis.ticks { i style={ "left:" (number(axis.percent(tick))) "%" } {} }
                        @if let Some(mark) = self.mark {
                            i style={ "left:" (number(axis.percent(mark))) "%;border-left:2px dashed var(--accent);background:none" } {}
                        }
                    }
                    @for (place, bars) in self.programs.iter().enumerate() {
                        div.name style={ "grid-row:" (2 * place + 1) " / span 2" } { (bars.program) }
                        @for kind in 0..2 { (self.bar(bars, kind, 2 * place + kind + 1, &axis)) }
                    }
                    (x_axis(&axis))
                    div.unit { (self.unit) }
                }
            }
        }
    }

    fn bar(&self, bars: &Bars, kind: usize, row: usize, axis: &Axis) -> Markup {
        let [one, other] = bars.bars[kind].map(|value| axis.percent(value));
        let (left, width) = (one.min(other), (one - other).abs());
        let place = format!(
            "position:absolute;left:{}%;width:{}%;height:12px;border-radius:2px;background:{}",
            number(left),
            number(width),
            color(kind)
        );
        let title = format!("{}, {}: {}", bars.program, self.kinds[kind], bars.values[kind]);
        html! {
            div.track style={ "grid-row:" (row) ";height:16px" } title=(title) { div.bar style=(place) {} }
            div.value style={ "grid-row:" (row) } { (minus(&bars.values[kind])) }
        }
    }

    /// From 0, or as far below as a bar reaches.
    fn axis(&self) -> Axis {
        let ends = || self.programs.iter().flat_map(|bars| bars.bars).flatten().chain(self.mark);
        let (low, high) = (ends().fold(f64::INFINITY, f64::min), ends().fold(0.0, f64::max));
        // Ranges that all are far from 0 differ more than bars from there would show.
        if low > 0.0 && low < high {
            return Axis::between(low - (high - low) / 10.0, high + (high - low) / 10.0);
        }
        if low < 0.0 { Axis::between(low, high) } else { Axis::from_zero(high) }
    }

    fn description(&self) -> String {
        let of = |bars: &Bars| {
            format!(
                "{}: {} {}, {} {}",
                bars.program, self.kinds[0], bars.values[0], self.kinds[1], bars.values[1]
            )
        };
        format!("{}. {}", self.heading, self.programs.iter().map(of).collect::<Vec<_>>().join("; "))
    }
}

fn minus(text: &str) -> String {
    text.replace('-', "\u{2212}")
}
