use super::*;
use crate::snapshot::Run;

/// Pairs `(x, y)` of the linear regression "Norris" of NIST's Statistical Reference Datasets.
const NORRIS: [(f64, f64); 36] = [
    (0.2, 0.1),
    (337.4, 338.8),
    (118.2, 118.1),
    (884.6, 888.0),
    (10.1, 9.2),
    (226.5, 228.1),
    (666.3, 668.5),
    (996.3, 998.5),
    (448.6, 449.1),
    (777.0, 778.9),
    (558.2, 559.2),
    (0.4, 0.3),
    (0.6, 0.1),
    (775.5, 778.1),
    (666.9, 668.8),
    (338.0, 339.3),
    (447.5, 448.9),
    (11.6, 10.8),
    (556.0, 557.7),
    (228.1, 228.3),
    (995.8, 998.0),
    (887.6, 888.8),
    (120.2, 119.6),
    (0.3, 0.3),
    (0.3, 0.6),
    (556.8, 557.6),
    (339.1, 339.3),
    (887.2, 888.0),
    (999.0, 998.5),
    (779.0, 778.9),
    (11.1, 10.2),
    (118.3, 117.6),
    (229.2, 228.9),
    (669.1, 668.4),
    (448.9, 449.2),
    (0.5, 0.2),
];

fn close(value: f64, wanted: f64) -> bool {
    (value - wanted).abs() <= 1e-9 * wanted.abs()
}

#[test]
fn least_squares_and_its_errors_are_those_that_nist_certifies() {
    let line = Fit::LeastSquares.line(&NORRIS).unwrap();
    assert!(close(line.intercept, -0.262_323_073_774_029), "{line:?}");
    assert!(close(line.slope, 1.002_116_818_020_45), "{line:?}");
    assert!(close(line.error_at(0.0), 0.232_818_234_301_152), "{line:?}");
    assert!(close(line.slope_error, 0.429_796_848_199_937e-3), "{line:?}");
    assert!(close(line.residual, 0.884_796_396_144_373), "{line:?}");
}

#[test]
fn both_fits_agree_where_nothing_is_far_off() {
    let [least, robust] = [Fit::LeastSquares, Fit::Robust].map(|fit| fit.line(&NORRIS).unwrap());
    assert!((least.slope - robust.slope).abs() < 3.0 * least.slope_error, "{least:?} {robust:?}");
    assert!((0.5..2.0).contains(&(robust.slope_error / least.slope_error)), "{least:?} {robust:?}");
    assert!((0.5..2.0).contains(&(robust.level_error / least.level_error)), "{least:?} {robust:?}");
}

#[test]
fn a_bus_delays_more_the_more_it_carries_and_never_without_end() {
    let bus = Bus { memory_cycles: 100.0, transfer_cycles: 16.0 };
    assert_eq!(bus.latency_cycles(0.0), 100.0);
    // Taken for half of the time: a line waits for half of a transfer.
    assert_eq!(bus.latency_cycles(1.0 / 32.0), 108.0);
    assert!(bus.latency_cycles(0.05) > bus.latency_cycles(0.04));
    assert_eq!(bus.latency_cycles(0.0625), bus.latency_cycles(1e9));
    assert!(Bus { memory_cycles: f64::NAN, transfer_cycles: -1.0 }.latency_cycles(f64::NAN).is_finite());
}

/// Ten runs with one co-runner each: its misses for a million cycles, and own ones.
fn runs(misses: [(u64, u64); SAMPLES]) -> Vec<Run> {
    let run = |(others_misses, misses)| Run {
        cycles: 50_000_000,
        instructions: 25_000_000,
        misses: 50 * misses,
        transfers: 50 * misses,
        others: 1,
        others_misses: 50 * others_misses,
        others_transfers: 50 * others_misses,
        ..Run::default()
    };
    misses.map(run).into()
}

