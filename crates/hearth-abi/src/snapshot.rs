//! `bpf/snapshot.h`: what a snapshot says of each task.

use crate::MAX_CPUS;
use crate::declare::{constants, shared};
use bytemuck::{Pod, Zeroable};
use hearth_machine::CpuSet;

constants! { all {
    /// Words of a mask of CPUs.
    HEARTH_MASK_WORDS => MASK_WORDS: usize = MAX_CPUS / 64;
    /// [`Sample::state`]: neither of the others.
    HEARTH_ASLEEP => ASLEEP: u32 = 0;
    /// [`Sample::state`]: it could run.
    HEARTH_WAITING => WAITING: u32 = 1;
    /// [`Sample::state`]: it runs.
    HEARTH_RUNNING => RUNNING: u32 = 2;
} }

shared! {
    /// One task in a snapshot.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
    pub struct Sample = hearth_sample {
        /// The id of its cgroup; 0 if there is none.
        pub group: u64,
        /// CPU time that it counts as having had, weighted, in nanoseconds.
        pub usage: u64,
        /// CPU time that it has had.
        pub ran_ns: u64,
        /// Time that it has waited for a CPU; 0 on kernels that do not count it.
        pub waited_ns: u64,
        /// CPUs on which it may run, a bit each.
        pub mask: [u64; MASK_WORDS],
        /// Its thread id.
        pub tid: i32,
        /// The process that it is of.
        pub process: i32,
        /// Where it runs or waits, or ran last.
        pub cpu: i32,
        /// 100 is that of nice 0; 0 if it has never been the scheduler's.
        pub weight: u32,
        /// [`ASLEEP`], [`WAITING`] or [`RUNNING`].
        pub state: u32,
        /// The process that began it, or took it over.
        pub parent: i32,
    }
}

impl Sample {
    /// The CPUs on which it may run.
    pub fn cpus(&self) -> CpuSet {
        CpuSet::of_words(self.mask)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_is_a_bit_for_each_cpu() {
        let mut sample = Sample::default();
        (sample.mask[0], sample.mask[7]) = (0b101, 1 << 63);
        assert_eq!(sample.cpus().iter().collect::<Vec<_>>(), [0, 2, 511]);
    }
}
