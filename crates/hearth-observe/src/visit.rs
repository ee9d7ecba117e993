//! Runs for a moment on each CPU, so that a switch happens there: intervals that are under way begin
//! and end where the observation does.

use rustix::thread::{CpuSet, sched_setaffinity};

pub(super) fn visit(cpus: &[usize]) {
    std::thread::scope(|scope| {
        for &cpu in cpus {
            scope.spawn(move || {
                let mut set = CpuSet::new();
                set.set(cpu);
                // A CPU that this process may not use is left out.
                let _ = sched_setaffinity(None, &set);
            });
        }
    });
}
