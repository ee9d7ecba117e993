//! The machine as a whole: which CPUs are there, how much of them is used, and what a process uses.

use crate::demand::Mask;
use hearth_host::clock::since_boot;
use hearth_host::task::{IDLE, OTHER, is_real_time};
use procfs::FromRead;
use procfs::process::Stat;
use std::fs;
use std::io::Read;
use std::time::{Duration, Instant};

/// Of a CPU, what looking at the machine may take.
pub const COST_SHARE: f64 = 0.002;

/// Something that is looked at every so often, and more rarely where that costs much.
#[derive(Debug)]
pub struct Paced {
    every: Duration,
    share: f64,
    next: Option<Instant>,
    /// What the last look took.
    pub cost: Duration,
}

impl Paced {
    /// At most once in this time, and so that it takes at most this share of a CPU.
    pub fn new(every: Duration, share: f64) -> Self {
        Self { every, share, next: None, cost: Duration::ZERO }
    }

    /// How long it is until it is time.
    pub fn left(&self, now: Instant) -> Duration {
        self.next.map_or(Duration::ZERO, |next| next.saturating_duration_since(now))
    }

    /// Looks, if it is time; what that costs says when the next time is.
    pub fn look<T>(&mut self, now: Instant, look: impl FnOnce() -> T) -> Option<T> {
        if !self.left(now).is_zero() {
            return None;
        }
        let begin = Instant::now();
        let found = look();
        self.took(now, begin.elapsed());
        Some(found)
    }

    /// The look at this time took so long.
    pub fn took(&mut self, now: Instant, cost: Duration) {
        self.cost = cost;
        self.next = Some(now + self.every.max(cost.div_f64(self.share)));
    }
}

/// What one read of a file gives: a file of `/proc` is whole then, as far as there is room.
fn read_once<'a>(path: &str, text: &'a mut [u8]) -> Option<&'a [u8]> {
    let length = fs::File::open(path).and_then(|mut file| file.read(text)).ok()?;
    Some(&text[..length])
}

/// Time of all CPUs since the machine began, in ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ticks {
    /// In use, or taken by the hypervisor.
    pub busy: u64,
    /// Not in use.
    pub idle: u64,
}

impl Ticks {
    /// Now.
    pub fn now() -> Option<Self> {
        // The kernel writes the whole file anyway; its first line is all CPUs together.
        let mut text = [0; 256];
        Self::parse(std::str::from_utf8(read_once("/proc/stat", &mut text)?).ok()?)
    }

    fn parse(text: &str) -> Option<Self> {
        let line = text.lines().next()?.strip_prefix("cpu ")?;
        let ticks: Vec<u64> = line.split_whitespace().map_while(|word| word.parse().ok()).collect();
        let [user, nice, system, idle, waits, interrupts, soft, ref more @ ..] = ticks[..] else {
            return None;
        };
        let stolen = more.first().copied().unwrap_or(0);
        let busy = [user, nice, system, interrupts, soft, stolen].into_iter().fold(0, u64::saturating_add);
        Some(Self { busy, idle: idle.saturating_add(waits) })
    }
}

/// The CPUs that are online.
pub fn online() -> Mask {
    let text = fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    let count = || std::thread::available_parallelism().map_or(1, usize::from);
    match hearth_machine::list::parse_list(text.trim()) {
        Some(cpus) if !cpus.is_empty() => Mask::new(cpus),
        _ => Mask::new(0..count()),
    }
}

/// The CPUs that a process's first thread may run on; none if it does not say.
pub fn mask_of(pid: i32) -> Mask {
    let Some(pid) = rustix::process::Pid::from_raw(pid) else { return Mask::default() };
    let Ok(set) = rustix::thread::sched_getaffinity(Some(pid)) else { return Mask::default() };
    Mask::new((0..rustix::thread::CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)))
}

/// A process at one time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Process {
    /// When it began, in ticks since the machine did.
    pub start: u64,
    /// CPU time of all its threads, in ticks.
    pub ticks: u64,
    /// How many threads it has.
    pub threads: f64,
    /// By its nice value and class, as the kernel has it.
    pub weight: f64,
}

impl Process {
    /// The process of this number, if there is one.
    pub fn now(pid: i32) -> Option<Self> {
        let mut text = [0; 1024];
        let stat = Stat::from_read(read_once(&format!("/proc/{pid}/stat"), &mut text)?).ok()?;
        Some(Self {
            start: stat.starttime,
            ticks: stat.utime.saturating_add(stat.stime),
            threads: stat.num_threads.max(1) as f64,
            weight: weight(stat.nice, stat.policy.unwrap_or(OTHER)),
        })
    }
}

/// Each step of nice is a quarter; real-time classes take what they want, and the idle class has what the
/// kernel gives it (`WEIGHT_IDLEPRIO`).
fn weight(nice: i64, policy: u32) -> f64 {
    match policy {
        _ if is_real_time(policy) => 1e7,
        IDLE => 3.0,
        _ => crate::cgroups::USUAL_WEIGHT * 1.25_f64.powi(-(nice.clamp(-20, 19) as i32)),
    }
}

/// How long ago, in seconds, a process began that began at this tick of the machine's.
pub fn age(start: u64) -> f64 {
    (since_boot().as_secs_f64() - start as f64 / ticks_in_second()).max(0.0)
}

/// Ticks in a second.
pub fn ticks_in_second() -> f64 {
    rustix::param::clock_ticks_per_second() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_of_all_cpus_is_read_and_others_are_not() {
        let ticks = Ticks::parse("cpu  10 1 5 100 7 2 3 4 9 9\ncpu0 1 1 1 1 1 1 1 1 1 1\n");
        assert_eq!(ticks, Some(Ticks { busy: 25, idle: 107 }));
        assert_eq!(Ticks::parse("cpu  1 2 3 4 5 6 7\n"), Some(Ticks { busy: 19, idle: 9 }));
        for wrong in ["", "cpu0 1 2 3 4 5 6 7", "cpu  1 2 3", "cpu  a b c d e f g"] {
            assert_eq!(Ticks::parse(wrong), None, "{wrong}");
        }
        assert!(Ticks::now().is_some_and(|now| now.busy > 0));
    }

    #[test]
    fn what_is_costly_is_looked_at_more_rarely() {
        let mut paced = Paced::new(Duration::from_secs(1), COST_SHARE);
        let begin = Instant::now();
        assert!(paced.look(begin, || ()).is_some());
        assert!(paced.look(begin, || ()).is_none());
        let cost = paced.cost.div_f64(COST_SHARE).max(Duration::from_secs(1));
        assert!(paced.look(begin + cost, || ()).is_some());
        let slow = || {
            let begin = Instant::now();
            while begin.elapsed() < Duration::from_millis(20) {}
        };
        let now = begin + 100 * cost;
        assert!(paced.look(now, slow).is_some());
        assert!(paced.look(now + Duration::from_secs(9), || ()).is_none());
    }

    #[test]
    fn a_process_knows_itself() {
        let own = Process::now(std::process::id() as i32).unwrap();
        assert!(own.start > 0 && own.threads >= 1.0);
        assert!(Process::now(0).is_none());
        assert!(!mask_of(std::process::id() as i32).is_empty());
        assert!(mask_of(std::process::id() as i32).is_within(&online()));
    }

    #[test]
    fn nice_is_a_quarter_a_step() {
        assert_eq!(weight(0, 0), 1024.0);
        assert!((weight(-1, 0) / weight(0, 0) - 1.25).abs() < 1e-9);
        assert!(weight(0, 1) > weight(-20, 0));
    }
}
