//! Claims on a page: the paper's figure, ours, and the band, drawn on one axis.

use super::findings::{Findings, text};
use crate::{ClaimResult, RowResult, Verdict};
use hearth_report::plot::number;
use maud::{Markup, html};

/// All claims; those that do not hold are open.
pub(super) fn section(findings: &Findings<'_>) -> Markup {
    html! {
        section.claims {
            h2 { (findings.experiment.title) }
            p.hint {
                (findings.experiment.paper) ". An input describes the programs, which were calibrated to it; an \
                 outcome comes out of the mechanism. A claim holds if each of its figures lies in its band; \
                 where leaving out one seed would turn the verdict, or another answer to what the paper leaves \
                 open, it is fragile. \
                 Select a claim to see its figures."
            }
            ul.legend {
                li { i style="border:2px solid var(--text);border-radius:0;transform:rotate(45deg);width:9px;height:9px" {} "the paper" }
                li { i style="background:var(--good);border-radius:50%" {} "ours, in the band" }
                li { i style="background:var(--bad);border-radius:50%" {} "ours, outside of it" }
                li { i style="background:color-mix(in oklab,var(--good) 22%,transparent)" {} "the band" }
            }
            @for claim in &findings.judgement.claims { (claim_markup(claim)) }
        }
    }
}

fn claim_markup(claim: &ClaimResult) -> Markup {
    html! {
        details open[claim.verdict == Verdict::DoesNotHold] {
            summary {
                b { (claim.id) }
                span { (claim.text) small { (claim.kind.text()) } }
                (verdict(claim))
            }
            (rows(claim))
        }
    }
}

fn verdict(claim: &ClaimResult) -> Markup {
    let (class, sign) = match claim.verdict {
        Verdict::Holds => ("holds", "\u{2713} "),
        Verdict::DoesNotHold => ("fails", "\u{2717} "),
        Verdict::NotRun => ("none", ""),
    };
    html! { span class={ "verdict " (class) } { (sign) (claim.verdict_text()) } }
}

fn rows(claim: &ClaimResult) -> Markup {
    let scale = Scale::of(&claim.rows);
    html! {
        div.rows {
            span.name.headline {} span.headline.chart {}
            span.headline { "paper" } span.headline { "ours" } span.headline { "band" }
            @for row in &claim.rows {
                span.name { (row.name) }
                (dots(row, &scale))
                span { (minus(&text::paper(row))) }
                span {
                    b { (minus(&text::measured(row))) }
                    @if let Some(spread) = text::spread(row) { br; small.unit { (minus(&spread)) } }
                }
                span { (minus(&text::band(row))) }
            }
        }
    }
}

fn minus(text: &str) -> String {
    if text == "-" {
        return "\u{2013}".to_owned();
    }
    text.replace('-', "\u{2212}")
}

fn dots(row: &RowResult, scale: &Scale) -> Markup {
    let at = |value: f64| number(scale.percent(value));
    let stretch = |low: f64, high: f64| {
        let (left, right) = (scale.percent(low), scale.percent(high));
        format!("left:{}%;width:{}%", number(left), number(right - left))
    };
    let [low, high] = row.band;
    let place = match (row.holds, row.band) {
        (_, [None, None]) => "free",
        (Some(false), _) => "out",
        _ => "in",
    };
    html! {
        div.dots {
            @if low.is_some() || high.is_some() {
                i.band style=(stretch(low.unwrap_or(scale.low), high.unwrap_or(scale.high))) {}
            }
            @if scale.low < 0.0 && scale.high > 0.0 { i.zero style={ "left:" (at(0.0)) "%" } {} }
            @if let Some([low, high]) = row.spread { i.range style=(stretch(low, high)) {} }
            @if let Some(ours) = row.measured {
                i class={ "ours " (place) } style={ "left:" (at(ours)) "%" }
                    title={ "ours: " (text::measured(row)) } {}
            }
            @if let Some(paper) = row.paper {
                i.paper style={ "left:" (at(paper)) "%" } title={ "paper: " (text::paper(row)) } {}
            }
        }
    }
}

/// The values of a claim, from the least to the greatest with some room.
struct Scale {
    low: f64,
    high: f64,
}

impl Scale {
    fn of(rows: &[RowResult]) -> Self {
        let spread = |row: &RowResult| row.spread.into_iter().flatten();
        let band = |row: &RowResult| row.band.into_iter().flatten();
        let values =
            |row: &RowResult| row.paper.into_iter().chain(row.measured).chain(spread(row)).chain(band(row));
        let all: Vec<f64> = rows.iter().flat_map(|row| values(row).collect::<Vec<_>>()).collect();
        let low = all.iter().copied().fold(0.0, f64::min);
        let high = all.iter().copied().fold(0.0, f64::max);
        let room = ((high - low) * 0.04).max(f64::MIN_POSITIVE);
        Self { low: low - room, high: high + room }
    }

    fn percent(&self, value: f64) -> f64 {
        ((value - self.low) / (self.high - self.low) * 100.0).clamp(0.0, 100.0)
    }
}
