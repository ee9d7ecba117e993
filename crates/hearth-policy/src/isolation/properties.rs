//! What holds of estimates, for all data.

use super::*;
use crate::snapshot::Run;
use proptest::prelude::*;
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg32;

const CYCLES: f64 = 1e9;

/// A program and what it shares: the line of its misses, own cycles for each instruction, the bus, co-runners
/// at a time, and lines for each miss, its own and its co-runners'.
#[derive(Clone, Copy, Debug)]
struct Truth {
    a: f64,
    b: f64,
    own_cycles: f64,
    bus: Bus,
    others: u32,
    lines: (f64, f64),
}

impl Truth {
    fn fair(&self) -> (f64, f64) {
        let n = f64::from(self.others);
        let rate = self.b / (1.0 - self.a * n);
        let latency = self.bus.latency_cycles(rate * (self.lines.0 + n * self.lines.1));
        (rate, (1.0 - rate * latency) / self.own_cycles)
    }

    /// A run beside co-runners with so many misses for each cycle; its own are off by `noise`.
    fn run(&self, others: f64, noise: f64) -> Run {
        let misses = (self.a * others + self.b + noise).max(0.0);
        let lines = misses * self.lines.0 + others * self.lines.1;
        let ipc = (1.0 - misses * self.bus.latency_cycles(lines)) / self.own_cycles;
        let count = |rate: f64| (rate * CYCLES).round() as u64;
        Run {
            cycles: CYCLES as u64,
            instructions: count(ipc),
            misses: count(misses),
            transfers: count(misses * self.lines.0),
            others: self.others,
            others_misses: count(others),
            others_transfers: count(others * self.lines.1),
            ..Run::default()
        }
    }
}

fn truths() -> impl Strategy<Value = Truth> {
    let bus = (20.0..80.0, 0.0..10.0)
        .prop_map(|(memory_cycles, transfer_cycles)| Bus { memory_cycles, transfer_cycles });
    (0.0..0.8, 0.0005..0.002, 0.5..3.0, bus, 1_u32..4, (1.0..2.0, 1.0..2.0)).prop_map(
        |(a, b, own_cycles, bus, others, lines)| Truth {
            a: a / f64::from(others),
            b,
            own_cycles,
            bus,
            others,
            lines,
        },
    )
}

fn near(value: f64, wanted: f64, part: f64) -> bool {
    (value - wanted).abs() <= part * wanted.abs()
}