/// Misses on the line of 2000 and a half of the co-runner's, so that 4000 are fair.
fn on_a_line() -> Vec<Run> {
    runs([1, 2, 3, 4, 5, 6, 7, 8, 9, 10].map(|thousands| (1000 * thousands, 2000 + 500 * thousands)))
}

const WITHOUT_COST: Bus = Bus { memory_cycles: 0.0, transfer_cycles: 0.0 };

fn why(runs: &[Run], bus: Bus) -> Why {
    match estimate(runs, bus, Fit::LeastSquares).confidence {
        Confidence::Strong => panic!("{:?}", estimate(runs, bus, Fit::LeastSquares)),
        Confidence::Weak(why) => why,
    }
}

#[test]
fn the_fair_miss_rate_is_where_both_miss_equally_often() {
    for fit in [Fit::LeastSquares, Fit::Robust] {
        let found = estimate(&on_a_line(), WITHOUT_COST, fit);
        assert_eq!((found.samples, found.confidence), (10, Confidence::Strong));
        assert!(close(found.a, 0.5) && close(found.b, 0.002), "{found:?}");
        assert!(close(found.fair_miss_rate, 0.004) && close(found.fair_ipc, 0.5), "{found:?}");
    }
}

#[test]
fn runs_that_are_too_short_or_impossible_are_no_samples() {
    let mut runs = on_a_line();
    assert_eq!(estimate(&runs[1..], WITHOUT_COST, Fit::Robust).samples, 9);
    assert_eq!(why(&runs[1..], WITHOUT_COST), Why::FewSamples);
    runs[0].instructions = LEAST_INSTRUCTIONS - 1;
    assert_eq!(why(&runs, WITHOUT_COST), Why::FewSamples);
    runs[0].instructions = LEAST_INSTRUCTIONS;
    runs[3].misses = u64::MAX;
    assert_eq!(why(&runs, WITHOUT_COST), Why::FewSamples);
}

#[test]
fn what_samples_cannot_tell_is_weak() {
    assert_eq!(why(&runs([(3000, 2000); 10]), WITHOUT_COST), Why::SimilarCoRunners);
    let steep = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10].map(|n| (1000 * n, 2000 + 1100 * n));
    assert_eq!(why(&runs(steep), WITHOUT_COST), Why::NoFairPoint);
    // The line is less steep than that, but not surely.
    let unsure = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10].map(|n| (1000 * n, 400 + 950 * n + 800 * (n % 2)));
    assert_eq!(why(&runs(unsure), WITHOUT_COST), Why::NoFairPoint);
    let below = [6, 7, 8, 9, 10, 11, 12, 13, 14, 15].map(|n| (1000 * n, 500 * n - 2000));
    assert_eq!(why(&runs(below), WITHOUT_COST), Why::NegativeRate);
    // A fair miss rate of 0.004 at 250 cycles a miss leaves no time to compute.
    let bus = Bus { memory_cycles: 250.0, transfer_cycles: 0.0 };
    assert_eq!(why(&on_a_line(), bus), Why::BeyondMemory);
    // All co-runners are far from the fair point, and samples scatter.
    let far = [1, 9, 2, 8, 3, 7, 4, 6, 5, 5].map(|n| (30_000 + 100 * n, 2000 + 400 * (n % 4)));
    let bus = Bus { memory_cycles: 100.0, transfer_cycles: 0.0 };
    assert!(matches!(why(&runs(far), bus), Why::Imprecise | Why::NoFairPoint));
}

#[test]
fn a_task_that_all_but_never_misses_is_known_well_however_its_few_misses_scatter() {
    let few = [(1000, 3), (2000, 0), (3000, 4), (4000, 1), (5000, 2)];
    let few = std::array::from_fn(|place| few[place % 5]);
    let found = estimate(&runs(few), Bus { memory_cycles: 100.0, transfer_cycles: 8.0 }, Fit::LeastSquares);
    assert_eq!(found.confidence, Confidence::Strong, "{found:?}");
    assert!(found.fair_miss_rate_error > found.fair_miss_rate / 4.0, "{found:?}");
}
