//! Address deltas: a two-bit length class for each, and that many bytes.

use crate::event::{ADDRESS_BITS, ADDRESS_MASK};

/// Bytes that a delta of each class takes. Five hold any difference of two addresses.
pub(crate) const CLASS_BYTES: [u8; 4] = [0, 1, 2, 5];

/// The most bytes that a delta takes.
pub(crate) const LONGEST: usize = 5;

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

/// Spare bytes after the last delta, so that eight bytes can be read or written at any of them.
pub(crate) const PADDING: usize = 8;

/// The difference `to - from` modulo the address space, zigzag coded: small either way is small.
#[inline]
pub(crate) fn zigzag(from: u64, to: u64) -> u64 {
    let shift = 64 - ADDRESS_BITS;
    let signed = (to.wrapping_sub(from) << shift) as i64 >> shift;
    ((signed << 1) ^ (signed >> 63)) as u64
}

/// The address that lies a zigzag-coded difference away from `from`.
#[inline]
pub(crate) fn apply(from: u64, zigzag: u64) -> u64 {
    let signed = (zigzag >> 1) ^ (zigzag & 1).wrapping_neg();
    from.wrapping_add(signed) & ADDRESS_MASK
}

/// The class of a zigzag-coded delta.
#[inline]
pub(crate) fn class(zigzag: u64) -> u8 {
    const BY_BITS: [u8; 65] = {
        let mut table = [3; 65];
        let mut bits = 0;
        while bits <= 16 {
            table[bits] = bits.div_ceil(8) as u8;
            bits += 1;
        }
        table
    };
    BY_BITS[64 - zigzag.leading_zeros() as usize]
}

/// A mask of the bytes of each class.
pub(crate) const CLASS_MASK: [u64; 4] = [0, 0xff, 0xffff, 0xff_ffff_ffff];

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_delta_leads_from_any_address_to_any_other(from in 0..=ADDRESS_MASK, to in 0..=ADDRESS_MASK) {
            let delta = zigzag(from, to);
            prop_assert_eq!(apply(from, delta), to);
            let class = class(delta) as usize;
            prop_assert_eq!(delta & CLASS_MASK[class], delta);
        }
    }

    #[test]
    fn small_steps_take_few_bytes_in_both_directions() {
        assert_eq!(class(zigzag(100, 100)), 0);
        assert_eq!(class(zigzag(100, 92)), 1);
        assert_eq!(class(zigzag(100, 4196)), 2);
        assert_eq!(class(zigzag(0, ADDRESS_MASK)), 1);
        assert_eq!(class(zigzag(0, 1 << 39)), 3);
    }
}
