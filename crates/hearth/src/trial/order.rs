//! In which order the schedulers come.

/// The scheduler of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The kernel's own.
    Kernel,
    /// Hearth.
    Hearth,
}

/// Both sides of each round: ABBA, which cancels a drift that is steady, or by a seed's choice.
pub fn rounds(count: u32, seed: Option<u64>) -> Vec<[Side; 2]> {
    let one = [Side::Kernel, Side::Hearth];
    let other = [Side::Hearth, Side::Kernel];
    let Some(seed) = seed else {
        return (0..count).map(|round| if round % 2 == 0 { one } else { other }).collect();
    };
    // Half of the rounds begin with each side, in an order drawn by Fisher and Yates' method.
    let mut rounds: Vec<_> = (0..count).map(|round| if round % 2 == 0 { one } else { other }).collect();
    let mut state = seed;
    for index in (1..rounds.len()).rev() {
        rounds.swap(index, (next(&mut state) % (index as u64 + 1)) as usize);
    }
    rounds
}

/// SplitMix64 (Steele, Lea and Flood 2014).
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut value = *state;
    value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use Side::{Hearth, Kernel};

    #[test]
    fn the_order_is_abba_without_a_seed() {
        let sides: Vec<Side> = rounds(3, None).concat();
        assert_eq!(sides, [Kernel, Hearth, Hearth, Kernel, Kernel, Hearth]);
    }

    #[test]
    fn a_seed_gives_the_same_balanced_order_each_time() {
        for seed in 0..20 {
            let order = rounds(10, Some(seed));
            assert_eq!(order, rounds(10, Some(seed)));
            assert_eq!(order.iter().filter(|round| round[0] == Kernel).count(), 5);
        }
        assert!((0..20).any(|seed| rounds(10, Some(seed)) != rounds(10, Some(seed + 1))));
    }
}
