//! Queue ids, as the scheduler numbers its dispatch queues: each CPU has one for tasks that others may
//! take, and one for tasks that are bound to it.

use crate::MAX_CPUS;

/// A queue of a CPU: that of the tasks that are `bound` to it, or that of all others.
pub const fn queue_of(cpu: usize, bound: bool) -> u64 {
    (if bound { MAX_CPUS + cpu } else { cpu }) as u64
}

/// The CPU whose queue this is; `None` of a number below 0, which is no queue.
pub fn cpu_of_queue(queue: i32) -> Option<i32> {
    (queue >= 0).then_some(queue % MAX_CPUS as i32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_queues_of_a_cpu_are_its_own() {
        for cpu in [0, 7, MAX_CPUS - 1] {
            for bound in [false, true] {
                assert_eq!(cpu_of_queue(queue_of(cpu, bound) as i32), Some(cpu as i32));
            }
            assert_ne!(queue_of(cpu, false), queue_of(cpu, true));
        }
        assert_eq!(cpu_of_queue(-1), None);
    }
}
