//! `bpf/interface.h`. Times are nanoseconds; CPUs, domains and nodes are numbered from 0.

use crate::declare::{constants, shared};
use bytemuck::{Pod, Zeroable};

constants! { all {
    /// CPUs that the scheduler can serve: those of lower numbers. A power of two.
    HEARTH_MAX_CPUS => MAX_CPUS: usize = 512;
    /// For how long a task may wait before the kernel ends the scheduler, if the host says nothing else.
    HEARTH_WATCHDOG_MS => WATCHDOG_MS: u32 = 10_000;
    /// Parts of the machine, at most.
    HEARTH_MAX_PARTS => MAX_PARTS: usize = 64;
    /// CPUs of a cell, at most.
    HEARTH_MAX_CELL => MAX_CELL: usize = 16;
    /// Shapes that there is room for; the first is the machine undivided.
    HEARTH_SHAPES => SHAPES: usize = 4;
    /// Cells of all shapes: [`MAX_CPUS`] of each.
    NR_CELLS => CELLS: usize = SHAPES * MAX_CPUS;
    /// Fragments that tasks declare at a time, at most.
    HEARTH_MAX_FRAGMENTS => MAX_FRAGMENTS: usize = 16384;
    /// In [`Fragment::word`]: bits up to how many of its tasks run.
    RUNS_SHIFT => FRAGMENT_RUNS: u32 = 16;
    /// In [`Fragment::word`]: bits up to how many tasks there are.
    TASKS_SHIFT => FRAGMENT_TASKS: u32 = 32;
    /// In a fragment's number: it is the same fragment in all processes.
    SHARED_NUMBER => SHARED_FRAGMENT: u64 = 1 << 63;
    /// Targets of a plan, at most.
    HEARTH_MAX_TARGETS => MAX_TARGETS: usize = 1024;
    /// The least share that a plan can leave a task, in thousandths.
    HEARTH_LEAST_SHARE => LEAST_SHARE: u32 = 100;
    /// Plans that there is room for.
    HEARTH_PLANS => PLANS: usize = 2;
    /// In [`Target::id`]: it is a task.
    HEARTH_OF_TASK => OF_TASK: u64 = 1 << 63;
    /// In the published word: bits up to the index of the shape before.
    HEARTH_PUBLISHED_BEFORE => PUBLISHED_BEFORE: u32 = 2;
    /// In the published word: bits up to the plan.
    HEARTH_PUBLISHED_PLAN => PUBLISHED_PLAN: u32 = 4;
    /// In the published word: bits up to the sequence number.
    HEARTH_PUBLISHED_SEQUENCE => PUBLISHED_SEQUENCE: u32 = 8;
    /// [`Policy::discipline`]: CPU time in ticks, never forgotten.
    HEARTH_FIXED => FIXED: u32 = 0;
    /// [`Policy::discipline`]: virtual time.
    HEARTH_FAIR => FAIR: u32 = 1;
    /// [`Policy::discipline`]: one run queue, and CPU time that is halved.
    HEARTH_SYSTEM_V => SYSTEM_V: u32 = 2;
    /// [`Policy::discipline`]: one run queue, and CPU time that decays with the load.
    HEARTH_BSD => BSD: u32 = 3;
    /// [`Policy::discipline`]: another scheduler, the baseline.
    HEARTH_KERNEL => KERNEL: u32 = 4;
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
    /// [`Decision::source`]: the task had waited for too long.
    HEARTH_SOURCE_LATE => SOURCE_LATE: u32 = 7;
    /// [`Decision::source`]: from the pinned queue of a CPU where more wait.
    HEARTH_SOURCE_STRAY => SOURCE_STRAY: u32 = 8;
    /// [`Decision::source`]: a gang's, whose row it is.
    HEARTH_SOURCE_MEMBER => SOURCE_MEMBER: u32 = 9;
    /// [`Decision::source`]: one of a fragment whose others run at its home.
    HEARTH_SOURCE_FRAGMENT => SOURCE_FRAGMENT: u32 = 10;
    /// False waits that are remembered.
    HEARTH_FALSE_WAITS => FALSE_WAITS: usize = 64;
    /// Bytes of the kernel's account of an error.
    HEARTH_DUMP_BYTES => DUMP_BYTES: usize = 32768;
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
        /// [`SYSTEM_V`], [`BSD`]: how often usage decays.
        pub decay_ns: u64,
        /// [`SYSTEM_V`], [`BSD`]: the most that a task is charged.
        pub saturation_ns: u64,
        /// Credit of the task that ran last on a CPU.
        pub time_ns: u64,
        /// Credit on the CPU where a task last ran.
        pub processor_ns: u64,
        /// Credit where the last-level cache is that CPU's.
        pub llc_ns: u64,
        /// Credit where the memory node is that CPU's.
        pub node_ns: u64,
        /// Credit where the fragment that a task declares lives.
        pub fragment_ns: u64,
        /// [`COMPLEX`]: credit lost for each unit of time away, in thousandths.
        pub fade_milli: u32,
        /// [`FIXED`], [`FAIR`], [`SYSTEM_V`], [`BSD`] or [`KERNEL`].
        pub discipline: u32,
        /// [`COMPLEX`] and [`ATTACHED`].
        pub flags: u32,
        /// 0.
        pub pad: u32,
    }
}

