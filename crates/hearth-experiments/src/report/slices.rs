//! In how long effective time slices the CPU time was spent.

use super::{Comparison, PolicyRuns, format};
use hearth_report::plot::{Axis, Plot, level_lines, number};
use hearth_sim::measure::Histogram;
use maud::{Markup, html};

/// No more bars than this in a histogram.
const MOST_BARS: usize = 40;
/// This share of the CPU time is shown; the last bar holds that of all longer slices too.
const SHOWN: f64 = 0.98;

/// A histogram for each policy, all on the same axes.
pub(super) fn section(comparison: &Comparison) -> Markup {
    let times: Vec<Vec<f64>> = comparison.policies.iter().map(times_ns).collect();
    let bins = times.iter().map(|times| bins_shown(times)).max().unwrap_or(1);
    let width = bins.div_ceil(MOST_BARS);
    let bars: Vec<Vec<f64>> = times.iter().map(|times| shares(times, bins, width)).collect();
    let bin_ms = bin_ns(comparison) / 1e6 * width as f64;
    let x = Axis::between(0.0, bin_ms * bars.first().map_or(1, Vec::len) as f64);
    let y = Axis::from_zero(bars.iter().flatten().copied().fold(0.0, f64::max));
    html! {
        section {
            h2 { "Effective time slices" }
            p.hint {
                "How long a task runs on a CPU before another task does: in slices of which length the CPU \
                 time was spent. A longer slice loads the cache less often. The dashed line is the mean \
                 slice; slices under 1 ms are left out."
            }
            div.many {
                @for (policy, bars) in comparison.policies.iter().zip(&bars) {
                    (histogram(policy, bars, bin_ms, &x, &y))
                }
            }
        }
    }
}

fn histogram(policy: &PolicyRuns, bars: &[f64], bin_ms: f64, x: &Axis, y: &Axis) -> Markup {
    let mean = policy.summary.slice_ms.mean;
    let gap = (x.x(bin_ms) * 0.12).min(3.0);
    let drawing = html! {
        (level_lines(y))
        @for (index, share) in bars.iter().enumerate() {
            @let from = bin_ms * index as f64;
            @if *share > 0.0 {
                rect.fill x=(number(x.x(from) + gap / 2.0)) width=(number(x.x(bin_ms) - gap))
                    y=(number(y.y(*share))) height=(number(y.x(*share))) {
                    title { (format!("{share:.1} % of the CPU time in slices of {from:.0} to {:.0} ms", from + bin_ms)) }
                }
            }
        }
        @if mean <= x.high {
            line.mark x1=(number(x.x(mean))) x2=(number(x.x(mean))) y1="0" y2="1000" {}
        }
    };
    let mean_text = format!("mean {} ms", format::significant(mean));
    let description = format!("Histogram of effective time slices under {}, {mean_text}", policy.name);
    let plot = Plot {
        y_title: "share of the CPU time, %",
        x_title: "length of the slice, ms",
        x,
        y_labels: Plot::y_labels(y),
        height: 150,
        description,
        drawing,
    };
    html! { figure { h3 { (policy.name) " \u{b7} " (mean_text) } (plot.render()) } }
}

fn bin_ns(comparison: &Comparison) -> f64 {
    let first = comparison.base().and_then(|policy| policy.runs.first());
    first.map_or(1e7, |run| run.result.total.slice_lengths.width_ns as f64)
}

/// The CPU time in slices of each bin, over all seeds.
fn times_ns(policy: &PolicyRuns) -> Vec<f64> {
    let mut sum: Vec<f64> = Vec::new();
    for run in &policy.runs {
        let total = &run.result.total;
        let times = bin_times_ns(&total.slice_lengths, total.slices.ns);
        sum.resize(times.len().max(sum.len()), 0.0);
        sum.iter_mut().zip(times).for_each(|(sum, time)| *sum += time);
    }
    sum
}

/// The CPU time in each bin, as if slices had the length of its middle. The last bin, which is open,
/// has what is left of `total_ns`.
fn bin_times_ns(lengths: &Histogram, total_ns: u64) -> Vec<f64> {
    let width = lengths.width_ns as f64;
    let middle = |(bin, count): (usize, &u64)| (bin as f64 + 0.5) * width * *count as f64;
    let mut times: Vec<f64> = lengths.counts.iter().enumerate().map(middle).collect();
    if let (Some(last), Some(1..)) = (times.pop(), lengths.counts.last()) {
        let left = total_ns as f64 - times.iter().sum::<f64>();
        times.push(left.max(last));
    }
    times
}

fn bins_shown(times: &[f64]) -> usize {
    let wanted = times.iter().sum::<f64>() * SHOWN;
    let mut sum = 0.0;
    let reaches = |time: &f64| {
        sum += time;
        sum >= wanted
    };
    let last = times.iter().position(reaches).unwrap_or_default();
    (last + 1).next_multiple_of(10)
}

/// Percent of the CPU time by bar, each of `width` bins.
fn shares(times: &[f64], bins: usize, width: usize) -> Vec<f64> {
    let bars = bins.div_ceil(width);
    let all = times.iter().sum::<f64>().max(f64::MIN_POSITIVE);
    let mut shares = vec![0.0; bars];
    for (bin, time) in times.iter().enumerate() {
        shares[(bin / width).min(bars - 1)] += time * 100.0 / all;
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_bar_holds_all_longer_slices() {
        let times = [1.0, 1.0, 0.0, 2.0];
        assert_eq!(shares(&times, 2, 1), [25.0, 75.0]);
        assert_eq!(shares(&times, 4, 2), [50.0, 50.0]);
    }

    #[test]
    fn the_open_bin_has_the_time_that_is_left() {
        let lengths = Histogram { width_ns: 10, counts: vec![2, 0, 1] };
        assert_eq!(bin_times_ns(&lengths, 100), [10.0, 0.0, 90.0]);
        assert_eq!(bin_times_ns(&lengths, 0), [10.0, 0.0, 25.0]);
    }
}
