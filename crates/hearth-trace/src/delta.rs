//! Address deltas: a two-bit length class for each, and that many bytes.
//!
//! A delta is a signed difference of two dense addresses, cut to the bytes of its class. Dense
//! addresses are below 2^39, so that five bytes hold any difference.

/// Bytes that a delta of each class takes.
const CLASS_BYTES: [u8; 4] = [0, 1, 2, 5];

/// The most bytes that a delta takes.
pub(crate) const LONGEST: usize = 5;

/// Spare bytes after the last delta, so that eight bytes can be written at any of them, and four deltas be read.
pub(crate) const PADDING: usize = 24;

/// Bytes that four deltas take together, by their four classes packed into a byte.
pub(crate) const BYTES_OF_FOUR: [u8; 256] = {
    let mut table = [0; 256];
    let mut packed = 0;
    while packed < 256 {
        table[packed] = STARTS_OF_FOUR[packed][3] + CLASS_BYTES[packed >> 6];
        packed += 1;
    }
    table
};

/// Where each of four deltas begins, by their four classes packed into a byte.
const STARTS_OF_FOUR: [[u8; 4]; 256] = {
    let mut table = [[0; 4]; 256];
    let mut packed = 0;
    while packed < 256 {
        let mut i = 1;
        while i < 4 {
            table[packed][i] = table[packed][i - 1] + CLASS_BYTES[packed >> (2 * (i - 1)) & 3];
            i += 1;
        }
        packed += 1;
    }
    table
};

/// Reads four deltas of the classes in `packed`.
#[inline(always)]
pub(crate) fn read_four(packed: u8, bytes: &[u8; PADDING]) -> [i64; 4] {
    let starts = STARTS_OF_FOUR[usize::from(packed)];
    std::array::from_fn(|i| {
        // At most 3 x LONGEST; so much the compiler cannot know.
        let start = usize::from(starts[i] & 15);
        let mut eight = [0; 8];
        eight.copy_from_slice(&bytes[start..start + 8]);
        extend(u64::from_le_bytes(eight), packed >> (2 * i))
    })
}

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
    usize::from(CLASS_BYTES[class as usize & 3])
}

/// The delta of this class in the lower of eight bytes. Its sign is in its highest bit.
#[inline(always)]
fn extend(eight: u64, class: u8) -> i64 {
    const USED: [u64; 4] = [0, 0xff, 0xffff, 0xff_ffff_ffff];
    const SIGN: [u64; 4] = [0, 1 << 7, 1 << 15, 1 << 39];
    let class = usize::from(class & 3);
    ((eight & USED[class]) ^ SIGN[class]).wrapping_sub(SIGN[class]) as i64
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
                prop_assert_eq!(from.wrapping_add_signed(extend(stored, class as u8)), to);
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
