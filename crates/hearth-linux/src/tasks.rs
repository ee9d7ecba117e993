//! What the scheduler remembers of each task (`struct hearth_task` in `bpf/interface.h`).

use crate::fragments::Declared;
use hearth_abi as seam;
use libbpf_rs::{MapCore, MapFlags};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use serde::{Deserialize, Serialize};
use std::os::fd::AsRawFd;

/// `PIDFD_THREAD`: a descriptor of a thread, not of its process (Linux 6.9).
const PIDFD_THREAD: PidfdFlags = PidfdFlags::from_bits_retain(0o200);

/// A task, as the scheduler knows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// Its thread id.
    pub tid: i32,
    /// CPU time received, weighted, in nanoseconds.
    pub usage_ns: u64,
    /// How often it began to run.
    pub runs: u64,
    /// Moves to a CPU of the same cache domain, of the same node, of another node.
    pub moves: [u64; 3],
    /// How often it went on by its credit, past a task of its queue that had had less CPU time.
    pub by_credit: u64,
    /// For how long it has waited beside idle CPUs since it last moved for that, in nanoseconds.
    #[serde(default)]
    pub waited_ns: u64,
    /// The same, beside idle CPUs of its own cache.
    #[serde(default)]
    pub waited_near_ns: u64,
    /// Where it ran last.
    pub last_cpu: Option<i32>,
    /// Where it ran before it last moved.
    pub previous_cpu: Option<i32>,
    /// Whose queue it waits in; none if it runs or sleeps.
    pub queue: Option<i32>,
    /// What the plan says of it.
    pub plan: Planned,
    /// What it declares to work on.
    #[serde(default)]
    pub declared: Option<Declared>,
}

/// What a plan says of a task, or of its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Planned {
    /// The plan that was looked up when the task last came to wait.
    pub sequence: u64,
    /// The CPU in whose queue it waits.
    pub home: Option<i32>,
    /// The part in which alone it runs.
    pub part: Option<i32>,
    /// Its slice, in thousandths of what the policy gives it.
    pub slice_permille: u32,
    /// Its share of CPU time, in thousandths of what its weight gives it.
    #[serde(default = "whole_share")]
    pub share_permille: u32,
    /// The row of time in which it goes before others at its home.
    #[serde(default)]
    pub row: Option<i32>,
}

impl Planned {
    fn of(raw: &seam::Task) -> Self {
        let number = |number: i32| (number >= 0).then_some(number);
        Self {
            sequence: seam::Published::of(raw.planned).sequence,
            home: number(raw.home),
            part: number(raw.part),
            slice_permille: raw.slice_permille.into(),
            share_permille: raw.share_permille.into(),
            row: number(raw.row),
        }
    }
}

/// Of a daemon that knows no shares.
fn whole_share() -> u32 {
    1000
}

/// Looks a thread up, and its fragment by its place; `None` if it is gone, or not Hearth's.
pub(crate) fn look_up(
    map: &dyn MapCore,
    tid: i32,
    fragment: impl Fn(usize) -> Option<seam::Fragment>,
) -> Option<Task> {
    let pid = Pid::from_raw(tid)?;
    // Before 6.9 only the first thread of a process can be named.
    let descriptor = pidfd_open(pid, PIDFD_THREAD).or_else(|_| pidfd_open(pid, PidfdFlags::empty())).ok()?;
    let bytes = map.lookup(&descriptor.as_raw_fd().to_ne_bytes(), MapFlags::ANY).ok()??;
    let raw: seam::Task = bytemuck::try_pod_read_unaligned(&bytes).ok()?;
    let cpu = |cpu: i32| (cpu >= 0).then_some(cpu);
    let fragment = usize::try_from(raw.fragment).ok().and_then(fragment);
    Some(Task {
        tid,
        usage_ns: raw.usage,
        runs: raw.runs,
        moves: raw.moves,
        by_credit: raw.by_credit,
        waited_ns: raw.waited_ns,
        waited_near_ns: raw.waited_near_ns,
        last_cpu: cpu(raw.last_cpu),
        previous_cpu: cpu(raw.previous_cpu),
        queue: seam::cpu_of_queue(raw.queue),
        plan: Planned::of(&raw),
        declared: fragment.map(|fragment| Declared::new(raw.declared, &fragment)),
    })
}