shared! {
    /// The machine. Domains are sets of CPUs with one last-level cache.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
    pub struct Topology = hearth_topology {
        /// One more than the greatest number of a CPU.
        pub nr_cpus: u32,
        /// CPUs that there are.
        pub nr_online: u32,
        /// 1 if CPUs are threads of the same core.
        pub has_siblings: u32,
        /// 0.
        pub pad: u32,
        /// What a task pays that moves to another CPU of its cache domain.
        pub cpu_move_ns: u64,
        /// What it pays that moves to another cache domain of its node.
        pub cache_move_ns: u64,
        /// What it pays that moves to another node.
        pub node_move_ns: u64,
        /// By CPU.
        pub domain_of: [u32; MAX_CPUS],
        /// By CPU.
        pub node_of: [u32; MAX_CPUS],
        /// By CPU: the next thread of its core, in a ring.
        pub sibling_of: [u32; MAX_CPUS],
    }
}

shared! {
    /// How the machine's CPUs are parted, and where they look for work: a cell is the CPUs of one part and
    /// one domain, or [`MAX_CELL`] of these if they are many. CPUs of cell c are
    /// `member[first[c]..end[c]]`; cells of part p are `part_first[p]..part_end[p]`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
    pub struct Shape = hearth_shape {
        /// Number of parts: 1 is the machine undivided.
        pub nr_parts: u32,
        /// Number of cells.
        pub nr_cells: u32,
        /// By CPU.
        pub part_of: [u32; MAX_CPUS],
        /// By CPU.
        pub cell_of: [u32; MAX_CPUS],
        /// CPUs, by cell.
        pub member: [u32; MAX_CPUS],
        /// By cell.
        pub first: [u32; MAX_CPUS],
        /// By cell.
        pub end: [u32; MAX_CPUS],
        /// By part.
        pub part_first: [u32; MAX_PARTS],
        /// By part.
        pub part_end: [u32; MAX_PARTS],
    }
}

shared! {
    /// What a plan says of one task, or of all tasks of a group.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
    pub struct Target = hearth_target {
        /// [`OF_TASK`] and a thread id, or the id of a cgroup.
        pub id: u64,
        /// The CPU in whose queue it waits, if its mask allows that; -1 for where it last ran.
        pub home: i32,
        /// The only part in which it runs, if its mask allows any; -1 for any.
        pub part: i32,
        /// Of the slice that it would have; 1000 leaves it as it is.
        pub slice_permille: u16,
        /// Of the share of CPU time that its weight gives it; 1000 leaves it as it is.
        pub share_permille: u16,
        /// The row of time in which it goes before others at its home; -1 for none.
        pub row: i32,
    }
}

