//! Address deltas: a two-bit length class for each, and that many bytes.
//!
//! A delta is a signed difference of two dense addresses, cut to the bytes of its class. Dense
//! addresses are below 2^39, so that five bytes hold any difference.

/// Bytes that a delta of each class takes.
const CLASS_BYTES: [u8; 4] = [0, 1, 2, 5];

/// The most bytes that a delta takes.
pub(crate) const LONGEST: usize = 5;

/// Spare bytes after the last delta, so that eight bytes can be read or written at any of them.
pub(crate) const PADDING: usize = 8;

/// Bytes that four deltas take together, by their four classes packed into a byte.
pub(crate) const BYTES_OF_FOUR: [u8; 256] = {
    let mut table = [0; 256];
    let mut packed = 0;
    while packed < 256 {
        table[packed] = CLASS_BYTES[packed & 3]
            + CLASS_BYTES[packed >> 2 & 3]
            + CLASS_BYTES[packed >> 4 & 3]
            + CLASS_BYTES[packed >> 6];
        packed += 1;
    }
    table
};

/// The delta that leads from one address to another.
#[inline]
pub(crate) fn between(from: u64, to: u64) -> i64 {
    to.wrapping_sub(from) as i64
}

/// The class of a delta.
#[inline]
pub(crate) fn class(delta: i64) -> u64 {
    let (one, two) = (i64::from(delta as i8), i64::from(delta as i16));
    u64::from(delta != 0) + u64::from(delta != one) + u64::from(delta != two)
}

/// Bytes that a delta of this class takes.
#[inline]
pub(crate) fn class_bytes(class: u64) -> usize {
    const PACKED: u32 = u32::from_le_bytes(CLASS_BYTES);
    (PACKED >> (8 * (class & 3)) & 7) as usize
}

/// The delta of this class in the lower of eight bytes. Its sign is in its highest bit.
#[inline]
pub(crate) fn extend(eight: u64, class: u64) -> i64 {
    /// 63 less the bits of each class. The missing 1 is shifted apart, as no shift can be by 64.
    const UNUSED_BITS: u32 = u32::from_le_bytes([63, 55, 47, 23]);
    let unused = UNUSED_BITS >> (8 * (class & 3)) & 63;
    ((eight << 1 << unused) as i64) >> unused >> 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::PAGE_BYTES;
    use crate::format::MAX_PAGES;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_delta_leads_from_any_address_to_any_other(
            from in 0..MAX_PAGES * PAGE_BYTES,
            far in 0..MAX_PAGES * PAGE_BYTES,
            near in -70_000i64..70_000,
            garbage: u64,
        ) {
            for to in [far, from, from.saturating_add_signed(near)] {
                let delta = between(from, to);
                let class = class(delta);
                let used = (1 << (8 * class_bytes(class))) - 1;
                let stored = delta as u64 & used | garbage & !used;
                prop_assert_eq!(from.wrapping_add_signed(extend(stored, class)), to);
            }
        }
    }

    #[test]
    fn small_steps_take_few_bytes_in_both_directions() {
        let bytes = |from, to| class_bytes(class(between(from, to)));
        assert_eq!(bytes(100, 100), 0);
        assert_eq!(bytes(1000, 1000 - 128), 1);
        assert_eq!(bytes(1000, 1000 + 127), 1);
        assert_eq!(bytes(1000, 1000 + 128), 2);
        assert_eq!(bytes(100_000, 100_000 - 32768), 2);
        assert_eq!(bytes(100_000, 100_000 - 32769), 5);
    }
}
