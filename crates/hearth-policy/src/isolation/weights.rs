//! Shares where only weights act: what a plan's share makes of a weight, and how often a weight changes.
//!
//! ```text
//! weight = own * permille / 1000, rounded, within 1 and 10,000
//! ```
//!
//! | own weight | permille | weight |
//! |---|---|---|
//! | 100 | 1000 | 100: nothing changes |
//! | 100 | 1250 | 125 |
//! | 100 | 1 | 1: the least there is |
//! | 9000 | 2000 | 10,000: the most there is |
//!
//! A host that changes weights notes each change before it makes it, so changes are few: one a second at most for
//! each group, and none of less than a hundredth of its share.

use std::time::Duration;

/// Weights that the kernel takes (`cpu.weight` of a control group, version 2), 100 being the usual one.
pub const LEAST_WEIGHT: u32 = 1;
/// See [`LEAST_WEIGHT`].
pub const MOST_WEIGHT: u32 = 10_000;

/// Thousandths of a weight that change nothing.
pub const WHOLE: u32 = 1000;

/// A weight changes no more often.
const PACE: Duration = Duration::from_secs(1);
/// After so long a weight is looked at again: somebody else may have written it, or what was refused be granted.
const AGAIN: Duration = Duration::from_secs(10);
/// A change of less than so many thousandths of a share is none.
const LEAST_CHANGE: u32 = 10;

/// So many thousandths of a weight, rounded, as far as the kernel takes it.
pub fn scaled(own: u32, permille: u32) -> u32 {
    let exact = (u64::from(own) * u64::from(permille) + u64::from(WHOLE / 2)) / u64::from(WHOLE);
    exact.clamp(LEAST_WEIGHT.into(), MOST_WEIGHT.into()) as u32
}

/// What a group was weighed with last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Weighed {
    /// When, on the host's clock.
    pub at: Duration,
    /// With how many thousandths of its own weight.
    pub permille: u32,
}

impl Weighed {
    /// Whether it is to be weighed again, now with `permille`.
    pub fn is_due(self, now: Duration, permille: u32) -> bool {
        let since = now.saturating_sub(self.at);
        since >= PACE && self.permille.abs_diff(permille) >= LEAST_CHANGE || self.is_old(now)
    }

    /// Whether it is so long ago that the host may think otherwise of it.
    pub fn is_old(self, now: Duration) -> bool {
        now.saturating_sub(self.at) >= AGAIN
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_scaled_weight_is_the_nearest_that_the_kernel_takes(own in LEAST_WEIGHT..=MOST_WEIGHT, permille: u32) {
            let weight = scaled(own, permille);
            prop_assert!((LEAST_WEIGHT..=MOST_WEIGHT).contains(&weight));
            let exact = f64::from(own) * f64::from(permille) / 1000.0;
            let nearest = exact.clamp(LEAST_WEIGHT.into(), MOST_WEIGHT.into());
            prop_assert!((f64::from(weight) - nearest).abs() <= 0.5);
            prop_assert_eq!(scaled(own, WHOLE), own);
        }
    }

    #[test]
    fn weights_change_at_most_once_a_second_and_not_for_less_than_a_hundredth() {
        let weighed = Weighed { at: Duration::from_secs(5), permille: 1000 };
        let due = |ms, permille| weighed.is_due(Duration::from_millis(ms), permille);
        assert!(!due(5_999, 2000) && due(6_000, 2000) && due(6_000, 500));
        assert!(!due(6_000, 1009) && due(6_000, 1010) && due(6_000, 990));
        assert!(!due(14_999, 1000) && due(15_000, 1000));
        assert!(!due(0, 2000), "a clock that went back");
    }
}