shared! {
    /// A plan, as the scheduler reads it.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
    pub struct PlanBuffer = hearth_plan {
        /// By the kernel's monotonic clock: afterwards it is dropped.
        pub until_ns: u64,
        /// How long each row of time is.
        pub row_ns: u64,
        /// Rows of time, one after the other; 0 for none.
        pub nr_rows: u32,
        /// How many there are.
        pub nr_targets: u32,
        /// By id, ascending.
        pub targets: [Target; MAX_TARGETS],
    }
}

shared! {
    /// What is counted in a cell.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    #[repr(align(64))]
    pub struct Cell = cell_ctx {
        /// Tasks that wait in its shared queues.
        pub waiting: i64,
        /// Of these, such as may run beyond its part.
        pub outgoing: i64,
        /// Tasks in its pinned queues that may run on several CPUs.
        pub strays: i64,
        /// The CPU whose shared queue's head is the first.
        pub first: i32,
    }
}

shared! {
    /// What the dispatches of one CPU led to. Counts since the start.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
    #[derive(serde::Serialize, serde::Deserialize)]
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
        #[serde(default)]
        pub late: u64,
        /// From the pinned queue of a CPU where more wait.
        #[serde(default)]
        pub strays: u64,
        /// A gang's, whose row it is.
        #[serde(default)]
        pub members: u64,
        /// One of a fragment whose others run at its home.
        #[serde(default)]
        pub fragments: u64,
        /// Of steady policies: waits that ended where they began, though a CPU of the same cache idled.
        #[serde(default)]
        pub stayed_near: u64,
        /// Of steady policies: though one beyond that cache idled.
        #[serde(default)]
        pub stayed_far: u64,
        /// Of steady policies: for how long those waited beside idle CPUs.
        #[serde(default)]
        pub stayed_ns: u64,
        /// Of steady policies: a task that had paid for the move was left, for this CPU is soon wanted again.
        #[serde(default)]
        pub brief: u64,
        /// It was woken for a task that another CPU has taken.
        #[serde(default)]
        pub in_vain: u64,
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
    /// A task's word, in which it declares the data that it works on.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
    pub struct Registration = hearth_registration {
        /// Where it is in the task's memory; 0 for nowhere.
        pub word_at: u64,
        /// The task.
        pub tid: i32,
        /// The process whose task it has to be.
        pub process: i32,
        /// Set to 1 if there is such a task.
        pub found: u32,
        /// Nothing.
        pub pad: u32,
    }
}

shared! {
    /// A fragment of the data that tasks declare.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    #[repr(align(64))]
    pub struct Fragment = fragment {
        /// Of the process, and its number there; 0 if there has been none.
        pub key: u64,
        /// See [`Fragment::home`], [`Fragment::runs`] and [`Fragment::tasks`].
        pub word: u64,
        /// When a CPU was first idle beside it, in jiffies.
        pub uneven_from: u64,
        /// When one was last.
        pub uneven_until: u64,
    }
}

impl Fragment {
    /// The CPU where it lives.
    pub fn home(&self) -> usize {
        self.word as usize % MAX_CPUS
    }

    /// How many of its tasks run, or are about to.
    pub fn runs(&self) -> u32 {
        u32::from((self.word >> FRAGMENT_RUNS) as u16)
    }

    /// How many tasks declare it.
    pub fn tasks(&self) -> u32 {
        (self.word >> FRAGMENT_TASKS) as u32
    }
}

