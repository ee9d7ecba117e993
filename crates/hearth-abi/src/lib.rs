//! The seam to the scheduler in C (`bpf/`): what it shares with its hosts in Rust, each struct and constant once,
//! and in [`native`] how a kernel of ours calls it.
//!
//! C has its own definitions, in `bpf/interface.h`, and for the native build in `bpf/native/`. Each build
//! of the scheduler compares them with those of this crate: the build script asks [`unit`] for a source
//! that includes the scheduler and asserts the offset and type of every field, the types of every function
//! in a table, every constant and every global variable. Where the two differ the build stops, and the
//! compiler names the field. So a new number of a policy is one line in `struct hearth_policy`, one in
//! [`Policy`] with what it is made of in `policy.rs`, and its documentation.

mod board;
mod compare;
mod declare;
mod globals;
mod interface;
mod kernel;
pub mod native;
mod policy;
mod published;
mod queues;
mod snapshot;
mod topology;

pub use board::{Board, Memory, Outcome};
pub use compare::{Build, unit};
pub use globals::Globals;
pub use interface::{
    ATTACHED, BSD, CELLS, COMPLEX, Cell, CpuStats, DUMP_BYTES, Decision, Ended, FAIR, FALSE_WAITS, FIXED,
    FalseWait, Fragment, KERNEL, LEAST_SHARE, MAX_CELL, MAX_CPUS, MAX_FRAGMENTS, MAX_PARTS, MAX_TARGETS,
    NO_RANK, OF_TASK, PLANS, PlanBuffer, Policy, Registration, SHAPES, SHARED_FRAGMENT, SOURCE_DIRECT,
    SOURCE_DOMAIN, SOURCE_FOREIGN, SOURCE_FRAGMENT, SOURCE_IDLE, SOURCE_KEPT, SOURCE_KERNEL, SOURCE_LATE,
    SOURCE_MEMBER, SOURCE_OWN, SOURCE_STRAY, SYSTEM_V, Shape, Target, Task, Topology, WATCHDOG_MS,
};
pub use kernel::{
    CpuMask, CpuReleaseArgs, DSQ_BUILTIN, DSQ_LOCAL, DumpContext, ENQ_REENQ, ENQ_WAKEUP, EXIT_RESTART,
    ExitInfo, InitTaskArgs, KICK_IDLE, KICK_PREEMPT, Kfuncs, OPS_ALLOW_QUEUED_WAKEUP,
    OPS_ENQ_MIGRATION_DISABLED, OPS_SWITCH_PARTIAL, Ops, PF_KTHREAD, STORAGE_CREATE, TASK_QUEUED,
    TaskPointer, TaskStruct, WAKE_SYNC,
};
pub use published::Published;
pub use queues::{cpu_of_queue, queue_of};
pub use snapshot::{ASLEEP, MASK_WORDS, RUNNING, Sample, WAITING};
pub use topology::{NoPartition, TooManyCpus};
