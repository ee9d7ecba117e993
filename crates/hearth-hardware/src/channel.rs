//! The bandwidth of a bus or of a node's memory, shared by requests that queue.
//!
//! CPUs are simulated one window at a time, so requests do not arrive in order of time. A channel
//! therefore keeps its load by interval of time rather than a single "free from" instant: a request
//! waits as in an M/D/1 queue at the load of the interval before its own, and when its interval is
//! full it waits for the next one that has room.

const INTERVALS: usize = 4096;
/// An interval has room for at least this many requests.
const LEAST_ROOM: u64 = 64;

#[derive(Clone, Copy, Default)]
struct Interval {
    index: u64,
    requests: u32,
}

/// One bus, or one node's memory.
pub(crate) struct Channel {
    intervals: Box<[Interval; INTERVALS]>,
    /// Length of an interval, as a power of two of picoseconds.
    shift: u32,
    /// Mean wait, in picoseconds, by the number of requests of the interval before. Its length less
    /// one is what an interval has room for.
    wait_ps: Vec<u64>,
}

impl Channel {
    /// `service_ps`: how long one line occupies the channel.
    pub(crate) fn new(service_ps: u64) -> Self {
        let service_ps = service_ps.max(1);
        let shift = (service_ps * LEAST_ROOM).next_power_of_two().trailing_zeros();
        let room = (1 << shift) / service_ps;
        let wait = |requests: u64| {
            let busy = requests.min(room - 2);
            service_ps * busy / (2 * (room - busy))
        };
        let intervals = Box::new([Interval::default(); INTERVALS]);
        Self { intervals, shift, wait_ps: (0..=room).map(wait).collect() }
    }

    /// Requests of an interval so far.
    #[inline(always)]
    fn requests(&self, index: u64) -> u32 {
        let of = &self.intervals[index as usize % INTERVALS];
        if of.index == index { of.requests } else { 0 }
    }

    /// A line is asked for at `now_ps`: returns how long it waits for its turn.
    #[inline]
    pub(crate) fn request(&mut self, now_ps: u64) -> u64 {
        let mut index = now_ps >> self.shift;
        // The first interval of all has none before it, and goes by its own.
        let wait_ps = self.wait_ps[self.requests(index.saturating_sub(1)) as usize];
        let room = self.wait_ps.len() as u32 - 1;
        while self.requests(index) >= room {
            index += 1;
        }
        let requests = self.requests(index) + 1;
        self.intervals[index as usize % INTERVALS] = Interval { index, requests };
        wait_ps + (index << self.shift).saturating_sub(now_ps)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quiet_channel_never_waits() {
        let mut channel = Channel::new(1000);
        assert!((0..100).all(|i| channel.request(i * 1_000_000) == 0));
    }

    #[test]
    fn no_more_is_served_than_the_bandwidth_allows() {
        let mut channel = Channel::new(1000);
        let last = (0..10_000).map(|_| channel.request(5)).max().unwrap();
        let ideal = 10_000 * 1000;
        assert!((ideal - 200_000..ideal + 200_000).contains(&last), "{last}");
    }

    #[test]
    fn half_a_load_waits_half_a_service() {
        let mut channel = Channel::new(1000);
        let waits: Vec<u64> = (0..10_000).map(|i| channel.request(i * 2000)).collect();
        let mean = waits.iter().sum::<u64>() as f64 / waits.len() as f64;
        assert!((450.0..550.0).contains(&mean), "M/D/1 at half load waits 0.5 services: {mean}");
    }
}
