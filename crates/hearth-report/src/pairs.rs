//! Whether two schedulers differ: pairs of measurements, and what they show.
//!
//! The test is Wilcoxon's signed-rank test on the logarithms of the ratios, two-sided, with the exact
//! distribution of the ranks that there are, ties included: no assumption on how times are
//! distributed but that a ratio is as likely as its inverse if the schedulers do not differ. Pairs
//! without a difference are left out. The size of the difference is Hodges and Lehmann's estimate,
//! with the interval that belongs to the same test.

use serde::Serialize;

/// What is called a difference.
pub const SIGNIFICANT: f64 = 0.05;

/// What the test is called.
pub const TEST: &str = "Wilcoxon signed-rank test on log ratios, exact, two-sided";

/// One measurement under each scheduler, next to each other in time. Both are above 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pair {
    /// Under the one that is compared with.
    pub base: f64,
    /// Under the other.
    pub other: f64,
}

/// What the pairs show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The other is better.
    Better,
    /// The other is worse.
    Worse,
    /// No difference could be shown.
    NoDifference,
    /// So few pairs could not show any difference.
    TooFew,
}

/// What all pairs say of the other scheduler.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Difference {
    /// Its value in terms of the base's: Hodges and Lehmann's estimate.
    pub ratio: f64,
    /// Where the ratio lies with 95 % confidence; none with too few pairs.
    pub interval: Option<(f64, f64)>,
    /// How likely at least such a difference is if there is none.
    pub p: f64,
    /// What follows.
    pub verdict: Verdict,
}

/// Compares; `None` without pairs.
pub fn compare(pairs: &[Pair], higher_is_better: bool) -> Option<Difference> {
    let differences: Vec<f64> = pairs.iter().map(|pair| (pair.other / pair.base).ln()).collect();
    let means = walsh_averages(&differences);
    let ratio = median(means.clone())?.exp();
    let p = p_value(&differences);
    let verdict = if p < SIGNIFICANT {
        if (ratio > 1.0) == higher_is_better { Verdict::Better } else { Verdict::Worse }
    } else if (0.5f64).powi(pairs.len() as i32 - 1) >= SIGNIFICANT {
        Verdict::TooFew
    } else {
        Verdict::NoDifference
    };
    Some(Difference {
        ratio,
        interval: interval(&means, pairs.len()).map(|(low, high)| (low.exp(), high.exp())),
        p,
        verdict,
    })
}

/// The least number of pairs that can show a difference.
pub fn least_pairs() -> u32 {
    (1..).find(|&pairs| 0.5f64.powi(pairs - 1) < SIGNIFICANT).unwrap_or(6) as u32
}

/// The median; `None` of nothing.
pub fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    let upper = *values.get(middle)?;
    Some(if values.len().is_multiple_of(2) { (values[middle - 1] + upper) / 2.0 } else { upper })
}

/// The means of each two differences, and each difference itself, sorted.
fn walsh_averages(differences: &[f64]) -> Vec<f64> {
    let mut means: Vec<f64> = differences
        .iter()
        .enumerate()
        .flat_map(|(index, one)| differences[index..].iter().map(move |other| (one + other) / 2.0))
        .collect();
    means.sort_by(f64::total_cmp);
    means
}

/// The exact two-sided p-value of the signed ranks.
fn p_value(differences: &[f64]) -> f64 {
    let differences: Vec<f64> = differences.iter().copied().filter(|difference| *difference != 0.0).collect();
    let ranks = doubled_ranks(&differences);
    let total: usize = ranks.iter().sum();
    let positive: usize = ranks
        .iter()
        .zip(&differences)
        .filter(|(_, difference)| **difference > 0.0)
        .map(|(rank, _)| rank)
        .sum();
    let at_most: f64 = distribution(&ranks)[..=positive.min(total - positive)].iter().sum();
    (2.0 * at_most).min(1.0)
}

/// Twice the rank of each absolute difference, so that the middle of two ranks is whole.
fn doubled_ranks(differences: &[f64]) -> Vec<usize> {
    let rank = |difference: &f64| {
        let size = difference.abs();
        let smaller = differences.iter().filter(|other| other.abs() < size).count();
        let equal = differences.iter().filter(|other| other.abs() == size).count();
        2 * smaller + equal + 1
    };
    differences.iter().map(rank).collect()
}

/// The probability of each sum of positive ranks, if each sign is as likely as the other.
fn distribution(ranks: &[usize]) -> Vec<f64> {
    let mut chances = vec![0.0; ranks.iter().sum::<usize>() + 1];
    chances[0] = 1.0;
    for &rank in ranks {
        for sum in (0..chances.len()).rev() {
            let with = if sum >= rank { chances[sum - rank] } else { 0.0 };
            chances[sum] = (chances[sum] + with) / 2.0;
        }
    }
    chances
}

