//! Where the guest's memory is among its physical addresses.

const GIB: u64 = 1 << 30;
const FOUR_GIB: u64 = 4 * GIB;
/// QEMU's `pc` machine has this much below 4 GiB if it has more in all than [`ALL_BELOW`].
const BELOW: u64 = 3 * GIB;
const ALL_BELOW: u64 = 7 * GIB / 2;

/// Memory as QEMU's `pc` machine lays it out: one stretch from 0, and the rest from 4 GiB.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    below: u64,
    bytes: u64,
}

impl Layout {
    pub(crate) fn new(bytes: u64) -> Self {
        Self { below: if bytes >= ALL_BELOW { BELOW } else { bytes }, bytes }
    }

    /// How many bytes of memory come before a physical address; nothing if there is no memory.
    pub(crate) fn offset(self, physical: u64) -> Option<u64> {
        let offset = match physical.checked_sub(FOUR_GIB) {
            Some(above) => self.below + above,
            None if physical < self.below => physical,
            None => return None,
        };
        (offset < self.bytes).then_some(offset)
    }

    /// Whether a physical address without memory would have some in a larger machine. The rest below 4 GiB is for
    /// devices and ROMs.
    pub(crate) fn is_beyond(self, physical: u64) -> bool {
        self.offset(physical).is_none() && !(BELOW..FOUR_GIB).contains(&physical)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_fits_is_where_its_addresses_are() {
        let layout = Layout::new(2 * GIB);
        assert_eq!(layout.offset(2 * GIB - 1), Some(2 * GIB - 1));
        assert_eq!(layout.offset(2 * GIB), None);
        assert_eq!(layout.offset(FOUR_GIB), None);
        assert!(layout.is_beyond(2 * GIB) && layout.is_beyond(FOUR_GIB) && !layout.is_beyond(FOUR_GIB - 1));
    }

    #[test]
    fn the_rest_of_much_memory_begins_at_4_gib() {
        let layout = Layout::new(8 * GIB);
        assert_eq!(layout.offset(3 * GIB - 1), Some(3 * GIB - 1));
        assert_eq!(layout.offset(3 * GIB), None);
        assert_eq!(layout.offset(FOUR_GIB), Some(3 * GIB));
        assert_eq!(layout.offset(9 * GIB), None);
    }
}
