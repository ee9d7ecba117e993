//! The kernel's clocks.

use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// `CLOCK_MONOTONIC`, which all processes and the kernel's programs share.
pub fn now_ns() -> u64 {
    read(ClockId::Monotonic).as_nanos() as u64
}

/// `CLOCK_BOOTTIME`, which all processes share: time since the machine began, its sleep included.
pub fn since_boot() -> Duration {
    read(ClockId::Boottime)
}

/// CPU time of this thread.
pub fn thread_cpu_time() -> Duration {
    read(ClockId::ThreadCPUTime)
}

fn read(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_go_on_while_a_thread_runs() {
        let (begin_ns, boot, cpu) = (now_ns(), since_boot(), thread_cpu_time());
        while thread_cpu_time() == cpu {}
        assert!(thread_cpu_time() > cpu && now_ns() > begin_ns && since_boot() > boot);
        assert!(since_boot() >= Duration::from_nanos(begin_ns));
    }
}