/// The interval of means that the test would not reject.
fn interval(means: &[f64], pairs: usize) -> Option<(f64, f64)> {
    let ranks: Vec<usize> = (1..=pairs).collect();
    let mut below = 0.0;
    let mut outside = 0;
    for chance in distribution(&ranks) {
        below += chance;
        if below > SIGNIFICANT / 2.0 {
            break;
        }
        outside += 1;
    }
    let last = means.len().checked_sub(outside)?;
    (outside > 0).then(|| (means[outside - 1], means[last]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pairs(ratios: &[f64]) -> Vec<Pair> {
        ratios.iter().map(|ratio| Pair { base: 2.0, other: 2.0 * ratio }).collect()
    }

    /// Counts all choices of signs.
    fn by_enumeration(differences: &[f64]) -> f64 {
        let differences: Vec<f64> = differences.iter().copied().filter(|d| *d != 0.0).collect();
        let ranks = doubled_ranks(&differences);
        let total: usize = ranks.iter().sum();
        let sum = |chosen: &dyn Fn(usize) -> bool| -> usize {
            ranks.iter().enumerate().filter(|(index, _)| chosen(*index)).map(|(_, rank)| rank).sum()
        };
        let observed = sum(&|index| differences[index] > 0.0);
        let observed = observed.min(total - observed);
        let extreme = (0..1u32 << ranks.len())
            .filter(|signs| {
                let positive = sum(&|index| signs >> index & 1 == 1);
                positive.min(total - positive) <= observed
            })
            .count();
        extreme as f64 / f64::from(1u32 << ranks.len())
    }

    #[test]
    fn known_values_of_the_signed_rank_test() {
        // All of one sign: two of the 2^n choices.
        assert_eq!(p_value(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), 2.0 / 64.0);
        // n = 10, smaller sum 8: the tabulated critical value at 5 %.
        let differences = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, -8.0, 9.0, 10.0];
        assert!((p_value(&differences) - 0.048_828_125).abs() < 1e-12);
        assert_eq!(p_value(&[0.0, 0.0]), 1.0);
        assert_eq!(p_value(&[]), 1.0);
    }

    #[test]
    fn a_clear_difference_is_shown_in_the_right_direction() {
        let faster = pairs(&[0.9, 0.91, 0.92, 0.89, 0.9, 0.93, 0.9, 0.88]);
        let shorter = compare(&faster, false).unwrap();
        assert_eq!(shorter.verdict, Verdict::Better);
        assert!((shorter.ratio - 0.9).abs() < 0.01);
        assert_eq!(compare(&faster, true).unwrap().verdict, Verdict::Worse);
    }

    #[test]
    fn noise_shows_no_difference_and_few_pairs_cannot_show_any() {
        let noise = pairs(&[0.9, 1.1, 1.02, 0.97, 1.05, 0.94, 1.0, 1.01]);
        assert_eq!(compare(&noise, false).unwrap().verdict, Verdict::NoDifference);
        assert_eq!(compare(&pairs(&[0.5; 5]), false).unwrap().verdict, Verdict::TooFew);
        assert_eq!(compare(&pairs(&[0.5; 6]), false).unwrap().verdict, Verdict::Better);
        assert_eq!(compare(&[], false), None);
        assert_eq!(least_pairs(), 6);
    }

    #[test]
    fn the_interval_of_ten_pairs_leaves_out_eight_means_on_each_side() {
        let means: Vec<f64> = (0..55).map(f64::from).collect();
        assert_eq!(interval(&means, 10), Some((8.0, 46.0)));
        assert_eq!(interval(&means[..15], 5), None);
    }

    proptest! {
        #[test]
        fn the_distribution_counts_every_choice_of_signs(
            differences in proptest::collection::vec((-4i8..=4).prop_map(f64::from), 0..10)
        ) {
            prop_assert!((p_value(&differences) - by_enumeration(&differences)).abs() < 1e-9);
        }

        #[test]
        fn swapping_the_schedulers_turns_the_verdict_around(
            values in proptest::collection::vec((0.1f64..10.0, 0.1f64..10.0), 1..30)
        ) {
            let one: Vec<Pair> = values.iter().map(|&(base, other)| Pair { base, other }).collect();
            let other: Vec<Pair> = values.iter().map(|&(other, base)| Pair { base, other }).collect();
            let (one, other) = (compare(&one, false).unwrap(), compare(&other, false).unwrap());
            prop_assert!((one.p - other.p).abs() < 1e-9 && one.p > 0.0 && one.p <= 1.0);
            prop_assert!((one.ratio * other.ratio - 1.0).abs() < 1e-9);
            prop_assert_eq!(one.verdict == Verdict::Better, other.verdict == Verdict::Worse);
        }

        #[test]
        fn the_estimate_lies_in_its_interval_and_units_do_not_matter(
            values in proptest::collection::vec((0.1f64..10.0, 0.1f64..10.0), 6..30),
            unit in 0.001f64..1000.0
        ) {
            let pairs: Vec<Pair> = values.iter().map(|&(base, other)| Pair { base, other }).collect();
            let scaled: Vec<Pair> =
                pairs.iter().map(|p| Pair { base: p.base * unit, other: p.other * unit }).collect();
            let (one, other) = (compare(&pairs, false).unwrap(), compare(&scaled, false).unwrap());
            let (low, high) = one.interval.unwrap();
            prop_assert!(low <= one.ratio && one.ratio <= high);
            prop_assert!((one.ratio / other.ratio - 1.0).abs() < 1e-9);
        }
    }
}
