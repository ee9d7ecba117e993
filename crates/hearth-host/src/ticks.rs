//! How long each CPU of the host is in use, from `/proc/stat`.

use procfs::{CpuTime, CurrentSI, KernelStats};
use std::collections::BTreeMap;

/// Time of each CPU that is online, since the machine began, in ticks of 10 ms (of `USER_HZ`).
#[derive(Clone, Debug, Default)]
pub struct Ticks(BTreeMap<usize, CpuTicks>);

#[derive(Clone, Copy, Debug)]
struct CpuTicks {
    busy: u64,
    stolen: u64,
    idle: u64,
}

/// Parts of a time, 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Busy {
    /// In use, or taken by the hypervisor.
    pub busy: f64,
    /// Taken by the hypervisor.
    pub stolen: f64,
}

impl Ticks {
    /// Now; of no CPU if the kernel does not tell.
    pub fn now() -> Self {
        let online = std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
        let times = KernelStats::current().map(|stats| stats.cpu_time).unwrap_or_default();
        Self::of(&online, &times)
    }

    /// The kernel tells the time of CPUs that are online, in their order, and here without their numbers.
    fn of(online: &str, times: &[CpuTime]) -> Self {
        let cpus = hearth_machine::list::parse_list(online.trim()).unwrap_or_default();
        // One came or went in between.
        if cpus.len() != times.len() {
            return Self::default();
        }
        let ticks = |is: &CpuTime| CpuTicks {
            busy: is.user + is.nice + is.system + is.irq.unwrap_or(0) + is.softirq.unwrap_or(0),
            stolen: is.steal.unwrap_or(0),
            idle: is.idle + is.iowait.unwrap_or(0),
        };
        Self(cpus.into_iter().zip(times.iter().map(ticks)).collect())
    }

    /// What became of each CPU's time since then; not of those that were not online, or have not had a tick.
    pub fn since(&self, then: &Self) -> BTreeMap<usize, Busy> {
        let between = |(cpu, now): (&usize, &CpuTicks)| Some((*cpu, now.since(then.0.get(cpu)?)?));
        self.0.iter().filter_map(between).collect()
    }

    /// What part of all CPUs' time a hypervisor took since then; nothing if the kernel does not tell.
    pub fn stolen_since(&self, then: &Self) -> Option<f64> {
        let stolen: Vec<f64> = self.since(then).values().map(|busy| busy.stolen).collect();
        (!stolen.is_empty()).then(|| stolen.iter().sum::<f64>() / stolen.len() as f64)
    }
}

impl CpuTicks {
    fn since(&self, then: &Self) -> Option<Busy> {
        let of = |part: fn(&Self) -> u64| part(self).saturating_sub(part(then)) as f64;
        let (busy, stolen, idle) = (of(|is| is.busy), of(|is| is.stolen), of(|is| is.idle));
        let all = busy + stolen + idle;
        (all > 0.0).then(|| Busy { busy: (busy + stolen) / all, stolen: stolen / all })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use procfs::{ExplicitSystemInfo, FromBufReadSI};

    fn ticks(online: &str, lines: &[&str]) -> Ticks {
        let text = format!("cpu 0 0 0 0\n{}\nctxt 1\nbtime 1\nprocesses 1\n", lines.join("\n"));
        let system = ExplicitSystemInfo {
            boot_time_secs: 0,
            ticks_per_second: 100,
            page_size: 4096,
            is_little_endian: true,
        };
        let stats = KernelStats::from_buf_read(text.as_bytes(), &system).unwrap();
        Ticks::of(online, &stats.cpu_time)
    }

    #[test]
    fn a_cpu_is_in_use_where_it_neither_idles_nor_waits_for_a_disk() {
        let before = ticks("0,2\n", &["cpu0 10 0 0 100 0 0 0 0", "cpu2 0 0 0 50 0 0 0 0"]);
        let after = ticks("0,2\n", &["cpu0 20 10 5 140 10 3 2 20", "cpu2 0 0 0 50 0 0 0 0"]);
        let busy = after.since(&before);
        assert_eq!(busy.len(), 1, "the other has had no tick: {busy:?}");
        assert_eq!(busy[&0], Busy { busy: 0.5, stolen: 0.2 });
        assert_eq!(after.stolen_since(&before), Some(0.2));
    }

    #[test]
    fn cpus_that_come_or_go_are_left_out() {
        let before = ticks("0", &["cpu0 10 0 0 100 0 0 0 0"]);
        let after = ticks("0-1", &["cpu0 20 0 0 100 0 0 0 0", "cpu1 5 0 0 5 0 0 0 0"]);
        assert_eq!(after.since(&before).keys().collect::<Vec<_>>(), [&0]);
        assert!(ticks("0-2", &["cpu0 20 0 0 100 0 0 0 0"]).0.is_empty());
    }

    #[test]
    fn this_host_is_looked_at() {
        let ticks = Ticks::now();
        assert!(!ticks.0.is_empty());
        assert!(ticks.since(&Ticks::default()).is_empty());
    }
}
