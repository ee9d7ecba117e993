//! The bandwidth of a bus or of a node's memory, shared by requests that queue.
//!
//! CPUs are simulated one window at a time, so requests do not arrive in order of time. A channel
//! therefore keeps its load by interval of time rather than a single "free from" instant: a request
//! waits as in an M/D/1 queue at the load of the interval before its own, and when its interval is
//! full it waits for the next one that has room.

const INTERVALS: usize = 4096;
const REQUESTS_PER_INTERVAL: u64 = 64;

#[derive(Clone, Copy, Default)]
struct Interval {
    index: u64,
    requests: u32,
}

/// One bus, or one node's memory.
pub(crate) struct Channel {
    intervals: Box<[Interval; INTERVALS]>,
    interval_ps: u64,
    /// Mean wait, in picoseconds, by the number of requests of the interval before.
    wait_ps: [u64; REQUESTS_PER_INTERVAL as usize + 1],
}

impl Channel {
    /// `service_ps`: how long one line occupies the channel.
    pub(crate) fn new(service_ps: u64) -> Self {
        let service_ps = service_ps.max(1);
        let mut wait_ps = [0; REQUESTS_PER_INTERVAL as usize + 1];
        for (requests, wait) in wait_ps.iter_mut().enumerate() {
            let busy = (requests as u64).min(REQUESTS_PER_INTERVAL - 2);
            *wait = service_ps * busy / (2 * (REQUESTS_PER_INTERVAL - busy));
        }
        let intervals = Box::new([Interval::default(); INTERVALS]);
        Self { intervals, interval_ps: service_ps * REQUESTS_PER_INTERVAL, wait_ps }
    }

    fn interval(&mut self, index: u64) -> &mut Interval {
        let interval = &mut self.intervals[index as usize % INTERVALS];
        if interval.index != index {
            *interval = Interval { index, requests: 0 };
        }
        interval
    }

    /// A line is asked for at `now_ps`: returns how long it waits for its turn.
    pub(crate) fn request(&mut self, now_ps: u64) -> u64 {
        let first = now_ps / self.interval_ps;
        let before = self.interval(first.saturating_sub(1)).requests;
        let mut index = first;
        while u64::from(self.interval(index).requests) >= REQUESTS_PER_INTERVAL {
            index += 1;
        }
        self.interval(index).requests += 1;
        let wait = self.wait_ps[(before as usize).min(REQUESTS_PER_INTERVAL as usize)];
        wait + if index == first { 0 } else { index * self.interval_ps - now_ps }
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
