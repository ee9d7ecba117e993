//! How much may move in any second.
//!
//! The last second and a little more is kept in 65 slots of 1/64 s. Any stretch of one second lies
//! within 65 slots, so as long as these never hold more than the quota, no second does.

const SLOT_NS: u64 = 1_000_000_000 / 64;
const SLOTS: usize = 65;

/// What was taken of a quota in the last second.
#[derive(Clone, Debug)]
pub(super) struct Window {
    limit: u64,
    used: [u64; SLOTS],
    sum: u64,
    /// The number of the latest slot.
    latest: u64,
}

impl Window {
    /// At most `limit` in any second.
    pub(super) fn new(limit: u64) -> Self {
        Self { limit, used: [0; SLOTS], sum: 0, latest: 0 }
    }

    /// The most that this quota ever gives.
    pub(super) fn limit(&self) -> u64 {
        self.limit
    }

    /// How much may be taken now.
    pub(super) fn room(&mut self, now_ns: u64) -> u64 {
        self.advance(now_ns);
        self.limit - self.sum
    }

    /// Takes `amount`, all or nothing.
    pub(super) fn take(&mut self, now_ns: u64, amount: u64) -> bool {
        let fits = amount <= self.room(now_ns);
        if fits {
            self.sum += amount;
            self.used[(self.latest % SLOTS as u64) as usize] += amount;
        }
        fits
    }

    /// Forgets what is older than the slots. A clock that steps back stays in the latest slot.
    fn advance(&mut self, now_ns: u64) {
        let now = now_ns / SLOT_NS;
        let passed = now.saturating_sub(self.latest).min(SLOTS as u64);
        for slot in 1..=passed {
            let used = &mut self.used[((self.latest + slot) % SLOTS as u64) as usize];
            self.sum -= *used;
            *used = 0;
        }
        self.latest = self.latest.max(now);
    }
}

/// For tests: of amounts, each after its time, the greatest sum within a second, and when that begins.
#[cfg(test)]
pub(crate) fn fullest_second(taken: &[(u64, u64)]) -> (u64, u64) {
    let sum = |start_ns: u64| {
        let second = start_ns..=start_ns + 1_000_000_000;
        let within = taken.iter().filter(|(at_ns, _)| second.contains(at_ns));
        (within.map(|(_, amount)| amount).sum(), start_ns)
    };
    taken.iter().map(|(start_ns, _)| sum(*start_ns)).max().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_second_has_more_than_the_quota_whenever_it_begins(
            limit in 0_u64..50,
            asked in prop::collection::vec((0_u64..400_000_000, 1_u64..20), 1..80),
        ) {
            let mut window = Window::new(limit);
            let mut now_ns = 0;
            let mut taken: Vec<(u64, u64)> = Vec::new();
            for (later_ns, amount) in asked {
                now_ns += later_ns;
                if window.take(now_ns, amount) {
                    taken.push((now_ns, amount));
                }
            }
            let (sum, start_ns) = fullest_second(&taken);
            prop_assert!(sum <= limit, "{sum} of {limit} from {start_ns}");
        }
    }

    #[test]
    fn the_whole_quota_is_there_again_little_more_than_a_second_later() {
        let mut window = Window::new(10);
        assert!(window.take(0, 10));
        assert!(!window.take(999_999_999, 1));
        assert!(window.take(65 * SLOT_NS, 10));
        assert!(window.take(u64::MAX, 10));
    }
}
