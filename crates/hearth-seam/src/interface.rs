//! `bpf/interface.h`. Times are nanoseconds; CPUs, domains and nodes are numbered from 0.

use crate::declare::{constants, shared};
use bytemuck::{Pod, Zeroable};

constants! { all {
    /// CPUs that the scheduler can serve: those of lower numbers. A power of two.
    HEARTH_MAX_CPUS => MAX_CPUS: usize = 512;
    /// [`Policy::discipline`]: CPU time that decays.
    HEARTH_UNIX => UNIX: u32 = 0;
    /// [`Policy::discipline`]: virtual time.
    HEARTH_FAIR => FAIR: u32 = 1;
    /// [`Policy::flags`]: the time credit fades with the time since a task last ran.
    HEARTH_COMPLEX => COMPLEX: u32 = 1 << 0;
    /// [`Policy::flags`]: each task stays on one CPU for life.
    HEARTH_ATTACHED => ATTACHED: u32 = 1 << 1;
    /// [`Decision::source`]: no task, the CPU goes idle.
    HEARTH_SOURCE_IDLE => SOURCE_IDLE: u32 = 0;
    /// [`Decision::source`]: the task was running here, and goes on.
    HEARTH_SOURCE_KEPT => SOURCE_KEPT: u32 = 1;
    /// [`Decision::source`]: from this CPU's queue.
    HEARTH_SOURCE_OWN => SOURCE_OWN: u32 = 2;
    /// [`Decision::source`]: from another queue of the cache domain.
    HEARTH_SOURCE_DOMAIN => SOURCE_DOMAIN: u32 = 3;
    /// [`Decision::source`]: from a queue of another domain.
    HEARTH_SOURCE_FOREIGN => SOURCE_FOREIGN: u32 = 4;
    /// [`Decision::source`]: the task woke up, and this CPU was idle.
    HEARTH_SOURCE_DIRECT => SOURCE_DIRECT: u32 = 5;
    /// [`Decision::source`]: the kernel's doing, the task goes on after one of a higher class.
    HEARTH_SOURCE_KERNEL => SOURCE_KERNEL: u32 = 6;
    /// A rank where there is no candidate.
    HEARTH_NO_RANK => NO_RANK: i64 = i64::MAX;
} }

shared! {
    /// A policy, as the scheduler reads it.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
    pub struct Policy = hearth_policy {
        /// How long a task runs before the CPU looks at its queue again.
        pub quantum_ns: u64,
        /// The host's tick: slices end only at ticks.
        pub tick_ns: u64,
        /// [`UNIX`]: how often usage is halved.
        pub decay_ns: u64,
        /// Credit of the task that ran last on a CPU.
        pub time_ns: u64,
        /// Credit on the CPU where a task last ran.
        pub processor_ns: u64,
        /// Credit where the last-level cache is that CPU's.
        pub llc_ns: u64,
        /// Credit where the memory node is that CPU's.
        pub node_ns: u64,
        /// [`COMPLEX`]: credit lost for each unit of time away, in thousandths.
        pub fade_milli: u32,
        /// [`UNIX`] or [`FAIR`].
        pub discipline: u32,
        /// [`COMPLEX`] and [`ATTACHED`].
        pub flags: u32,
        /// 0.
        pub pad: u32,
    }
}

shared! {
    /// The machine. Domains are sets of CPUs with one last-level cache; those of domain d are
    /// `member[first[d]..end[d]]`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
    pub struct Topology = hearth_topology {
        /// One more than the greatest number of a CPU.
        pub nr_cpus: u32,
        /// Number of cache domains.
        pub nr_domains: u32,
        /// By CPU.
        pub domain_of: [u32; MAX_CPUS],
        /// By CPU.
        pub node_of: [u32; MAX_CPUS],
        /// CPUs, by domain.
        pub member: [u32; MAX_CPUS],
        /// By domain.
        pub first: [u32; MAX_CPUS],
        /// By domain.
        pub end: [u32; MAX_CPUS],
    }
}

shared! {
    /// What the dispatches of one CPU led to. Counts since the start.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
    #[cfg_attr(feature = "hosts", derive(serde::Serialize, serde::Deserialize))]
    pub struct CpuStats = hearth_stats {
        /// The task that was running went on.
        pub kept: u64,
        /// From this CPU's queue.
        pub own: u64,
        /// From another queue of the cache domain.
        pub domain: u64,
        /// From a queue of another domain.
        pub foreign: u64,
        /// Placed on this CPU, idle, at wake-up.
        pub direct: u64,
        /// Wake-ups that preempted a task here.
        pub preempted: u64,
        /// Nothing was runnable.
        pub idle: u64,
        /// A task that had waited for too long, whatever its rank.
        #[cfg_attr(feature = "hosts", serde(default))]
        pub late: u64,
    }
}

shared! {
    /// One decision: a task begins to run on a CPU, or the CPU goes idle.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
    pub struct Decision = hearth_decision {
        /// When, by the kernel's monotonic clock.
        pub at_ns: u64,
        /// Rank of the task that was running, or [`NO_RANK`].
        pub kept_rank: i64,
        /// Rank of the head of the CPU's own queue, or [`NO_RANK`].
        pub own_rank: i64,
        /// Rank of the first of all others, or [`NO_RANK`].
        pub elsewhere_rank: i64,
        /// Of the task that runs.
        pub usage: u64,
        /// The task; 0 if the CPU goes idle.
        pub pid: i32,
        /// The CPU.
        pub cpu: i32,
        /// Whose queue the task waited in, or -1.
        pub from: i32,
        /// Where it ran last, or -1.
        pub last_cpu: i32,
        /// Whose queue the first of all others waited in, or -1.
        pub elsewhere: i32,
        /// Why this task: one of the `SOURCE_` constants.
        pub source: u32,
        /// Its name, up to a zero.
        pub comm: [u8; 16],
    }
}

shared! {
    /// What the scheduler remembers of a task.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
    pub struct Task = hearth_task {
        /// CPU time received, weighted.
        pub usage: u64,
        /// [`UNIX`]: the decay that usage has seen.
        pub epoch: u64,
        /// [`FAIR`]: the CPU time up to which it has been charged.
        pub charged_ns: u64,
        /// [`COMPLEX`]: when it ran last.
        pub stopped_at: u64,
        /// How often it began to run.
        pub runs: u64,
        /// How often it began on another CPU than before: of the same cache domain, of the same node, of
        /// another.
        pub moves: [u64; 3],
        /// How often it went on by its credit, past a waiting task that had had less.
        pub by_credit: u64,
        /// Of its weight: its slice.
        pub slice_ns: u64,
        /// Of its weight: its time credit.
        pub time_ns: u64,
        /// Of its weight: how far ahead of a CPU's clock it may be.
        pub ahead_ns: u64,
        /// 100 / weight, in 65536ths.
        pub inverse_weight: u32,
        /// Where it ran last, or -1.
        pub last_cpu: i32,
        /// Where it ran before that, or -1.
        pub previous_cpu: i32,
        /// The queue in which it waits, or -1.
        pub queue: i32,
    }
}