proptest! {
    #[test]
    fn least_squares_are_those_of_another_implementation(
        samples in prop::collection::vec((-1e3..1e3, -1e3..1e3), 3..40),
        outliers in prop::collection::vec((-1e3..1e3, -1e6..1e6), 0..5),
    ) {
        let samples: Vec<(f64, f64)> = samples.into_iter().chain(outliers).collect();
        let line = Fit::LeastSquares.line(&samples).unwrap();
        let (slope, intercept): (f64, f64) = linreg::linear_regression_of(&samples).unwrap();
        prop_assert!((line.slope - slope).abs() < 1e-9 * slope.abs().max(1.0), "{line:?} {slope}");
        prop_assert!((line.intercept - intercept).abs() < 1e-6 * intercept.abs().max(1.0), "{line:?} {intercept}");
    }

    #[test]
    fn the_robust_line_bears_a_quarter_of_samples_that_are_far_off(
        slope in -5.0..5.0_f64,
        intercept in -5.0..5.0_f64,
        x in prop::collection::btree_set(-1000..1000, 12..40),
        far in prop::collection::vec(-1e6..1e6, 10),
    ) {
        let mut samples: Vec<(f64, f64)> =
            x.into_iter().map(|x| (f64::from(x), intercept + slope * f64::from(x))).collect();
        let spoilt = samples.len() / 4;
        let step = samples.len() / spoilt;
        for (place, far) in far.into_iter().take(spoilt).enumerate() {
            samples[place * step].1 += far;
        }
        let line = Fit::Robust.line(&samples).unwrap();
        prop_assert!((line.slope - slope).abs() < 1e-6 && (line.intercept - intercept).abs() < 1e-4, "{line:?}");
    }

    #[test]
    fn an_estimate_finds_what_the_runs_were_made_of(
        truth in truths(),
        others in prop::collection::btree_set(1_u32..60, 10..30),
        robust: bool,
    ) {
        let runs: Vec<Run> =
            others.into_iter().map(|others| truth.run(f64::from(others) * 1e-4, 0.0)).collect();
        let fit = if robust { Fit::Robust } else { Fit::LeastSquares };
        let found = estimate(&runs, truth.bus, fit);
        let (rate, ipc) = truth.fair();
        prop_assert_eq!(found.confidence, Confidence::Strong, "{:?}", found);
        prop_assert!((found.a - truth.a).abs() < 1e-3 && near(found.b, truth.b, 1e-3), "{:?}", found);
        prop_assert!(near(found.fair_miss_rate, rate, 1e-3), "{:?} {}", found, rate);
        prop_assert!(near(found.fair_ipc, ipc, 1e-3), "{:?} {}", found, ipc);
    }

    #[test]
    fn whatever_counters_say_an_estimate_has_numbers(
        counters in prop::collection::vec(any::<(u64, u64, u64, u64, u64, u32)>(), 0..40),
        shift in 0_u32..50,
        memory_cycles: f64,
        transfer_cycles: f64,
        robust: bool,
    ) {
        let runs: Vec<Run> = counters
            .into_iter()
            .map(|(cycles, instructions, misses, others_misses, others_transfers, others)| Run {
                cycles: cycles >> 16,
                instructions: instructions >> 18,
                misses: misses >> (18 + shift % 40),
                transfers: misses >> (19 + shift % 40),
                others_misses: others_misses >> 14,
                others_transfers: others_transfers >> 14,
                others,
                ..Run::default()
            })
            .collect();
        let fit = if robust { Fit::Robust } else { Fit::LeastSquares };
        let found = estimate(&runs, Bus { memory_cycles, transfer_cycles }, fit);
        prop_assert!(found.fair_miss_rate.is_finite() && found.fair_miss_rate >= 0.0);
        prop_assert!(found.fair_ipc.is_finite() && found.fair_ipc >= 0.0);
        if found.confidence == Confidence::Strong {
            prop_assert!(found.samples >= SAMPLES && found.fair_ipc > 0.0, "{:?}", found);
        }
    }
}

/// The root of the mean square of how far estimates are off, in their own standard errors.
fn errors_off(truth: &Truth, fit: Fit) -> (f64, f64) {
    const DRAWS: u64 = 600;
    let (rate, ipc) = truth.fair();
    let mut squares = (0.0, 0.0);
    for seed in 0..DRAWS {
        let mut random = Pcg32::seed_from_u64(seed);
        let mut uniform = || f64::from(random.next_u32()) / f64::from(u32::MAX);
        let runs: Vec<Run> = (0..20)
            .map(|_| {
                let others = uniform() * 0.006;
                // Of twelve, so about normal.
                let normal = (0..12).map(|_| uniform()).sum::<f64>() - 6.0;
                truth.run(others, 1e-4 * normal)
            })
            .collect();
        let found = estimate(&runs, truth.bus, fit);
        squares.0 += ((found.fair_miss_rate - rate) / found.fair_miss_rate_error).powi(2);
        squares.1 += ((found.fair_ipc - ipc) / found.fair_ipc_error).powi(2);
    }
    ((squares.0 / DRAWS as f64).sqrt(), (squares.1 / DRAWS as f64).sqrt())
}

#[test]
fn estimates_are_off_by_their_standard_errors() {
    let bus = Bus { memory_cycles: 60.0, transfer_cycles: 6.0 };
    for (a, b, others) in [(0.4, 0.002, 1), (0.05, 0.003, 1), (0.15, 0.001, 3)] {
        let truth = Truth { a, b, own_cycles: 1.2, bus, others, lines: (1.3, 1.6) };
        for fit in [Fit::LeastSquares, Fit::Robust] {
            let (rate, ipc) = errors_off(&truth, fit);
            assert!((0.7..1.5).contains(&rate), "{truth:?} {fit:?}: {rate}");
            assert!((0.7..1.5).contains(&ipc), "{truth:?} {fit:?}: {ipc}");
        }
    }
}
