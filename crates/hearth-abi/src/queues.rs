//! Queue ids, as the scheduler numbers its dispatch queues: each CPU has one for tasks that others may
//! take, and one for tasks that are pinned to it.

use crate::MAX_CPUS;
use crate::declare::constants;

constants! { all {
    /// Bits of a queue's id that hold its CPU (`bpf/queue_ids.h`).
    QUEUE_CPU_BITS => CPU_BITS: u32 = 9;
    /// The kind of the queue of tasks that any CPU may take.
    QUEUE_SHARED => SHARED: u32 = 0;
    /// The kind of the queue of tasks that are pinned to its CPU.
    QUEUE_PINNED => PINNED: u32 = 1;
} }

const _: () = assert!(1 << CPU_BITS == MAX_CPUS);

/// A queue of a CPU: that of the tasks that are `pinned` to it, or that of all others.
pub const fn queue_of(cpu: usize, pinned: bool) -> u64 {
    ((if pinned { PINNED } else { SHARED }) << CPU_BITS) as u64 | cpu as u64
}

/// The CPU whose queue this is; `None` of a number below 0, which is no queue.
pub fn cpu_of_queue(queue: i32) -> Option<i32> {
    (queue >= 0).then_some(queue & (MAX_CPUS as i32 - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_queues_of_a_cpu_are_its_own() {
        for cpu in [0, 7, MAX_CPUS - 1] {
            for pinned in [false, true] {
                assert_eq!(cpu_of_queue(queue_of(cpu, pinned) as i32), Some(cpu as i32));
            }
            assert_ne!(queue_of(cpu, false), queue_of(cpu, true));
        }
        assert_eq!(cpu_of_queue(-1), None);
    }
}