shared! {
    /// What the scheduler remembers of a task.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
    pub struct Task = hearth_task {
        /// CPU time received, weighted.
        pub usage: u64,
        /// [`FAIR`]: the CPU time up to which it has been charged.
        pub charged_ns: u64,
        /// Of steady policies: how long it usually runs before it sleeps.
        pub usually_ns: u64,
        /// Of steady policies: the CPU time that it had when it last woke.
        pub woke_ns: u64,
        /// Of steady policies: what it asks for beyond what it has had.
        pub request: u64,
        /// Of its weight: its slice.
        pub slice_ns: u64,
        /// The published word that what the plan says is of.
        pub planned: u64,
        /// 100 / weight, in 65536ths.
        pub inverse_weight: u32,
        /// Where it ran last, or -1.
        pub last_cpu: i32,
        /// Where it ran before that, or -1.
        pub previous_cpu: i32,
        /// The queue in which it waits, or -1.
        pub queue: i32,
        /// Where it is counted while it waits (`bpf/places.h`).
        pub counted: u32,
        /// What the plan says: see [`Target::home`].
        pub home: i32,
        /// See [`Target::part`].
        pub part: i32,
        /// See [`Target::row`].
        pub row: i32,
        /// The fragment's place in the table, or -1.
        pub fragment: i32,
        /// The fragment among whose running tasks it counts, or -1.
        pub runs_in: i32,
        /// How often it began to run.
        pub runs: u64,
        /// Of steady policies: since when it waits, as far as that is not collected.
        pub waits_since: u64,
        /// Of steady policies: for how long it has waited beside idle CPUs since it last paid for a move.
        pub waited_ns: u64,
        /// Of steady policies: the same, beside idle CPUs of its own cache.
        pub waited_near_ns: u64,
        /// Of steady policies: what both were when it came to wait.
        pub waited_before_ns: u64,
        /// See `waited_before_ns`.
        pub waited_near_before_ns: u64,
        /// Of steady policies: the CPU time that it had when it came to its CPU.
        pub came_ns: u64,
        /// Of its weight: its time credit.
        pub time_ns: u64,
        /// Of its weight: how far ahead of a CPU's clock it may be.
        pub ahead_ns: u64,
        /// Parts of which its mask has every CPU, as bits.
        pub covers: u64,
        /// Its weight.
        pub weight: u32,
        /// See [`Target::slice_permille`].
        pub slice_permille: u16,
        /// See [`Target::share_permille`].
        pub share_permille: u16,
        /// How often it began to run on another CPU than before: of the same cache domain, of the same node, of
        /// another.
        pub moves: [u64; 3],
        /// How often it went on by its credit, past a waiting task that had had less.
        pub by_credit: u64,
        /// The fragment that it declares: the number, and where its word is.
        pub declared: u64,
        /// Where the word is in which it declares; 0 for nowhere.
        pub word_at: u64,
        /// [`SYSTEM_V`], [`BSD`]: the decay that usage has seen.
        pub epoch: u64,
        /// [`COMPLEX`]: when it ran last.
        pub stopped_at: u64,
        /// [`ATTACHED`]: the CPU for life; -1 if it has not run, and nor has who made it.
        pub attached_cpu: i32,
        /// Not 0: it came from another class, and has not waited since (`bpf/false_waits.h`).
        pub has_joined: u32,
        /// Its weight, as it is counted where it waits.
        pub counted_weight: u32,
        /// Nothing.
        pub pad: u32,
    }
}

shared! {
    /// A task whose wait the kernel counts wrong, and when it really came to wait (`bpf/false_waits.h`).
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
    pub struct FalseWait = hearth_false_wait {
        /// In jiffies.
        pub came_at: u64,
        /// Which.
        pub pid: i32,
        /// 0.
        pub pad: u32,
    }
}

shared! {
    /// Why the kernel let go of the scheduler.
    #[derive(Clone, Copy, Debug)]
    pub struct Ended = hearth_exit {
        /// `enum scx_exit_kind`; 0 while it runs.
        pub kind: i32,
        /// 0.
        pub pad: u32,
        /// The kernel's exit code.
        pub code: i64,
        /// In jiffies: when the kernel found an error.
        pub at: u64,
        /// The kernel's word for the kind, which ends with a 0.
        pub reason: [u8; 128],
        /// The kernel's explanation, which ends with a 0.
        pub message: [u8; 1024],
    }
}
